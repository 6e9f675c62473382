"""Small trainable parts on top of the encoder."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from repcl.model.class_rows import Merge, RowOwner, mean_row

INITIAL_SPREAD = 0.02


class GrowingLinear(RowOwner):
    """A linear layer, by default without bias, that gains a row for every new class."""

    class_rows: ClassVar[Mapping[str, Merge]] = {"weight": mean_row, "bias": mean_row}

    def __init__(self, size: int, *, has_bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(0, size))
        self.bias = nn.Parameter(torch.empty(0)) if has_bias else None

    def grow_to(self, rows: int) -> None:
        """Add rows drawn from N(0, 0.02), bias 0, until there are `rows`; old rows stay as they are."""
        missing = rows - len(self.weight)
        if missing > 0:
            fresh = self.weight.new_empty(missing, self.weight.shape[1]).normal_(0.0, INITIAL_SPREAD)
            self.weight = nn.Parameter(torch.cat([self.weight.data, fresh]))
            if self.bias is not None:
                self.bias = nn.Parameter(torch.cat([self.bias.data, self.bias.new_zeros(missing)]))

    def forward(self, features: Tensor) -> Tensor:
        """(batch, size) -> (batch, rows)."""
        return nn.functional.linear(features, self.weight, self.bias)


class ClassifierHead(nn.Module):
    """The classifier of FEA and RepCL: dropout, one hidden layer (not for events), growing output."""

    def __init__(self, size: int, hidden: int, *, has_hidden_layer: bool, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Sequential()
        if has_hidden_layer:
            self.hidden = nn.Sequential(
                nn.Dropout(dropout), plain_linear(size, hidden), nn.GELU(), nn.LayerNorm(hidden)
            )
        self.output = GrowingLinear(hidden if has_hidden_layer else size)

    def features(self, representation: Tensor) -> Tensor:
        """What exemplars are chosen by: the hidden layer's output."""
        features: Tensor = self.hidden(representation)
        return features

    def forward(self, representation: Tensor) -> Tensor:
        """Scores of all classes the head has rows for, (batch, rows)."""
        scores: Tensor = self.output(self.features(representation))
        return scores


def plain_linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer that starts as BERT's do: weights N(0, 0.02), bias 0."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=INITIAL_SPREAD)
    nn.init.zeros_(layer.bias)
    return layer
