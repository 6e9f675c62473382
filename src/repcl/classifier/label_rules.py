"""Which labels a text has, where it may have several: a calibrated probability and a threshold for each."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repcl.classifier.answering import Scores, sigmoid, signs_of, threshold_number
from repcl.classifier.calibration import ENOUGH, Nearness, familiarity, least_of
from repcl.classifier.store.records import Calibration, LabelRule, LabelRules
from repcl.methods.frozen.shared_texts import LeftOutTexts

ENOUGH_WITH_A_LABEL = 20
"""Texts with a label from which on it has a rule of its own."""
EVEN = 0.5

Mask = NDArray[np.bool_]


def calibrate_labels(left: LeftOutTexts, names: Sequence[str]) -> Calibration:
    """Choose the rules of labels by learned texts, each scored as if it had not been learned.

    Args:
        left: the texts with their labels and scores.
        names: of the classes.
    """
    scores, has_label = left.scores.double().numpy(), left.has_label.numpy()
    stands_for = left.stands_for.numpy()
    if not len(scores):
        return Calibration(labels=LabelRules(common=LabelRule(slope=1.0, offset=0.0, threshold=EVEN)))
    common = _rule(scores.ravel(), has_label.ravel(), np.repeat(stands_for, scores.shape[1]))
    enough = np.flatnonzero(has_label.sum(axis=0) >= ENOUGH_WITH_A_LABEL).tolist()
    rules = LabelRules(
        common=common,
        classes={names[index]: _rule(scores[:, index], has_label[:, index], stands_for) for index in enough},
    )
    found = label_probabilities(scores, rules, names)
    near = Nearness(left.near.numpy(), left.nearest.double().numpy(), left.nearest_stranger.double().numpy())
    known = found[near.texts]
    strange = signs_of(np.where(has_label[near.texts], 0.0, known), near.nearest_stranger)
    is_told = len(near.texts) >= ENOUGH and scores.shape[1] >= 3
    return Calibration(
        threshold=least_of(found.max(axis=1)),
        texts=len(scores),
        labels=rules,
        familiarity=familiarity(known, strange, names, near) if is_told else None,
    )


def label_probabilities(scores: Scores, rules: LabelRules, names: Sequence[str]) -> Scores:
    """The probability of each label, whatever the others are, (texts, classes)."""
    own = [rules.classes.get(name, rules.common) for name in names]
    slopes, offsets = np.array([rule.slope for rule in own]), np.array([rule.offset for rule in own])
    found: Scores = sigmoid(scores * slopes + offsets)
    return found


def has_labels(
    found: Scores, rules: LabelRules, names: Sequence[str], threshold: float | str = "auto"
) -> Mask:
    """Which labels each text has, (texts, classes).

    Args:
        found: probabilities of the labels.
        rules: with the least probability of each.
        names: of the classes.
        threshold: another least probability for all of them, from 0 to 1; "auto" for the rules' own.
    """
    least: Any = np.array([rules.classes.get(name, rules.common).threshold for name in names])
    if threshold != "auto":
        least = threshold_number(threshold)
    has: Mask = found >= least
    return has


def best_threshold(found: Scores, has_label: Mask, stands_for: Scores) -> float:
    """The least probability with which F1 is highest, halfway to the next one below it.

    Args:
        found: probabilities of a label, (texts,).
        has_label: whether each text has it.
        stands_for: how many texts each stands for.
    """
    order = np.argsort(-found, kind="stable")
    ordered, right = found[order], np.where(has_label, stands_for, 0.0)[order]
    f1 = 2 * right.cumsum() / (stands_for[order].cumsum() + right.sum())
    f1[:-1][ordered[:-1] == ordered[1:]] = -1.0  # a threshold cannot part equals
    best = int(f1.argmax())
    below = ordered[best + 1] if best + 1 < len(ordered) else 0.0
    return float((ordered[best] + below) / 2)


def _rule(scores: Scores, has_label: Mask, stands_for: Scores) -> LabelRule:
    """Platt's sigmoid (1999) with his smoothed targets, and the threshold of the best F1."""
    slope, offset = _sigmoid(scores, has_label, stands_for)
    found = sigmoid(scores * slope + offset)
    threshold = best_threshold(found, has_label, stands_for) if has_label.any() else EVEN
    return LabelRule(slope=slope, offset=offset, threshold=threshold)


def _sigmoid(scores: Scores, has_label: Mask, stands_for: Scores) -> tuple[float, float]:
    from sklearn.linear_model import LogisticRegression  # takes a second, and answering needs none

    yes, no = int(has_label.sum()), int((~has_label).sum())
    targets = np.where(has_label, (yes + 1) / (yes + 2), 1 / (no + 2))
    center, spread = float(scores.mean()), max(float(scores.std()), 1e-9)
    column = ((scores - center) / spread)[:, None]
    model = LogisticRegression(C=np.inf).fit(
        np.concatenate([column, column]),
        np.repeat([1, 0], len(scores)),
        sample_weight=np.concatenate([stands_for * targets, stands_for * (1 - targets)]),
    )
    slope = max(float(model.coef_[0, 0]) / spread, 0.0)
    return slope, float(model.intercept_[0]) - slope * center
