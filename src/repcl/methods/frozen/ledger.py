"""The ledger of a learner on a frozen encoder: sums of features and, if wanted, all representations."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from repcl.errors import InvalidData, InvalidSetting
from repcl.methods.frozen.kept_rows import KeptRows
from repcl.methods.frozen.sums import ClassSums, Moments

CHUNK = 1024
ROUNDING = 2
"""Steps by which the same text's representation may differ from one computation to the next."""

Features = Callable[[Tensor, int], Tensor]
"""From representations on the grid and the number of a sum to whole numbers in float64, (examples, size)."""


class Ledger(nn.Module):
    """Adds examples and takes them away again, without rounding.

    Args:
        size: of a representation.
        sums: what is summed up; none when the representations are all that is needed.
        keeps_rows: whether every representation is kept.
    """

    tolerance_of_known: int | None = None
    """By how much the row of a text that was learned may differ; by anything, for it is there."""

    def __init__(self, size: int, sums: Sequence[ClassSums], *, keeps_rows: bool) -> None:
        super().__init__()
        self.sums = nn.ModuleList(sums)
        self.kept = KeptRows(size)
        self.keeps_rows = keeps_rows

    def parts(self) -> list[ClassSums]:
        """All sums."""
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
        """Add examples."""
        self._count(rows, labels, features, sign=1)
        if self.keeps_rows:
            self.kept.add(rows, labels)

    def book_out(self, rows: Tensor, labels: Tensor, features: Features, *, are_known: bool = False) -> None:
        """Take away examples that were counted; where rows are kept, it is those rows that go.

        Args:
            rows: of the examples.
            labels: their classes.
            features: of representations.
            are_known: whether they are known to have been counted, so that the nearest rows are theirs, even
                where another machine computed them; else a row goes only if it differs by rounding at most.
        """
        if self.keeps_rows:
            indices = self.checked_indices(self.find(rows, labels, are_known=are_known))
            rows = self.kept.rows[indices]
            self.kept.remove(indices)
        self._count(rows, labels, features, sign=-1)

    def find(self, rows: Tensor, labels: Tensor, *, are_known: bool = False) -> list[int | None]:
        """The kept row of each example, no row twice; None where there is none."""
        indices: list[int | None] = []
        tolerance = self.tolerance_of_known if are_known else ROUNDING
        for row, label in zip(rows, labels.tolist(), strict=True):
            taken = [index for index in indices if index is not None]
            indices.append(self.kept.find(row, label, but_not=taken, tolerance=tolerance))
        return indices

    @staticmethod
    def checked_indices(found: Sequence[int | None]) -> list[int]:
        """The kept rows that were found; `InvalidData` where one was not."""
        indices = [index for index in found if index is not None]
        if len(indices) < len(found):
            raise InvalidData("A text is to be forgotten that was never learned with that label.")
        return indices

    def sum_up_again(self, features: Features) -> None:
        """Compute all sums from the kept rows."""
        for part in self.parts():
            part.clear()
        self._count(self.kept.rows, self.kept.labels.long(), features, sign=1)

    def regroup(self, groups: Sequence[Sequence[int]], classes: int, features: Features) -> None:
        """Make each new class of a group of old ones, and take out the classes that are in no group.

        Args:
            groups: indices of the old classes that each new class is made of.
            classes: how many there were.
            features: of representations.
        """
        sizes, kept = self.class_sizes(classes), {label for group in groups for label in group}
        for label in range(classes):
            if label not in kept and sizes[label] > 0:
                self._take_out(label, features)
        for part in (*self.parts(), self.kept):
            part.regroup_rows(groups, classes)

    def absorb(self, other: "Ledger", indices: Sequence[int]) -> None:
        """Add another ledger, whose classes have these indices here."""
        for part, others in zip(self.parts(), other.parts(), strict=True):
            part.absorb(others, indices)
        self.kept.absorb(other.kept, indices)

    def _take_out(self, label: int, features: Features) -> None:
        """Take a class out of the products, which are not kept class by class."""
        if not self.moments():
            return
        if not self.keeps_rows:
            raise InvalidSetting(
                "To forget a class without its texts a learner needs keep_embeddings = true, this one has "
                "false: give it the texts to forget (`repcl forget MODEL DATA`, or forget_texts)."
            )
        rows = self.kept.of(label)
        self._count(rows, torch.full((len(rows),), label), features, sign=-1)

    def _count(self, rows: Tensor, labels: Tensor, features: Features, *, sign: int) -> None:
        for number, part in enumerate(self.parts()):
            for start in range(0, len(rows), CHUNK):
                chunk = features(rows[start : start + CHUNK], number)
                part.add(chunk, labels[start : start + CHUNK], sign=sign)
