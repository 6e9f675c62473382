"""Readouts for frozen encoders: several spans, read from several layers.

Without training, several layers together say more than the last one alone. For a relation or an event the
sentence around it helps as well. No markers are put in, for a frozen encoder has never seen them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from repcl.data import Example, InputKind
from repcl.model.readouts import Pieces, Readout, SentenceReadout, marked_pieces

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

    from repcl.data import Batch

LAST_LAYER = (1.0,)
FROZEN_DEPTHS: Mapping[InputKind, tuple[float, ...]] = {
    "sentence": (0.67, 0.83, 1.0),  # of six layers the last three
    "relation": (0.5, 0.83),  # the third and the fifth: 2 points above the third and the last
    "event": (0.5, 0.83),
}
"""How deep a frozen encoder is read for each input kind, unless a user says otherwise."""


class LayeredReadout(Readout):
    """Mean states of the sentence and of each marked span, each of unit length, from several depths.

    Args:
        depths: 0 for the word embeddings, 1 for the last layer.
    """

    marks: ClassVar[tuple[str, ...]] = ()

    def __init__(self, depths: tuple[float, ...]) -> None:
        self.depths = depths
        self.width = (1 + len(self.marks)) * len(depths)

    def pieces(self, examples: Sequence[Example], tokenizer: Tokenizer) -> Iterable[Pieces]:
        """Tokens of each text, with the spans of the whole text and of its marks."""
        for pieces in marked_pieces(examples, tokenizer, self.marks):
            yield pieces._replace(spans=[(0, len(pieces.ids)), *pieces.spans])

    def pool(self, states: Tensor, batch: Batch) -> Tensor:
        """(batch, length, depths · hidden) -> (batch, spans · depths · hidden)."""
        from torch.nn.functional import normalize

        means = super().pool(states, batch)
        parts = means.reshape(means.shape[0], self.width, -1)  # (batch, spans · depths, hidden)
        return normalize(parts, dim=2).flatten(start_dim=1)


class LayeredSentenceReadout(LayeredReadout, SentenceReadout):
    """The sentence, special tokens included."""

    kind = "sentence"
    pieces = SentenceReadout.pieces


class LayeredRelationReadout(LayeredReadout):
    """The sentence, its head and its tail."""

    kind, marks = "relation", ("head", "tail")


class LayeredEventReadout(LayeredReadout):
    """The sentence and its trigger."""

    kind, marks = "event", ("trigger",)


LAYERED: Mapping[InputKind, type[LayeredReadout]] = {
    "sentence": LayeredSentenceReadout,
    "relation": LayeredRelationReadout,
    "event": LayeredEventReadout,
}


def frozen_readout(kind: InputKind, depths: tuple[float, ...]) -> Readout:
    """How a frozen encoder is read at these depths."""
    is_plain = kind == "sentence" and depths == LAST_LAYER
    return SentenceReadout() if is_plain else LAYERED[kind](depths)
