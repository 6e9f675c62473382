"""Texts of different lengths encoded in one pass without padding.

Matrix products see all tokens of all texts side by side, so a text costs what its own tokens cost. In
training, attention sees the padded batch, for it is a small part of the work. In a frozen encoder it sees the
texts of one length at a time; then a text gets the bits that it gets among texts of its own length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from repcl.data import Batch
from repcl.model.bert import additive_mask, attended, by_head
from repcl.model.lower_layers import has_plain_layers, layers_of
from repcl.model.products import is_exporting

if TYPE_CHECKING:
    from repcl.model.backbone import Backbone
    from repcl.model.encoder import Encoder

Attend = Callable[[Any, Tensor, Tensor, Tensor], Tensor]
"""What a layer's attention makes of queries, keys and values, (tokens, hidden) each and all."""


def can_pack(encoder: Encoder) -> bool:
    """Whether it is known how the encoder attends; on other devices than a CPU padding costs less."""
    config = encoder.backbone.config
    return (
        has_plain_layers(encoder.backbone)
        and not getattr(config, "is_decoder", False)
        and config._attn_implementation in ("eager", "sdpa")
        and encoder.device.type == "cpu"
        and encoder.processes.parts == 1
        and encoder.processes.precision == "no"
        and not is_exporting()  # an export is handed padded texts
    )


def padded_states(
    layers: Iterable[Any], states: Tensor, mask: Tensor, depths: Sequence[float] = (1.0,)
) -> Tensor:
    """What layers make of a padded batch, (batch, length, depths · hidden); padding comes out as zeros.

    Args:
        layers: of a transformer that can be packed.
        states: of all tokens, (batch, length, hidden).
        mask: 1 for tokens and 0 for padding, (batch, length).
        depths: of the states that are read, 0 for those given and 1 for the last.
    """
    tokens = mask.flatten().nonzero().squeeze(1)
    attend = partial(_attend_among_padding, tokens, additive_mask(mask, states.dtype))
    packed = states.flatten(end_dim=1).index_select(0, tokens)
    return _with_padding(_passed_on(layers, packed, attend, depths), tokens, mask)


def represent_packed(encoder: Encoder, batches: Sequence[Batch], fewest_tokens: int = 0) -> list[Tensor]:
    """Representations of several batches, (batch, representation_size) each; no batch has any padding.

    Args:
        encoder: that can be packed.
        batches: each of texts of one length.
        fewest_tokens: of the pass; rows that stand for no token are added where there are fewer.
    """
    backbone, readout = encoder.backbone, encoder.readout
    embeddings: Any = backbone.embeddings
    tokens = [embeddings(input_ids=batch.ids).flatten(end_dim=1) for batch in batches]
    filling = max(0, fewest_tokens - sum(map(len, tokens)))
    states = torch.cat([*tokens, tokens[0].new_zeros(filling, encoder.hidden_size)])
    attend = partial(_attend_by_length, batches, _attends_plainly(backbone))
    read = _passed_on(layers_of(backbone), states, attend, readout.depths)
    own = zip(batches, _of_batches(read, batches), strict=True)
    return [readout.pool(part.view(*batch.ids.shape, -1), batch) for batch, part in own]


def _passed_on(layers: Iterable[Any], states: Tensor, attend: Attend, depths: Sequence[float]) -> Tensor:
    """States at some depths, from those before the first layer: (tokens, depths · hidden)."""
    passed = [states]
    for layer in layers:
        attention = layer.attention.self
        projected = (part(passed[-1]) for part in (attention.query, attention.key, attention.value))
        mixed = layer.attention.output(attend(attention, *projected), passed[-1])
        passed.append(layer.feed_forward_chunk(mixed))
    return torch.cat([passed[round(depth * (len(passed) - 1))] for depth in depths], dim=1)


# ---- attention in the padded batch ----------------------------------------------------------------------


def _attend_among_padding(
    tokens: Tensor, mask: Tensor, attention: Any, query: Tensor, key: Tensor, value: Tensor
) -> Tensor:
    """Attention that sees all texts at once, where padding is masked."""
    places, size = mask[:, 0, 0], attention.attention_head_size
    parts = [by_head(_with_padding(part, tokens, places), size) for part in (query, key, value)]
    dropout = attention.dropout.p if attention.training else 0.0
    found = attended(*parts, is_plain=True, mask=mask, dropout=dropout)
    return found.transpose(1, 2).flatten(end_dim=1).flatten(start_dim=1).index_select(0, tokens)


def _with_padding(packed: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
    """States in their places: (tokens, size) -> (batch, length, size), zeros for padding."""
    empty = packed.new_zeros(mask.numel(), packed.shape[1])
    return empty.index_copy_(0, tokens, packed).view(*mask.shape, -1)


# ---- attention length by length -------------------------------------------------------------------------


def _attend_by_length(
    batches: Sequence[Batch], is_plain: bool, attention: Any, query: Tensor, key: Tensor, value: Tensor
) -> Tensor:
    """Attention that sees one batch at a time, in which no text is padded; other rows stay as they are."""
    found: list[Tensor] = []
    projected = (_of_batches(part, batches) for part in (query, key, value))
    for batch, *own in zip(batches, *projected, strict=True):
        parts = [by_head(part.view(*batch.ids.shape, -1), attention.attention_head_size) for part in own]
        mixed = attended(*parts, is_plain=is_plain)
        found.append(mixed.transpose(1, 2).reshape(batch.ids.numel(), -1))
    return torch.cat([*found, query[sum(map(len, found)) :]])


def _attends_plainly(backbone: Backbone) -> bool:
    """Whether the encoder multiplies matrices itself instead of calling torch's attention."""
    return bool(backbone.config._attn_implementation == "eager")


def _of_batches(states: Tensor, batches: Sequence[Batch]) -> Sequence[Tensor]:
    """The rows of each batch: (tokens, size) -> (tokens of the batch, size)."""
    sizes = [batch.ids.numel() for batch in batches]
    return torch.split(states[: sum(sizes)], sizes)
