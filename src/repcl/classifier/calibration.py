"""Temperature and thresholds, chosen by answers to texts of known classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from repcl.classifier.answering import Scores, centered, probabilities, sigmoid, signs_of
from repcl.classifier.store.records import Calibration, Familiarity
from repcl.errors import InvalidSetting

if TYPE_CHECKING:  # an export answers without torch
    from repcl.methods.frozen.strangers import Strangers

ACCEPTED = 0.95
"""Share of in-scope texts that the automatic threshold lets pass."""
ENOUGH = 20
"""Held-out texts from which on exemplars, which were trained on, are not asked."""
ENOUGH_OF_A_CLASS = 40
"""Texts that are given a class from which on it has a threshold of its own."""
ENOUGH_TO_BE_FAR = 100
"""Texts from which on the least near of them bounds what can be known at all."""
MOST_AT_A_TIME = 500_000
"""Scores that a temperature is tried on at a time."""
COLDEST, HOTTEST = 1e-3, 1e3


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


def calibrate(
    scores: Scores,
    labels: Sequence[int],
    names: Sequence[str] = (),
    nearness: Nearness | None = None,
    strangers: "Strangers | None" = None,
) -> Calibration:
    """Choose temperature and thresholds by texts of known classes, scored as if they had not been learned.

    Args:
        scores: (texts, classes).
        labels: the column of each text's class.
        names: of the classes, for thresholds of their own.
        nearness: of some of the texts, if embeddings are kept.
        strangers: texts as they would look had their class not been learned; where there are none, the
            texts that nearness is of, without the scores of their own class.
    """
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise InvalidSetting(
            "Expected scores that are numbers, found others: training ran away; lower the learning rate."
        )
    if len(labels) == 0 or scores.shape[1] < 2:
        return Calibration(threshold=1.0 if scores.shape[1] == 1 and len(labels) else None, texts=len(labels))
    columns = np.asarray(labels)
    temperature = _temperature(scores, columns)
    parts = np.array_split(scores, _parts(scores))
    highest = [probabilities(part, temperature).max(axis=1) for part in parts]
    return Calibration(
        temperature=temperature,
        threshold=least_of(np.concatenate(highest)),
        texts=len(columns),
        familiarity=_familiarity_of(scores, columns, temperature, names, nearness, strangers)
        if nearness
        else None,
    )


def _familiarity_of(
    scores: Scores,
    labels: NDArray[Any],
    temperature: float,
    names: Sequence[str],
    nearness: Nearness,
    strangers: "Strangers | None",
) -> Familiarity | None:
    """Familiarity of texts with one label each."""
    rows = nearness.texts
    if len(rows) < ENOUGH or scores.shape[1] < 3:
        return None
    known = probabilities(scores[rows], temperature)
    if strangers is not None:
        strange = probabilities(strangers.scores.double().numpy(), temperature)
        return familiarity(known, signs_of(strange, strangers.nearest.double().numpy()), names, nearness)
    crossed_out = scores[rows]
    crossed_out[np.arange(len(rows)), labels[rows]] = -np.inf
    strange = probabilities(crossed_out, temperature)
    return familiarity(known, signs_of(strange, nearness.nearest_stranger), names, nearness)


def familiarity(known: Scores, strange: Scores, names: Sequence[str], nearness: Nearness) -> Familiarity:
    """Tell texts of known classes from texts as they would look if their class were not known.

    Args:
        known: probabilities of the texts that nearness is of, (texts, classes).
        strange: signs of the others, (texts, 2).
        names: of the classes.
        nearness: of the known texts to others.
    """
    from sklearn.linear_model import LogisticRegression  # takes a second to import

    signs = signs_of(known, nearness.nearest)
    both = np.concatenate([signs, strange])
    center, spread = both.mean(axis=0), np.maximum(both.std(axis=0), 1e-6)
    is_known = np.repeat([1, 0], [len(signs), len(strange)])
    weight = np.where(is_known, 1.0, len(signs) / len(strange))  # as if there were as many of both
    model = LogisticRegression().fit((both - center) / spread, is_known, sample_weight=weight)
    weights = model.coef_[0] / spread
    offset = float(model.intercept_[0] - weights @ center)
    reached = sigmoid(signs @ weights + offset)
    answers = known.argmax(axis=1)
    given = np.bincount(answers)
    own = {
        names[int(index)]: least_of(reached[answers == index])
        for index in np.flatnonzero(given >= ENOUGH_OF_A_CLASS)
    }
    # classes of many texts are often the easier ones; with them the others would be held to too much
    of_others = reached[given[answers] < ENOUGH_OF_A_CLASS]
    return Familiarity(
        confidence=float(weights[0]),
        nearness=float(weights[1]),
        offset=offset,
        threshold=least_of(of_others if len(of_others) >= ENOUGH else reached),
        class_thresholds=own,
        least_nearness=min(1.0, float(nearness.nearest.min())) if len(signs) >= ENOUGH_TO_BE_FAR else None,
        texts=len(signs),
    )


def least_of(reached: Scores) -> float:
    """What the share of texts that is to be accepted reaches; the least of all where texts are few."""
    refused = int((1 - ACCEPTED) * (len(reached) + 1))
    ordered = np.sort(reached)
    return float(min(ordered[refused - 1] if refused else ordered[0], 1.0))


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
    from scipy.optimize import minimize_scalar  # answering needs none of it
    from scipy.special import log_softmax

    count, classes = scores.shape
    rest = 1.0 / (count + 2) / (classes - 1)
    parts = np.array_split(scores, _parts(scores))
    columns = np.array_split(labels, len(parts))

    def loss(log_temperature: float) -> float:
        return float(sum(map(partial(part_loss, np.exp(log_temperature)), parts, columns)))

    def part_loss(temperature: float, part: Scores, own: NDArray[Any]) -> float:
        raised = centered(part)
        raised /= temperature
        likely: Scores = log_softmax(raised, axis=1)
        targets = np.full(part.shape, rest)
        targets[np.arange(len(own)), own] = (count + 1) / (count + 2)
        likely *= targets
        return -float(likely.sum())

    best = minimize_scalar(loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded")
    return float(np.exp(best.x))


def _parts(scores: Scores) -> int:
    """How many to work in, for all that is computed on the way would take many times the scores' memory."""
    return max(1, -(-scores.size // MOST_AT_A_TIME))
