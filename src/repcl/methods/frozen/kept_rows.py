"""Representations of all examples ever learned, two bytes per number."""

from collections.abc import Sequence

import torch
from torch import Tensor

from repcl.errors import InvalidData
from repcl.model import RowOwner


class KeptRows(RowOwner):
    """Rows of whole numbers with the index of their class.

    Args:
        size: of a row.
    """

    other_rows = ("rows", "labels")
    rows: Tensor  # (examples, size)
    labels: Tensor  # (examples,)

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(0, size, dtype=torch.int16))
        self.register_buffer("labels", torch.zeros(0, dtype=torch.int32))

    def add(self, rows: Tensor, labels: Tensor) -> None:
        """Keep more rows, behind those already kept."""
        # the first are taken as they are, for a copy of very many takes as much memory again
        self.rows = torch.cat([self.rows, rows]) if len(self.rows) else rows
        self.labels = torch.cat([self.labels, labels.int()])

    def check(self, classes: int) -> None:
        """Raise where rows that were loaded do not belong to one of so many classes each."""
        labels = self.labels
        if len(labels) != len(self.rows) or bool(((labels < 0) | (labels >= classes)).any()):
            raise InvalidData(f"{len(self.rows)} kept embeddings do not belong to the {classes} classes")

    def of(self, label: int) -> Tensor:
        """The rows of a class."""
        return self.rows[self.labels == label]

    def find(
        self, row: Tensor, label: int, *, but_not: Sequence[int] = (), tolerance: int | None = 2
    ) -> int | None:
        """The index of the nearest row of a class; None if it differs by more than the tolerance, if any."""
        is_candidate = self.labels == label
        is_candidate[list(but_not)] = False
        candidates = is_candidate.nonzero()[:, 0]
        if not len(candidates):
            return None
        distances = (self.rows[candidates].int() - row.int()).abs().amax(dim=1)
        nearest = int(distances.argmin())
        is_near = tolerance is None or bool(distances[nearest] <= tolerance)
        return int(candidates[nearest]) if is_near else None

    def remove(self, indices: Sequence[int]) -> None:
        """Forget rows by their indices."""
        is_left = torch.ones(len(self.rows), dtype=torch.bool)
        is_left[list(indices)] = False
        self.rows, self.labels = self.rows[is_left], self.labels[is_left]

    def regroup_rows(self, groups: Sequence[Sequence[int]], classes: int) -> None:
        """Give the rows of each class to the class that it becomes part of, or forget them."""
        goes_to = torch.full((classes,), -1, dtype=torch.int64)
        for index, group in enumerate(groups):
            goes_to[list(group)] = index
        moved = goes_to[self.labels.long()].int()
        self.rows, self.labels = self.rows[moved >= 0], moved[moved >= 0]

    def absorb(self, other: "KeptRows", indices: Sequence[int]) -> None:
        """Keep the rows of another learner, whose classes have these indices here."""
        self.add(other.rows, torch.tensor(indices, dtype=torch.int64)[other.labels.long()])
