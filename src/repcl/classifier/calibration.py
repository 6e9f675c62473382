"""Calibrated probabilities, and the one rule by which a text is unknown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from repcl.classifier.inputs import InvalidInput, Label
from repcl.classifier.store.records import Calibration
from repcl.errors import InvalidSetting

Scores = NDArray[np.float64]
ACCEPTED = 0.95
"""Share of in-scope texts that the automatic threshold lets pass."""
ENOUGH = 20
"""Held-out texts from which on exemplars, which were trained on, are not asked."""
COLDEST, HOTTEST = 1e-3, 1e3


def probabilities(scores: Scores, temperature: float) -> Scores:
    """Softmax of scores over the temperature, (texts, classes); rows sum to 1."""
    result: Scores = softmax(_centered(scores) / temperature, axis=1)
    return result


def calibrate(scores: Scores, labels: Sequence[int]) -> Calibration:
    """Choose temperature and threshold by texts of known classes that were not trained on.

    Args:
        scores: (texts, classes).
        labels: the column of each text's class.
    """
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise InvalidSetting(
            "Expected scores that are numbers, found others: training ran away; lower the learning rate."
        )
    if len(labels) == 0 or scores.shape[1] < 2:
        return Calibration(threshold=1.0 if scores.shape[1] == 1 and len(labels) else None, texts=len(labels))
    temperature = _temperature(scores, np.asarray(labels))
    confidence = probabilities(scores, temperature).max(axis=1)
    threshold = float(np.quantile(confidence, 1 - ACCEPTED, method="lower"))
    return Calibration(temperature=temperature, threshold=min(threshold, 1.0), texts=len(labels))


@dataclass(frozen=True)
class UnknownRule:
    """When a text is unknown, and what is answered then.

    Attributes:
        least: the confidence that a known text has at least.
        answer: for unknown texts.
    """

    least: float
    answer: Label | None = None

    def familiarity(self, found: Scores) -> Scores:
        """How familiar texts are, from their probabilities, (texts, classes); unknown ones least."""
        highest: Scores = found.max(axis=1)
        return highest

    def applies(self, found: Scores) -> NDArray[np.bool_]:
        """Which texts are unknown, from their probabilities, (texts, classes)."""
        unknown: NDArray[np.bool_] = self.familiarity(found) < self.least
        return unknown

    def mark(self, labels: Any, is_unknown: NDArray[np.bool_]) -> Any:
        """The labels, with the answer where a text is unknown; of their own type where the answer fits."""
        fits = isinstance(self.answer, str) == (labels.dtype.kind == "U")
        marked = labels.astype(object)
        marked[is_unknown] = self.answer
        return marked.astype(np.str_ if isinstance(self.answer, str) else np.int64) if fits else marked


def unknown_rule(
    calibration: Calibration, names: Sequence[str], *, threshold: float | str, answer: Label | None = None
) -> UnknownRule:
    """The rule for a classifier; wrong thresholds are refused, and answers that are one of its classes.

    Args:
        calibration: of the classifier.
        names: its classes.
        threshold: the least confidence, from 0 to 1; "auto" for the one that was calibrated.
        answer: for unknown texts, if labels are wanted.
    """
    if answer is not None and str(answer) in names:
        raise InvalidInput(
            f"{answer!r} is one of the classes and cannot mean unknown: give another answer for unknown "
            "texts, or rename the class."
        )
    return UnknownRule(_least_confidence(calibration, threshold), answer)


def _least_confidence(calibration: Calibration, threshold: float | str) -> float:
    if threshold == "auto":
        if calibration.threshold is None:
            raise InvalidSetting(
                "Expected held-out texts or exemplars to choose a threshold by, found none: give a "
                "number from 0 to 1 (--threshold 0.5), or learn five or more texts of a class with "
                "holdout_per_class above 0."
            )
        return calibration.threshold
    try:
        least = float(threshold)
    except ValueError as error:
        raise InvalidSetting(
            f"Expected a threshold of 'auto' or a number from 0 to 1, found {threshold!r}."
        ) from error
    if not 0 <= least <= 1:
        raise InvalidSetting(f"Expected a threshold from 0 to 1, found {least}.")
    return least


def _temperature(scores: Scores, labels: NDArray[Any]) -> float:
    """The temperature under which the labels are most likely (Guo et al., 2017).

    Few texts, all of them right, would ask for boundless confidence; so a text's label has the probability
    (n + 1) / (n + 2) only, as Platt (1999) proposed, and the rest falls to the other classes.
    """
    count, classes = scores.shape
    rest = 1.0 / (count + 2) / (classes - 1)
    targets = np.full(scores.shape, rest)
    targets[np.arange(count), labels] = (count + 1) / (count + 2)
    centered = _centered(scores)

    def loss(log_temperature: float) -> float:
        return float(-(targets * log_softmax(centered / np.exp(log_temperature), axis=1)).sum())

    best = minimize_scalar(loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded")
    return float(np.exp(best.x))


def _centered(scores: Scores) -> Scores:
    """Scores minus the best of their row, so that dividing by a small temperature cannot overflow."""
    centered: Scores = scores - scores.max(axis=1, keepdims=True)
    return centered
