"""Calibrated probabilities, and the one rule by which a text is unknown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from repcl.classifier.inputs import InvalidInput, Label
from repcl.classifier.store.records import Calibration, Familiarity
from repcl.errors import InvalidSetting

Scores = NDArray[np.float64]
ACCEPTED = 0.95
"""Share of in-scope texts that the automatic threshold lets pass."""
ENOUGH = 20
"""Held-out texts from which on exemplars, which were trained on, are not asked."""
ENOUGH_OF_A_CLASS = 40
"""Texts that are given a class from which on it has a threshold of its own."""
ENOUGH_TO_BE_FAR = 100
"""Texts from which on the least near of them bounds what can be known at all."""
MOST_AT_A_TIME = 10**6
"""Scores that a temperature is tried on at a time."""
ROUNDING = 1e-6
COLDEST, HOTTEST = 1e-3, 1e3


def probabilities(scores: Scores, temperature: float) -> Scores:
    """Softmax of scores over the temperature, (texts, classes); rows sum to 1."""
    result: Scores = softmax(_centered(scores) / temperature, axis=1)
    return result


@dataclass(frozen=True)
class Nearness:
    """How near texts of known classes lie to the other texts learned.

    Attributes:
        texts: which of the texts these are.
        nearest: cosine of each with the nearest other text.
        nearest_stranger: cosine with the nearest text of another class, as if its own were not known.
    """

    texts: NDArray[np.int64]
    nearest: Scores
    nearest_stranger: Scores


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


def calibrate(
    scores: Scores, labels: Sequence[int], names: Sequence[str] = (), nearness: Nearness | None = None
) -> Calibration:
    """Choose temperature and thresholds by texts of known classes, scored as if they had not been learned.

    Args:
        scores: (texts, classes).
        labels: the column of each text's class.
        names: of the classes, for thresholds of their own.
        nearness: of some of the texts, if embeddings are kept.
    """
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise InvalidSetting(
            "Expected scores that are numbers, found others: training ran away; lower the learning rate."
        )
    if len(labels) == 0 or scores.shape[1] < 2:
        return Calibration(threshold=1.0 if scores.shape[1] == 1 and len(labels) else None, texts=len(labels))
    columns = np.asarray(labels)
    temperature = _temperature(scores, columns)
    found = probabilities(scores, temperature)
    return Calibration(
        temperature=temperature,
        threshold=least_of(found.max(axis=1)),
        texts=len(columns),
        familiarity=_familiarity_of(scores, columns, temperature, names, nearness) if nearness else None,
    )


def _familiarity_of(
    scores: Scores, labels: NDArray[Any], temperature: float, names: Sequence[str], nearness: Nearness
) -> Familiarity | None:
    """Familiarity of texts with one label each."""
    rows = nearness.texts
    if len(rows) < ENOUGH or scores.shape[1] < 3:
        return None
    known, strange = scores[rows], scores[rows].copy()
    strange[np.arange(len(rows)), labels[rows]] = -np.inf
    return familiarity(
        probabilities(known, temperature), probabilities(strange, temperature), names, nearness
    )


def familiarity(known: Scores, strange: Scores, names: Sequence[str], nearness: Nearness) -> Familiarity:
    """Tell texts of known classes from the same texts as they would look if their class were not known.

    Args:
        known: probabilities of the texts that nearness is of, (texts, classes).
        strange: the same without their own classes.
        names: of the classes.
        nearness: of the texts to others.
    """
    rows = nearness.texts
    signs = np.concatenate([_signs(known, nearness.nearest), _signs(strange, nearness.nearest_stranger)])
    center, spread = signs.mean(axis=0), np.maximum(signs.std(axis=0), 1e-6)
    is_known = np.repeat([1, 0], len(rows))
    model = LogisticRegression().fit((signs - center) / spread, is_known)
    weights = model.coef_[0] / spread
    offset = float(model.intercept_[0] - weights @ center)
    reached = expit(signs[: len(rows)] @ weights + offset)
    answers = known.argmax(axis=1)
    own = {
        names[int(index)]: least_of(reached[answers == index])
        for index in np.flatnonzero(np.bincount(answers) >= ENOUGH_OF_A_CLASS)
    }
    return Familiarity(
        confidence=float(weights[0]),
        nearness=float(weights[1]),
        offset=offset,
        threshold=least_of(reached),
        class_thresholds=own,
        least_nearness=min(1.0, float(nearness.nearest.min())) if len(rows) >= ENOUGH_TO_BE_FAR else None,
    )


def _signs(found: Scores, nearness: Scores) -> Scores:
    """Log odds of the highest probability, and nearness, (texts, 2)."""
    confidence = np.clip(found.max(axis=1), ROUNDING, 1 - ROUNDING)
    return np.stack([np.log(confidence / (1 - confidence)), nearness], axis=1)


def least_of(reached: Scores) -> float:
    """What the share of texts that is to be accepted reaches; the least of all where texts are few."""
    refused = int((1 - ACCEPTED) * (len(reached) + 1))
    ordered = np.sort(reached)
    return float(min(ordered[refused - 1] if refused else ordered[0], 1.0))


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
        signs = _signs(evidence.probabilities, evidence.nearness)
        found: Scores = expit(signs @ weights + self.familiarity.offset)
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
    signs = calibration.familiarity if threshold == "auto" else None
    return UnknownRule(_least_confidence(calibration, threshold), answer, signs)


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


def renamed(calibration: Calibration, old: str, new: str) -> Calibration:
    """The calibration with what belongs to a class under its new name."""

    def under_new_name(own: Mapping[str, Any]) -> dict[str, Any]:
        return {new if name == old else name: value for name, value in own.items()}

    signs, labels = calibration.familiarity, calibration.labels
    return calibration.model_copy(
        update={
            "familiarity": signs
            and signs.model_copy(update={"class_thresholds": under_new_name(signs.class_thresholds)}),
            "labels": labels and labels.model_copy(update={"classes": under_new_name(labels.classes)}),
        }
    )


def _temperature(scores: Scores, labels: NDArray[Any]) -> float:
    """The temperature under which the labels are most likely (Guo et al., 2017).

    Few texts, all of them right, would ask for boundless confidence; so a text's label has the probability
    (n + 1) / (n + 2) only, as Platt (1999) proposed, and the rest falls to the other classes.
    """
    count, classes = scores.shape
    rest = 1.0 / (count + 2) / (classes - 1)
    # in parts, for all that is computed on the way would take many times the scores' memory
    parts = max(1, -(-scores.size // MOST_AT_A_TIME))
    centered = np.array_split(_centered(scores), parts)
    columns = np.array_split(labels, parts)

    def loss(log_temperature: float) -> float:
        return float(sum(map(partial(part_loss, np.exp(log_temperature)), centered, columns)))

    def part_loss(temperature: float, part: Scores, own: NDArray[Any]) -> float:
        targets = np.full(part.shape, rest)
        targets[np.arange(len(own)), own] = (count + 1) / (count + 2)
        return float(-(targets * log_softmax(part / temperature, axis=1)).sum())

    best = minimize_scalar(loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded")
    return float(np.exp(best.x))


def _centered(scores: Scores) -> Scores:
    """Scores minus the best of their row, so that dividing by a small temperature cannot overflow."""
    centered: Scores = scores - scores.max(axis=1, keepdims=True)
    return centered
