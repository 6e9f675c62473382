"""Which texts to label next: those that the classifier is unsure about, each standing for many others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repcl.classifier.answering import Scores
from repcl.classifier.inputs import as_examples, common_kind
from repcl.classifier.known import same_text
from repcl.classifier.state import ClassifierState
from repcl.classifier.vectors import Vectors, embed, kept
from repcl.data import Example
from repcl.errors import InvalidSetting

LARGEST_POOL = 4000
"""Texts that are compared with each other; of more, the ones that the classifier is least sure about."""
LEARNED_BLOCK = 1024
RARELY_ALONE = 0.5
"""Cosine from which on a text counts as one that a suggested text stands for."""


@dataclass(frozen=True)
class Suggestion:
    """A text to label next.

    Attributes:
        index: of the text among those given.
        text: itself.
        likely: the most likely classes, at most two, the best first; one where the text is of that class.
        confidence: probability of the best.
        is_unknown: whether the classifier would call it unknown.
        stands_for: how many of the texts given are most like this one among those suggested, itself included.
    """

    index: int
    text: str
    likely: tuple[str, ...]
    confidence: float
    is_unknown: bool
    stands_for: int

    @property
    def reason(self) -> str:
        """Why to label it, in a few words."""
        if self.is_unknown:
            about = f"unknown, perhaps {self.likely[0]}"
        elif len(self.likely) > 1:
            about = f"{self.likely[0]} or {self.likely[1]}"
        else:
            about = f"probably {self.likely[0]}"
        alike = self.stands_for - 1
        return f"{about}; {alike} more like it" if alike else about


def suggest(state: ClassifierState, texts: Any, most: int = 20) -> list[Suggestion]:
    """Choose texts whose labels would teach the classifier most, the most useful first.

    Texts that are kept as learned ones, empty texts and repetitions are left out. The others want to be near
    a labeled text, the more so the less sure the classifier is about them; texts are chosen one after
    another, each so that it brings them closest, beyond what learned and already chosen texts do.

    Args:
        state: of the classifier.
        texts: a sequence of str or of `Example`.
        most: how many to choose; fewer if there are not as many.
    """
    if most < 1:
        raise InvalidSetting(f"Expected at least 1 text to suggest, found {most}.")
    examples = as_examples(texts)
    common_kind(examples, state.kind)
    indices = _worth_asking(state, examples)
    if not indices:
        return []
    found = state.probabilities([examples[index] for index in indices])
    doubt = 1 - found.max(axis=1)
    pool = np.argsort(-doubt, kind="stable")[:LARGEST_POOL]
    chosen_from = [examples[indices[at]] for at in pool]
    vectors = embed(state, chosen_from)
    closeness = _closeness(vectors, vectors)
    chosen = choose(closeness, doubt[pool], most, covered=_covered(vectors, kept(state)[0]))
    sizes = _followers(closeness, chosen)
    likely = found[pool[chosen]]
    unknown = _unknown(state, [chosen_from[at] for at in chosen])
    return [
        Suggestion(
            index=indices[pool[at]],
            text=chosen_from[at].text,
            likely=_likely(state.method.classes, row),
            confidence=float(row.max()),
            is_unknown=bool(is_unknown),
            stands_for=size,
        )
        for at, row, is_unknown, size in zip(chosen, likely, unknown, sizes, strict=True)
    ]


def choose(closeness: Vectors, doubt: Vectors, most: int, covered: Vectors) -> list[int]:
    """Greedy choice of texts: each adds most to Σ doubt · closeness to the nearest labeled text.

    Args:
        closeness: of each text (row) to each candidate (column), from 0 to 1.
        doubt: weight of each text.
        most: how many to choose.
        covered: closeness of each text to the nearest learned one.
    """
    covered, chosen = covered.copy(), []
    is_left = np.ones(len(doubt), dtype=bool)
    for _ in range(min(most, len(doubt))):
        gain = doubt @ np.maximum(closeness - covered[:, None], 0)
        best = int(np.where(is_left, gain, -1).argmax())
        chosen.append(best)
        is_left[best] = False
        covered = np.maximum(covered, closeness[:, best])
    return chosen


def _worth_asking(state: ClassifierState, examples: Sequence[Example]) -> list[int]:
    """Indices of texts that are not empty and not kept as learned ones, each text once."""
    seen = {same_text(example) for example in [*state.method.memory, *state.held_out]}
    indices = []
    for index, example in enumerate(examples):
        plain = same_text(example)
        if example.text.strip() and plain not in seen:
            seen.add(plain)
            indices.append(index)
    return indices


def _closeness(vectors: Vectors, others: Vectors) -> Vectors:
    close: Vectors = np.clip(vectors @ others.T, 0.0, 1.0)
    return close


def _covered(vectors: Vectors, learned: Vectors) -> Vectors:
    """Closeness of each text to the nearest learned one that is kept; 0 where none is."""
    nearest = np.zeros(len(vectors))
    for start in range(0, len(learned), LEARNED_BLOCK):
        block = learned[start : start + LEARNED_BLOCK]
        nearest = np.maximum(nearest, _closeness(vectors, block).max(axis=1))
    return nearest


def _followers(closeness: Vectors, chosen: Sequence[int]) -> list[int]:
    """How many texts have each chosen one as the nearest of the chosen, if it is near at all."""
    to_chosen = closeness[:, list(chosen)]
    nearest = to_chosen.argmax(axis=1)
    is_near = to_chosen.max(axis=1) >= RARELY_ALONE
    nearest[list(chosen)], is_near[list(chosen)] = np.arange(len(chosen)), True
    return [int(size) for size in np.bincount(nearest[is_near], minlength=len(chosen))]


def _unknown(state: ClassifierState, examples: Sequence[Example]) -> NDArray[np.bool_]:
    if state.calibration.threshold is None:
        return np.zeros(len(examples), dtype=bool)
    return state.unknown_rule().applies(state.evidence(examples))


def _likely(names: Sequence[str], row: Scores) -> tuple[str, ...]:
    best = np.argsort(-row, kind="stable")[:2]
    return tuple(names[index] for index in best if row[index] >= row[best[0]] / 2)
