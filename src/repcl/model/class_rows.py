"""Which tensors have a row for each class, declared by the module that owns them."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from torch import Tensor, nn

Merge = Callable[[Tensor], Tensor]
"""From the rows of classes that become one, (classes, ...), to the row of the new class, (...)."""


def mean_row(rows: Tensor) -> Tensor:
    """The mean of the rows."""
    return rows.mean(dim=0)


def total_row(rows: Tensor) -> Tensor:
    """The sum of the rows."""
    return rows.sum(dim=0)


def lowest_row(rows: Tensor) -> Tensor:
    """The lowest value of the rows."""
    return rows.amin(dim=0)


class RowOwner(nn.Module):
    """A module that says what the rows of its growing parameters and buffers belong to."""

    class_rows: ClassVar[Mapping[str, Merge]] = {}
    """Tensors with a row for each class, and how the rows of merged classes become one."""
    other_rows: ClassVar[tuple[str, ...]] = ()
    """Tensors that grow with something else, such as tasks or examples."""

    def regroup_rows(self, groups: Sequence[Sequence[int]], classes: int) -> None:
        """Give every tensor of `class_rows` one row for each group of old classes.

        Args:
            groups: indices of the old classes that each new class is made of.
            classes: how many there were; rows behind them are spare and stay.
        """
        for name, merge in self.class_rows.items():
            tensor = getattr(self, name)
            if tensor is None:  # a layer without bias
                continue
            rows = tensor.detach()
            kept = rows[[*(group[0] for group in groups), *range(classes, len(rows))]]
            for index, group in enumerate(groups):
                if len(group) > 1:
                    kept[index] = merge(rows[list(group)])
            setattr(self, name, nn.Parameter(kept) if isinstance(tensor, nn.Parameter) else kept)
