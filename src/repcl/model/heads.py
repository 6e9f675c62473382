"""Small trainable parts on top of the encoder."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from repcl.model.class_rows import Merge, RowOwner, mean_row

INITIAL_SPREAD = 0.02


class GrowingLinear(RowOwner):
    """A linear layer, by default without bias, that gains a row for every new class.

    Args:
        size: of a row.
        has_bias: whether a row has a bias.
        is_uniform: whether new rows and biases start as PyTorch's linear layers do, uniform in ±1/√size; else
            as BERT's, rows N(0, 0.02) and biases 0. Methods differ in this.
    """

    class_rows: ClassVar[Mapping[str, Merge]] = {"weight": mean_row, "bias": mean_row}

    def __init__(self, size: int, *, has_bias: bool = False, is_uniform: bool = False) -> None:
        super().__init__()
        self.is_uniform = is_uniform
        self.weight = nn.Parameter(torch.empty(0, size))
        self.bias = nn.Parameter(torch.empty(0)) if has_bias else None

    def grow_to(self, rows: int) -> None:
        """Add random rows until there are `rows`; old rows stay as they are."""
        missing, size = rows - len(self.weight), self.weight.shape[1]
        if missing > 0:
            fresh = self._drawn(self.weight.new_empty(missing, size), size)
            self.weight = nn.Parameter(torch.cat([self.weight.data, fresh]))
            if self.bias is not None:
                biases = self.bias.new_zeros(missing)
                fresh = self._drawn(biases, size) if self.is_uniform else biases
                self.bias = nn.Parameter(torch.cat([self.bias.data, fresh]))

    def _drawn(self, values: Tensor, size: int) -> Tensor:
        if self.is_uniform:
            return values.uniform_(-(size**-0.5), size**-0.5)
        return values.normal_(0.0, INITIAL_SPREAD)

    def forward(self, features: Tensor) -> Tensor:
        """(batch, size) -> (batch, rows)."""
        return nn.functional.linear(features, self.weight, self.bias)


class ClassifierHead(nn.Module):
    """The classifier of FEA and RepCL: dropout, one hidden layer (not for events), growing output.

    `is_uniform` says how it starts: as PyTorch's linear layers do, or as BERT's.
    """

    def __init__(
        self, size: int, hidden: int, *, has_hidden_layer: bool, dropout: float, is_uniform: bool = False
    ) -> None:
        super().__init__()
        self.hidden = nn.Sequential()
        if has_hidden_layer:
            linear = nn.Linear(size, hidden) if is_uniform else plain_linear(size, hidden)
            self.hidden = nn.Sequential(nn.Dropout(dropout), linear, nn.GELU(), nn.LayerNorm(hidden))
        self.output = GrowingLinear(hidden if has_hidden_layer else size, is_uniform=is_uniform)

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
