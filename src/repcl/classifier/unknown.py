"""Knowing that it does not know: calibrated probabilities, and the least confidence of an answer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from repcl.classifier.guard import Record
from repcl.errors import InvalidSetting

Scores = NDArray[np.float64]
ACCEPTED = 0.95
"""Share of in-scope texts that the automatic threshold lets pass."""
ENOUGH = 20
"""Held-back texts from which on exemplars, which were trained on, are not asked."""
COLDEST, HOTTEST = 1e-3, 1e3


class Calibration(Record):
    """How scores become probabilities.

    Attributes:
        temperature: divides the scores before the softmax.
        threshold: the confidence that 95 % of the texts below reach; None without any.
        texts: how many texts they were chosen by.
    """

    temperature: float = 1.0
    threshold: float | None = None
    texts: int = 0

    def least_confidence(self, threshold: float | str) -> float:
        """The confidence that a text needs, from the user's word for it."""
        if threshold == "auto":
            if self.threshold is None:
                raise InvalidSetting(
                    "Expected held-back texts or exemplars to choose a threshold by, found none: give a "
                    "number from 0 to 1, or learn with holdout_per_class above 0."
                )
            return self.threshold
        try:
            least = float(threshold)
        except ValueError as error:
            raise InvalidSetting(
                f"Expected a threshold of 'auto' or a number from 0 to 1, found {threshold!r}."
            ) from error
        if not 0 <= least <= 1:
            raise InvalidSetting(f"Expected a threshold from 0 to 1, found {least}.")
        return least


def probabilities(scores: Scores, temperature: float) -> Scores:
    """Softmax of scores over the temperature, (texts, classes); rows sum to 1."""
    scaled = (scores - scores.max(axis=1, keepdims=True)) / temperature
    exponentials = np.exp(scaled)
    result: Scores = exponentials / exponentials.sum(axis=1, keepdims=True)
    return result


def calibrate(scores: Scores, labels: Sequence[int]) -> Calibration:
    """Choose temperature and threshold by texts of known classes that were not trained on.

    Args:
        scores: (texts, classes).
        labels: the column of each text's class.
    """
    if len(labels) == 0 or scores.shape[1] < 2:
        return Calibration(threshold=1.0 if scores.shape[1] == 1 and len(labels) else None, texts=len(labels))
    temperature = _temperature(scores, np.asarray(labels))
    confidence = probabilities(scores, temperature).max(axis=1)
    threshold = float(np.quantile(confidence, 1 - ACCEPTED, method="lower"))
    return Calibration(temperature=temperature, threshold=threshold, texts=len(labels))


def _temperature(scores: Scores, labels: NDArray[Any]) -> float:
    """The temperature under which the labels are most likely (Guo et al., 2017).

    Few texts, all of them right, would ask for boundless confidence; so a text's label has the probability
    (n + 1) / (n + 2) only, as Platt (1999) proposed, and the rest falls to the other classes.
    """
    count, classes = scores.shape
    rest = 1.0 / (count + 2) / (classes - 1)
    targets = np.full(scores.shape, rest)
    targets[np.arange(count), labels] = (count + 1) / (count + 2)
    centered = scores - scores.max(axis=1, keepdims=True)

    def loss(log_temperature: float) -> float:
        scaled = centered / np.exp(log_temperature)
        logs = scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))
        return float(-(targets * logs).sum())

    best = minimize_scalar(loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded")
    return float(np.exp(best.x))


def mark_unknown(answers: Any, is_unknown: NDArray[np.bool_], unknown: str | int) -> Any:
    """The answers, with another word where the class is unknown; of their own type where the word fits."""
    fits = isinstance(unknown, str) == (answers.dtype.kind == "U")
    marked = answers.astype(object)
    marked[is_unknown] = unknown
    return marked.astype(np.str_ if isinstance(unknown, str) else np.int64) if fits else marked
