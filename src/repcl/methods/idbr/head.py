"""IDBR's head: a representation is split into generic and task-specific features."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from repcl.model import ClassifierHead, GrowingLinear, Merge


class Reading(NamedTuple):
    """What the head makes of representations; all have one row for each."""

    generic: Tensor  # (rows, width)
    specific: Tensor  # (rows, width)
    class_scores: Tensor  # (rows, classes)
    order_scores: Tensor  # (rows, 2)
    task_scores: Tensor  # (rows, tasks)


class DisentangledHead(ClassifierHead):
    """Two small encoders; classes are told by both parts, the order of halves by one, tasks by the other.

    Args:
        size: of a representation.
        width: of either part.
        task_speed: how much faster than the rest the task scores learn.
    """

    def __init__(self, size: int, width: int, *, task_speed: float) -> None:
        super().__init__(2 * width, 2 * width, has_hidden_layer=False, dropout=0.0)
        self.generic = nn.Sequential(nn.Linear(size, width), nn.Tanh())
        self.specific = nn.Sequential(nn.Linear(size, width), nn.Tanh())
        self.output = GrowingLinear(2 * width, has_bias=True)
        self.order = nn.Linear(width, 2)
        self.task = FasterLinear(width, speed=task_speed)

    def features(self, representation: Tensor) -> Tensor:
        """Generic and specific features side by side, (batch, 2 · width)."""
        return torch.cat([self.generic(representation), self.specific(representation)], dim=1)

    def read(self, representation: Tensor) -> Reading:
        """All that the head says."""
        features = self.features(representation)
        generic, specific = features.chunk(2, dim=1)
        return Reading(generic, specific, self.output(features), self.order(generic), self.task(specific))


class FasterLinear(GrowingLinear):
    """A layer with a row for each task that learns `speed` times as fast as others at the same rate.

    Adam's steps do not depend on the size of gradients, so a factor behind the weights multiplies the rate.
    """

    class_rows: ClassVar[Mapping[str, Merge]] = {}
    other_rows = ("weight", "bias")

    def __init__(self, size: int, *, speed: float) -> None:
        super().__init__(size, has_bias=True)
        self.speed = speed

    def grow_to(self, rows: int) -> None:
        """Add rows that together with the factor are drawn from N(0, 0.02)."""
        old = len(self.weight)
        super().grow_to(rows)
        self.weight.data[old:] /= self.speed

    def forward(self, features: Tensor) -> Tensor:
        """(batch, size) -> (batch, rows)."""
        return self.speed * super().forward(features)
