"""From scores to answers: probabilities, and the one rule by which a text is unknown.

It needs NumPy alone, for an export answers without anything heavier.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repcl.classifier.inputs import InvalidInput, Label
from repcl.classifier.store.records import Calibration, Familiarity
from repcl.errors import InvalidSetting

Scores = NDArray[np.float64]
ROUNDING = 1e-6


def probabilities(scores: Scores, temperature: float) -> Scores:
    """Softmax of scores over the temperature, (texts, classes); rows sum to 1."""
    raised = np.exp(centered(scores) / temperature)
    found: Scores = raised / raised.sum(axis=1, keepdims=True)
    return found


@dataclass(frozen=True)
class Evidence:
    """What is known about texts before it is decided whether they are unknown.

    Attributes:
        names: the classes.
        probabilities: (texts, classes).
        nearness: cosine of each text with the nearest one learned; None where embeddings are not kept.
    """

    names: Sequence[str]
    probabilities: Scores
    nearness: Scores | None = None


def signs_of(found: Scores, nearness: Scores) -> Scores:
    """Log odds of the highest probability, and nearness, (texts, 2)."""
    confidence = np.clip(found.max(axis=1), ROUNDING, 1 - ROUNDING)
    return np.stack([np.log(confidence / (1 - confidence)), nearness], axis=1)


def sigmoid(values: Scores) -> Scores:
    """The logistic function; far below zero it is 0, and no overflow is worth a warning."""
    with np.errstate(over="ignore"):
        found: Scores = 1.0 / (1.0 + np.exp(-values))
    return found


@dataclass(frozen=True)
class UnknownRule:
    """When a text is unknown, and what is answered then.

    Attributes:
        least: the confidence that a known text has at least.
        answer: for unknown texts.
        familiarity: decides instead of confidence, if given.
    """

    least: float
    answer: Label | None = None
    familiarity: Familiarity | None = None

    def applies(self, evidence: Evidence) -> NDArray[np.bool_]:
        """Which texts are unknown."""
        least: Any = self.least
        if self.familiarity is not None and evidence.nearness is not None:
            own, common = self.familiarity.class_thresholds, self.familiarity.threshold
            by_class = np.array([own.get(name, common) for name in evidence.names])
            least = by_class[evidence.probabilities.argmax(axis=1)]
        unknown: NDArray[np.bool_] = self.certainty(evidence) < least
        return unknown

    def certainty(self, evidence: Evidence) -> Scores:
        """How sure it is that each text belongs to any known class, from 0 to 1."""
        if self.familiarity is None or evidence.nearness is None:
            highest: Scores = evidence.probabilities.max(axis=1)
            return highest
        weights = np.array([self.familiarity.confidence, self.familiarity.nearness])
        signs = signs_of(evidence.probabilities, evidence.nearness)
        found: Scores = sigmoid(signs @ weights + self.familiarity.offset)
        if self.familiarity.least_nearness is not None:
            found[evidence.nearness < self.familiarity.least_nearness] = 0.0
        return found

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
    familiarity = calibration.familiarity if threshold == "auto" else None
    return UnknownRule(_least_confidence(calibration, threshold), answer, familiarity)


def _least_confidence(calibration: Calibration, threshold: float | str) -> float:
    if threshold == "auto":
        if calibration.threshold is None:
            raise InvalidSetting(
                "Expected held-out texts or exemplars to choose a threshold by, found none: give a "
                "number from 0 to 1 (--threshold 0.5), or learn five or more texts of a class with "
                "holdout_per_class above 0."
            )
        return calibration.threshold
    return threshold_number(threshold)


def threshold_number(threshold: float | str) -> float:
    """A threshold that a user gave, checked."""
    try:
        least = float(threshold)
    except ValueError as error:
        raise InvalidSetting(
            f"Expected a threshold of 'auto' or a number from 0 to 1, found {threshold!r}."
        ) from error
    if not 0 <= least <= 1:
        raise InvalidSetting(f"Expected a threshold from 0 to 1, found {least}.")
    return least


def centered(scores: Scores) -> Scores:
    """Scores minus the best of their row, so that dividing by a small temperature cannot overflow."""
    found: Scores = scores - scores.max(axis=1, keepdims=True)
    return found
