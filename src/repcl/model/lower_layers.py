"""The lower layers of an encoder, frozen: what they make of a text is computed once in a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from repcl.data import Batch
from repcl.errors import InvalidSetting
from repcl.model.bert import additive_mask

if TYPE_CHECKING:
    from repcl.model.backbone import Backbone

# Their transformers are embeddings, then layers that take states and an additive mask.
FAMILIES = ("bert", "camembert", "electra", "roberta", "xlm-roberta")
LARGEST_CACHE = 1 << 28

Ids = tuple[int, ...]


class LowerLayers:
    """The word embeddings and the first layers of a transformer, which never learn.

    Args:
        backbone: the transformer.
        share: of its layers, rounded to whole layers.
    """

    def __init__(self, backbone: Backbone, share: float) -> None:
        if not has_plain_layers(backbone):
            raise InvalidSetting(
                f"Expected an encoder of type {', '.join(FAMILIES)} to freeze layers of, found "
                f"{backbone.config.model_type}: set frozen_layers = 0, or choose another encoder."
            )
        self.share = share
        self.number = round(share * backbone.config.num_hidden_layers)
        self._wanted: set[Ids] = set()
        self._kept: dict[Ids, Tensor] = {}
        self._bytes = 0

    def freeze(self, backbone: Backbone) -> None:
        """Let no parameter below the cut learn."""
        for part in self._parts(backbone):
            part.requires_grad_(False)

    @contextmanager
    def kept_for(self, rows: Iterable[Ids]) -> Iterator[None]:
        """Keep states of these texts, once they are computed, until the end."""
        self._wanted = set(rows)
        try:
            yield
        finally:
            self._wanted, self._kept, self._bytes = set(), {}, 0

    def states(
        self, backbone: Backbone, batch: Batch, perturbation: Tensor | None, segments: Tensor | None
    ) -> Tensor:
        """States of the last layer, (batch, length, hidden); a perturbation is added at the cut."""
        mask = additive_mask(batch.mask, next(backbone.parameters()).dtype)
        with torch.no_grad():
            states = self._at_the_cut(backbone, batch, mask, segments)
        if perturbation is not None:
            states = states + perturbation
        for layer in layers_of(backbone)[self.number :]:
            states = layer(states, mask)
        return states

    def _at_the_cut(self, backbone: Backbone, batch: Batch, mask: Tensor, segments: Tensor | None) -> Tensor:
        if segments is not None or not self._wanted:
            return self._computed(backbone, batch.ids, mask, segments)
        lengths = batch.mask.sum(dim=1).tolist()
        keys = [tuple(row[:length]) for row, length in zip(batch.ids.tolist(), lengths, strict=True)]
        missing = [number for number, key in enumerate(keys) if key not in self._kept]
        width = backbone.config.hidden_size
        states = torch.zeros(*batch.ids.shape, width, device=batch.ids.device)
        if missing:
            computed = self._computed(backbone, batch.ids[missing], mask[missing], None).to(states.dtype)
            states[missing] = computed
            for number, row in zip(missing, computed, strict=True):
                self._keep(keys[number], row[: lengths[number]])
        for number in set(range(len(keys))) - set(missing):
            states[number, : lengths[number]] = self._kept[keys[number]]
        return states

    def _keep(self, key: Ids, states: Tensor) -> None:
        if key in self._wanted and self._bytes + states.nbytes <= LARGEST_CACHE:
            self._kept[key] = states.clone()
            self._bytes += states.nbytes

    def _computed(self, backbone: Backbone, ids: Tensor, mask: Tensor, segments: Tensor | None) -> Tensor:
        for part in self._parts(backbone):
            part.eval()  # dropout would give a text other states every time
        embeddings: Any = backbone.embeddings
        states: Tensor = embeddings(input_ids=ids, token_type_ids=segments)
        for layer in layers_of(backbone)[: self.number]:
            states = layer(states, mask)
        return states

    def _parts(self, backbone: Backbone) -> list[nn.Module]:
        embeddings: Any = backbone.embeddings
        return [embeddings, *layers_of(backbone)[: self.number]]


def has_plain_layers(backbone: Backbone) -> bool:
    """Whether the transformer is embeddings and then layers, nothing between and no other order."""
    return backbone.config.model_type in FAMILIES and not hasattr(backbone, "embeddings_project")


def layers_of(backbone: Backbone) -> nn.ModuleList:
    """The layers of such a transformer, from below."""
    inner: Any = backbone.encoder
    layers: nn.ModuleList = inner.layer
    return layers
