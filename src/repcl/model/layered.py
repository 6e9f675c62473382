"""Readouts for frozen encoders: several spans, read from several layers.

Without training, the last layer at one token says little about a relation or an event; the layers before and
the sentence around say more. No markers are put in, for a frozen encoder has never seen them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor
from torch.nn.functional import normalize

from repcl.data import Batch, Example, InputKind
from repcl.model.readouts import Pieces, Readout, SentenceReadout, marked_pieces

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class LayeredReadout(Readout):
    """Mean states of the sentence and of each marked span, each of unit length, from two depths."""

    depths = (0.5, 0.83)  # of six layers the third and the fifth: 2 points above the third and the last
    marks: ClassVar[tuple[str, ...]]

    def pieces(self, examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase) -> Iterable[Pieces]:
        """Tokens of each text, with the spans of the whole text and of its marks."""
        for pieces in marked_pieces(examples, tokenizer, self.marks):
            yield pieces._replace(spans=[(0, len(pieces.ids)), *pieces.spans])

    def pool(self, states: Tensor, batch: Batch) -> Tensor:
        """(batch, length, depths · hidden) -> (batch, spans · depths · hidden)."""
        means = super().pool(states, batch)
        parts = means.reshape(len(means), self.width, -1)  # (batch, spans · depths, hidden)
        return normalize(parts, dim=2).flatten(start_dim=1)


class LayeredRelationReadout(LayeredReadout):
    """The sentence, its head and its tail."""

    kind, width, marks = "relation", 6, ("head", "tail")


class LayeredEventReadout(LayeredReadout):
    """The sentence and its trigger."""

    kind, width, marks = "event", 4, ("trigger",)


FROZEN_READOUTS: dict[InputKind, type[Readout]] = {
    "sentence": SentenceReadout,
    "relation": LayeredRelationReadout,
    "event": LayeredEventReadout,
}
