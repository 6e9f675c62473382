"""Representations of all examples ever learned, two bytes a number."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from repcl.errors import InvalidData


class KeptRows(nn.Module):
    """Rows of whole numbers with the place of their class.

    Args:
        size: of a row.
    """

    rows: Tensor  # (examples, size)
    labels: Tensor  # (examples,)

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(0, size, dtype=torch.int16))
        self.register_buffer("labels", torch.zeros(0, dtype=torch.int32))

    def add(self, rows: Tensor, labels: Tensor) -> None:
        """Keep more rows, behind those already kept."""
        self.rows = torch.cat([self.rows, rows])
        self.labels = torch.cat([self.labels, labels.int()])

    def check(self, classes: int) -> None:
        """Raise where rows that were loaded do not belong to one of so many classes each."""
        labels = self.labels
        if len(labels) != len(self.rows) or bool(((labels < 0) | (labels >= classes)).any()):
            raise InvalidData(f"{len(self.rows)} kept embeddings do not belong to the {classes} classes")

    def of(self, place: int) -> Tensor:
        """The rows of a class."""
        return self.rows[self.labels == place]

    def find(self, row: Tensor, place: int, *, but_not: Sequence[int] = (), tolerance: int = 2) -> int | None:
        """The number of the nearest row of a class, unless it differs by more than rounding."""
        is_candidate = self.labels == place
        is_candidate[list(but_not)] = False
        candidates = is_candidate.nonzero()[:, 0]
        if not len(candidates):
            return None
        distances = (self.rows[candidates].int() - row.int()).abs().amax(dim=1)
        nearest = int(distances.argmin())
        return int(candidates[nearest]) if distances[nearest] <= tolerance else None

    def remove(self, numbers: Sequence[int]) -> None:
        """Forget rows by their numbers."""
        is_left = torch.ones(len(self.rows), dtype=torch.bool)
        is_left[list(numbers)] = False
        self.rows, self.labels = self.rows[is_left], self.labels[is_left]

    def regroup(self, places: Tensor) -> None:
        """Move the rows of each class to the class at its new place, or forget them where it is -1."""
        moved = places[self.labels.long()].int()
        self.rows, self.labels = self.rows[moved >= 0], moved[moved >= 0]

    def absorb(self, other: "KeptRows", places: Sequence[int]) -> None:
        """Keep the rows of another learner, whose classes stand at `places` here."""
        self.add(other.rows, torch.tensor(places, dtype=torch.int64)[other.labels.long()])
