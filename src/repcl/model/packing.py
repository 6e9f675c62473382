"""Texts of different lengths encoded in one pass without padding.

Matrix products see all tokens of all texts side by side; attention sees the texts of one length at a time. So
a text costs what its own tokens cost, and it gets the bits that it gets among texts of its own length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from repcl.data import Batch
from repcl.model.lower_layers import has_plain_layers, layers_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from repcl.model.encoder import Encoder


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
    )


def represent_packed(encoder: Encoder, batches: Sequence[Batch]) -> list[Tensor]:
    """Representations of several batches, (batch, representation_size) each; no batch has any padding."""
    backbone, readout = encoder.backbone, encoder.readout
    embeddings: Any = backbone.embeddings
    states = torch.cat([embeddings(input_ids=batch.ids).flatten(end_dim=1) for batch in batches])
    passed = [states]
    for layer in layers_of(backbone):
        states = _passed(layer, states, batches, is_plain=_attends_plainly(backbone))
        passed.append(states)
    read = torch.cat([passed[round(depth * (len(passed) - 1))] for depth in readout.depths], dim=1)
    own = zip(batches, _of_batches(read, batches), strict=True)
    return [readout.pool(part.view(*batch.ids.shape, -1), batch) for batch, part in own]


def _passed(layer: Any, states: Tensor, batches: Sequence[Batch], *, is_plain: bool) -> Tensor:
    """What a layer makes of states: (tokens, hidden) -> (tokens, hidden)."""
    attention = layer.attention.self
    projected = [part(states) for part in (attention.query, attention.key, attention.value)]
    attended = []
    for batch, *parts in zip(batches, *(_of_batches(one, batches) for one in projected), strict=True):
        shape = (*batch.ids.shape, -1, attention.attention_head_size)
        by_head = [part.view(shape).transpose(1, 2) for part in parts]  # (batch, heads, length, head size)
        found = _attended(*by_head, is_plain=is_plain)
        attended.append(found.transpose(1, 2).reshape(batch.ids.numel(), -1))
    mixed = layer.attention.output(torch.cat(attended), states)
    following: Tensor = layer.feed_forward_chunk(mixed)
    return following


def _attended(query: Tensor, key: Tensor, value: Tensor, *, is_plain: bool) -> Tensor:
    """Values weighted by attention; each text attends to itself alone."""
    if not is_plain:
        return nn.functional.scaled_dot_product_attention(query, key, value)
    weights = torch.matmul(query, key.transpose(2, 3)) * query.shape[-1] ** -0.5
    return torch.matmul(nn.functional.softmax(weights, dim=-1), value)


def _attends_plainly(backbone: PreTrainedModel) -> bool:
    """Whether the encoder multiplies matrices itself instead of calling torch's attention."""
    return bool(backbone.config._attn_implementation == "eager")


def _of_batches(states: Tensor, batches: Sequence[Batch]) -> Sequence[Tensor]:
    """The rows of each batch: (tokens, size) -> (tokens of the batch, size)."""
    return torch.split(states, [batch.ids.numel() for batch in batches])
