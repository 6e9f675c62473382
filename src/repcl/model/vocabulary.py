"""The word embeddings of the tokens that can occur while a task is learned, apart from all others.

Half of a small encoder's numbers are word embeddings, and a task with its memory holds a few thousand rows of
them. Only these take part in gradients, clipping, AdamW and moving averages; the others get at the end what
AdamW would have done to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from repcl.model.encoder import Encoder


class OccurringRows(nn.Embedding):
    """The rows of a table for some ids, looked up by the ids that they have in the whole table.

    Args:
        table: the whole table, which stays as it is.
        ids: (rows,) ascending, of those that may be looked up.
        others_learn: whether all other rows are trained as well, as outputs that are never looked up.
    """

    others: nn.Parameter | None
    indices: Tensor
    ids: Tensor
    other_ids: Tensor

    def __init__(self, table: nn.Embedding, ids: Tensor, *, others_learn: bool) -> None:
        is_other = torch.ones(len(table.weight), dtype=torch.bool, device=ids.device)
        is_other[ids] = False
        indices = torch.full_like(is_other, -1, dtype=torch.long)  # -1 is refused where it is looked up
        indices[ids] = torch.arange(len(ids), device=ids.device)
        padding = table.padding_idx
        super().__init__(
            len(ids),
            table.embedding_dim,
            padding_idx=None if padding is None else int(indices[padding]),
            _weight=table.weight.detach()[ids],
            _freeze=not table.weight.requires_grad,
        )
        self.register_buffer("indices", indices, persistent=False)
        self.register_buffer("ids", ids, persistent=False)
        self.register_buffer("other_ids", is_other.nonzero()[:, 0], persistent=False)
        is_needed = others_learn and table.weight.requires_grad and len(self.other_ids)
        self.others = nn.Parameter(table.weight.detach()[self.other_ids]) if is_needed else None
        self._before = table.weight.detach()
        self.decay = 1.0
        """What AdamW's weight decay has made of the other rows, where they do not learn."""

    def forward(self, ids: Tensor) -> Tensor:
        """The embeddings of tokens, (..., dim)."""
        return super().forward(self.indices[ids])

    def follow_decay(self, optimizer: torch.optim.Optimizer) -> None:
        """Keep count of the decay that every step of this optimizer would apply to the other rows."""

        def count(optimizer: torch.optim.Optimizer, *_: Any) -> None:
            for group in optimizer.param_groups:
                if self.weight.grad is not None and any(one is self.weight for one in group["params"]):
                    self.decay *= 1.0 - group["lr"] * group["weight_decay"]

        optimizer.register_step_pre_hook(count)

    @torch.no_grad()
    def whole(self) -> Tensor:
        """The whole table with all rows as they have become."""
        table = self._before * self.decay
        if self.others is not None:
            table[self.other_ids] = self.others
        table[self.ids] = self.weight
        return table


@contextmanager
def only_rows(encoder: Encoder, ids: Tensor, *, others_learn: bool = False) -> Iterator[None]:
    """Let an encoder learn with the word embeddings of these ids alone; inside itself it changes nothing.

    Args:
        encoder: whose table is exchanged until the end.
        ids: (rows,) of all tokens that it will be shown.
        others_learn: whether the other rows learn as outputs.
    """
    table = encoder.word_embeddings
    if isinstance(table, OccurringRows):
        yield
        return
    rows = OccurringRows(table, ids.to(encoder.device), others_learn=others_learn)
    encoder.backbone.set_input_embeddings(rows)
    try:
        yield
    finally:
        table.weight.data.copy_(rows.whole())
        encoder.backbone.set_input_embeddings(table)


def follow_decay(module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Let exchanged tables in a module keep count of an optimizer's weight decay."""
    for part in module.modules():
        if isinstance(part, OccurringRows):
            part.follow_decay(optimizer)


def output_rows(table: nn.Embedding) -> list[Tensor]:
    """What scores of all tokens are made with: the rows that can be looked up, then all others that learn."""
    others = table.others if isinstance(table, OccurringRows) else None
    return [table.weight] if others is None else [table.weight, others]


def output_indices(table: nn.Embedding, ids: Tensor) -> Tensor:
    """Where tokens with these ids stand among the scores."""
    return table.indices[ids] if isinstance(table, OccurringRows) else ids


def drop_other_rows(table: nn.Embedding) -> None:
    """Keep only the rows that can be looked up, in a copy that predicts no tokens."""
    if isinstance(table, OccurringRows):
        table.others = None
