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
    """

    def __init__(self, size: int, width: int) -> None:
        super().__init__(2 * width, 2 * width, has_hidden_layer=False, dropout=0.0)
        self.generic = nn.Sequential(nn.Linear(size, width), nn.Tanh())
        self.specific = nn.Sequential(nn.Linear(size, width), nn.Tanh())
        self.output = GrowingLinear(2 * width, has_bias=True, is_uniform=True)
        self.order = nn.Linear(width, 2)
        self.task = TaskScores(width, has_bias=True, is_uniform=True)

    def features(self, representation: Tensor) -> Tensor:
        """Generic and specific features side by side, (batch, 2 · width)."""
        return torch.cat([self.generic(representation), self.specific(representation)], dim=1)

    def read(self, representation: Tensor) -> Reading:
        """All that the head says."""
        features = self.features(representation)
        generic, specific = features.chunk(2, dim=1)
        return Reading(generic, specific, self.output(features), self.order(generic), self.task(specific))


class TaskScores(GrowingLinear):
    """A layer with a row for each task: classes come and go, tasks stay."""

    class_rows: ClassVar[Mapping[str, Merge]] = {}
    other_rows = ("weight", "bias")
