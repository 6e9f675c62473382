"""The texts that an update brings: does what was learned from all others agree with their labels?"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from repcl.classifier.answering import Scores
from repcl.classifier.store.records import LostText
from repcl.data import Example

USUAL = 0.1
"""The share of learned texts whose labels look no better than those that are doubted."""


class Arrival(NamedTuple):
    """A text that an update brought.

    Attributes:
        label: that it came with.
        answer: that it gets from a learner that did not learn it.
        is_doubtful: whether another label is so much likelier than its own as it is for one learned text in
            ten at most.
        text: the words, where they are known.
        margin: how far its own label scores above all others; below zero, another one is likelier.
    """

    label: str
    answer: str
    is_doubtful: bool = False
    text: str = ""
    margin: float = 0.0


def margins_of(scores: Scores, labels: Sequence[int]) -> Scores:
    """How far the score of each text's label is above the best other one, (texts,).

    Args:
        scores: (texts, classes); put back as they were, for a copy of many classes would not fit.
        labels: the column of each text's label.
    """
    rows, columns = np.arange(len(labels)), np.asarray(labels, dtype=np.int64)
    own = scores[rows, columns].copy()
    scores[rows, columns] = -np.inf
    found: Scores = own - scores.max(axis=1, initial=-np.inf)
    scores[rows, columns] = own
    return found


def least_usual(margins: Iterable[float]) -> float:
    """The margin that all but `USUAL` of learned texts reach, and a wrong answer has; of few, the lowest."""
    ordered = sorted(margins)
    return min(0.0, ordered[max(1, int(USUAL * (len(ordered) + 1))) - 1]) if ordered else -np.inf


def as_arrivals(
    examples: Sequence[Example], scores: Scores, names: Sequence[str], least: float
) -> list[Arrival]:
    """Texts with what they get.

    Args:
        examples: the texts.
        scores: by a learner that did not learn them, (texts, classes).
        names: of the classes.
        least: the margin below which a label is doubted.
    """
    column = {name: index for index, name in enumerate(names)}
    margins = margins_of(scores, [column[example.label] for example in examples])
    best: NDArray[np.int64] = scores.argmax(axis=1)
    return [
        Arrival(example.label, names[answer], bool(margin < least), example.text, float(margin))
        for example, answer, margin in zip(examples, best, margins, strict=True)
    ]


def doubtful_texts(arrived: Sequence[Arrival]) -> tuple[LostText, ...]:
    """Texts of an update whose labels are doubted, each once, the most doubtful first."""
    doubted = {one for one in arrived if one.is_doubtful and one.text}
    ordered = sorted(doubted, key=lambda one: (one.margin, one.text))
    return tuple(LostText(text=one.text, label=one.label, answer=one.answer) for one in ordered)
