"""Answers beside the labels that texts have: how many are right, of each label too, and what is confused."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Generic, TypeVar

NONE = "–"
"""Stands in a confusion where a label was missed and none added, or the other way round."""

Asked = TypeVar("Asked", covariant=True)


@dataclass(frozen=True)
class JudgedText(Generic[Asked]):
    """What was asked about, with the labels that it has and those that it gets."""

    asked: Asked
    wanted: frozenset[str]
    found: frozenset[str]
    confidence: float

    @property
    def is_right(self) -> bool:
        """Whether it gets exactly its labels."""
        return self.wanted == self.found

    def confusions(self) -> list[tuple[str, str]]:
        """Each label that was missed, with each that was added in its place; none where it is right."""
        if self.is_right:
            return []
        missed, added = sorted(self.wanted - self.found), sorted(self.found - self.wanted)
        return list(product(missed or [NONE], added or [NONE]))


@dataclass(frozen=True)
class LabelScore:
    """How a label is answered: texts that have it, texts that get it, and texts that have and get it."""

    label: str
    texts: int
    answered: int
    right: int

    @property
    def recall(self) -> float:
        """The share of its texts that get it."""
        return self.right / self.texts

    @property
    def precision(self) -> float | None:
        """The share of texts that get it and have it; None where none gets it."""
        return self.right / self.answered if self.answered else None

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.right / (self.texts + self.answered)


def scores_by_label(judged: Sequence[JudgedText[object]]) -> list[LabelScore]:
    """The scores of every label that a text has, by name."""
    texts = Counter(label for one in judged for label in one.wanted)
    answered = Counter(label for one in judged for label in one.found)
    right = Counter(label for one in judged for label in one.wanted & one.found)
    return [LabelScore(label, texts[label], answered[label], right[label]) for label in sorted(texts)]
