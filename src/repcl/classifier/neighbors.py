"""Kept texts that are like a text: what an answer can be explained by."""

from collections.abc import Sequence
from typing import NamedTuple

from repcl.classifier.answering import Scores
from repcl.classifier.inputs import Label, are_empty, as_label, common_kind
from repcl.classifier.state import ClassifierState
from repcl.classifier.vectors import Vectors, embed
from repcl.data import Example
from repcl.errors import InvalidSetting


class Neighbor(NamedTuple):
    """A kept text with its label, and how like it is: 1 the same, 0 unrelated."""

    text: str
    label: Label
    similarity: float


def nearest_texts(state: ClassifierState, examples: Sequence[Example], k: int) -> list[list[Neighbor]]:
    """For each example the kept texts that are most like it, the nearest first.

    Args:
        state: holds the kept texts.
        examples: to be explained; an empty text is like none.
        k: how many.
    """
    kept = state.kept_texts()
    if not kept:
        raise InvalidSetting(
            "Expected kept texts to compare with, found none: learn with holdout_per_class above 0, or by a "
            "method that keeps exemplars."
        )
    return nearest_of(state, kept, embed(state, kept), examples, k)


def nearest_of(
    state: ClassifierState, kept: Sequence[Example], rows: Vectors, examples: Sequence[Example], k: int
) -> list[list[Neighbor]]:
    """The same among texts whose vectors, (kept, size), are there already."""
    is_empty = are_empty(examples)
    asked = [example for example, says_nothing in zip(examples, is_empty, strict=True) if not says_nothing]
    common_kind(asked, state.kind)
    found = iter(embed(state, asked) @ rows.T)
    return [[] if says_nothing else _nearest(state, kept, next(found), k) for says_nothing in is_empty]


def _nearest(state: ClassifierState, kept: Sequence[Example], similarities: Scores, k: int) -> list[Neighbor]:
    best = (-similarities).argsort(kind="stable")[:k]
    return [
        Neighbor(kept[index].text, as_label(kept[index].label, state.label_type), float(similarities[index]))
        for index in best
    ]
