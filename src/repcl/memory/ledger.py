"""The ledger of a learner on a frozen encoder: sums of features and, if wanted, all representations."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from repcl.errors import InvalidData, InvalidSetting
from repcl.memory.rows import KeptRows
from repcl.memory.sums import ClassSums, Moments

CHUNK = 1024

Features = Callable[[Tensor, int], Tensor]
"""From representations on the grid and the number of a sum to whole numbers in float64, (examples, size)."""


class Ledger(nn.Module):
    """Books examples in and out, exactly.

    Args:
        size: of a representation.
        sums: what is summed up; none when the representations are all that is needed.
        keeps_rows: whether every representation is kept.
    """

    def __init__(self, size: int, sums: Sequence[ClassSums], *, keeps_rows: bool) -> None:
        super().__init__()
        self.sums = nn.ModuleList(sums)
        self.kept = KeptRows(size)
        self.keeps_rows = keeps_rows

    def parts(self) -> list[ClassSums]:
        """The sums, as what they are."""
        return [part for part in self.sums if isinstance(part, ClassSums)]

    def moments(self) -> list[Moments]:
        """Those of the sums that hold products of features."""
        return [part for part in self.sums if isinstance(part, Moments)]

    def class_sizes(self, classes: int) -> Tensor:
        """Number of examples of each class, (classes,)."""
        if self.keeps_rows:
            return torch.bincount(self.kept.labels, minlength=classes)
        return self.parts()[0].counts

    def grow_to(self, classes: int) -> None:
        """Make room for new classes at the end."""
        for part in self.parts():
            part.grow_to(classes)

    def book_in(self, rows: Tensor, labels: Tensor, features: Features) -> None:
        """Count examples."""
        self._count(rows, labels, features, sign=1)
        if self.keeps_rows:
            self.kept.add(rows, labels)

    def book_out(self, rows: Tensor, labels: Tensor, features: Features) -> None:
        """Take away examples that were counted; among kept rows, those that differ by rounding at most."""
        if self.keeps_rows:
            numbers: list[int] = []
            for row, place in zip(rows, labels.tolist(), strict=True):
                found = self.kept.find(row, place, but_not=numbers)
                if found is None:
                    raise InvalidData("A text is to be forgotten that was never learned with that label.")
                numbers.append(found)
            rows = self.kept.rows[numbers]
            self.kept.remove(numbers)
        self._count(rows, labels, features, sign=-1)

    def regroup(self, places: Tensor, classes: int, features: Features) -> None:
        """Move each class to a new place, or out; classes that meet become one.

        Args:
            places: (old classes,) where each goes, -1 for nowhere.
            classes: how many there are afterwards.
            features: of representations.
        """
        sizes = self.class_sizes(len(places))
        for place in [place for place, goes in enumerate(places.tolist()) if goes < 0 and sizes[place] > 0]:
            self._take_out(place, features)
        for part in self.parts():
            part.regroup(places, classes)
        self.kept.regroup(places)

    def absorb(self, other: "Ledger", places: Sequence[int]) -> None:
        """Add another ledger, whose classes stand at `places` here."""
        for part, others in zip(self.parts(), other.parts(), strict=True):
            part.absorb(others, places)
        self.kept.absorb(other.kept, places)

    def _take_out(self, place: int, features: Features) -> None:
        """Take a class out of the products, which are not kept class by class."""
        if not self.moments():
            return
        if not self.keeps_rows:
            raise InvalidSetting(
                "To forget a class without its texts a learner needs keep_embeddings = true, this one has "
                "false: give it the texts to forget (forget_examples)."
            )
        rows = self.kept.of(place)
        self._count(rows, torch.full((len(rows),), place), features, sign=-1)

    def _count(self, rows: Tensor, labels: Tensor, features: Features, *, sign: int) -> None:
        for number, part in enumerate(self.parts()):
            for start in range(0, len(rows), CHUNK):
                chunk = features(rows[start : start + CHUNK], number)
                part.add(chunk, labels[start : start + CHUNK], sign=sign)
