"""Sums over all examples ever learned, in whole numbers.

Features come as whole numbers (steps of a fixed grid), so every sum is exact: the same in any order of
examples and tasks. What was added can be taken away without a trace, and two learners can be united.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from repcl.model import Merge, RowOwner, total_row

BLOCK = 512
SMALL = torch.iinfo(torch.int32)
MOST_IN_32_BITS = 2**16 - 1
"""Examples of a class whose sums surely fit, since no feature is beyond 2¹⁵ steps."""


class ClassSums(RowOwner):
    """For each class the sum of its features and the number of its examples.

    Args:
        size: of a feature vector.
    """

    class_rows: ClassVar[Mapping[str, Merge]] = {"sums": total_row, "counts": total_row}
    sums: Tensor  # (classes, size)
    counts: Tensor  # (classes,)

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("sums", torch.zeros(0, size, dtype=torch.int32))  # or 64 bits, where it must be
        self.register_buffer("counts", torch.zeros(0, dtype=torch.int64))

    def grow_to(self, classes: int) -> None:
        """Make room for new classes at the end."""
        missing = classes - len(self.counts)
        if missing > 0:
            self.sums = functional.pad(self.sums, (0, 0, 0, missing))
            self.counts = torch.cat([self.counts, self.counts.new_zeros(missing)])

    def shapes(self, classes: int) -> dict[str, tuple[int, ...]]:
        """The shapes that its tensors have with so many classes."""
        return {
            name: (classes, *value.shape[1:]) if name in self.class_rows else tuple(value.shape)
            for name, value in self.named_buffers(recurse=False)
        }

    def clear(self) -> None:
        """Forget all examples, and keep the room for the classes."""
        for value in self.buffers(recurse=False):
            value.zero_()

    def add(self, features: Tensor, labels: Tensor, *, sign: int = 1) -> None:
        """Add examples, or with the sign -1 take them away.

        Args:
            features: (examples, size) whole numbers in float64.
            labels: (examples,) classes.
            sign: 1 or -1.
        """
        self.add_to_classes(features, labels, sign=sign)

    def add_to_classes(self, features: Tensor, labels: Tensor, *, sign: int = 1) -> None:
        """Add examples to the sums of their classes only, or take them away."""
        self._make_room(_largest(self.counts) + len(labels))
        self.sums.index_add_(0, labels, features.to(self.sums.dtype), alpha=sign)
        self.counts.index_add_(0, labels, torch.ones_like(labels), alpha=sign)

    def absorb(self, other: "ClassSums", indices: Sequence[int]) -> None:
        """Add the sums of another learner, whose classes have these indices here."""
        here = torch.tensor(indices, dtype=torch.int64)
        self._make_room(_largest(self.counts) + _largest(other.counts))
        self.sums.index_add_(0, here, other.sums.to(self.sums.dtype))
        self.counts.index_add_(0, here, other.counts)

    def regroup_rows(self, groups: Sequence[Sequence[int]], classes: int) -> None:
        """Give every group of old classes one row."""
        sizes = self.counts.tolist()
        self._make_room(max((sum(sizes[index] for index in group) for group in groups), default=0))
        super().regroup_rows(groups, classes)

    def take_over(self, values: Mapping[str, Tensor]) -> None:
        """Take over tensors of whole numbers that were saved, by their names here."""
        for name, value in values.items():
            setattr(self, name, value if name == "sums" and value.dtype == torch.int32 else value.long())
        self._make_room(_largest(self.counts))

    def _make_room(self, examples: int) -> None:
        """Widen the sums where a class may have so many examples that theirs do not fit any more."""
        if examples > MOST_IN_32_BITS:
            self.sums = self.sums.long()

    def means(self) -> Tensor:
        """Mean feature of each class, (classes, size) in float64; zero for a class without examples."""
        return self.sums.double() / self.counts.clamp(min=1)[:, None]

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if f"{prefix}sums" in state_dict:  # else larger numbers would be cut to those that fit here
            self.sums = self.sums.to(state_dict[f"{prefix}sums"].dtype)
        super()._load_from_state_dict(state_dict, prefix, *rest)
        self._make_room(_largest(self.counts))

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        # half the bytes on disk as long as the numbers are small enough
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, value in self.named_buffers(recurse=False):
            if value.numel() and SMALL.min <= int(value.min()) and int(value.max()) <= SMALL.max:
                destination[prefix + name] = value.int()


class Moments(ClassSums):
    """Class sums, and the sum of products of all pairs of features, as the upper triangle of a matrix."""

    products: Tensor  # (size · (size + 1) / 2,)

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.register_buffer("products", torch.zeros(size * (size + 1) // 2, dtype=torch.int64))

    def add(self, features: Tensor, labels: Tensor, *, sign: int = 1) -> None:
        """Add examples, or with the sign -1 take them away."""
        self.add_to_classes(features, labels, sign=sign)
        self.add_products(features, sign=sign)

    def add_products(self, features: Tensor, *, sign: int = 1) -> None:
        """Add examples to the products only, whatever their classes, or take them away."""
        triangle, products = _rows_of_triangle(self.size), self.products.numpy()
        for start in range(0, self.size, BLOCK):  # the lower triangle is not needed
            block = (features[:, start : start + BLOCK].T @ features[:, start:]).mul_(sign).long().numpy()
            for index, row in enumerate(block):
                products[triangle[start + index]] += row[index:]

    def absorb(self, other: ClassSums, indices: Sequence[int]) -> None:
        """Add the sums of another learner, whose classes have these indices here."""
        super().absorb(other, indices)
        if isinstance(other, Moments):
            self.products += other.products

    def upper_gram(self) -> Tensor:
        """Sum of f fᵀ over all examples, (size, size) in float64, with zeros below the diagonal."""
        square, products = np.zeros((self.size, self.size)), self.products.numpy()
        for index, row in enumerate(_rows_of_triangle(self.size)):
            square[index, index:] = products[row]
        return torch.from_numpy(square)

    def gram(self) -> Tensor:
        """Sum of f fᵀ over all examples, (size, size) in float64."""
        upper = self.upper_gram()
        return upper + upper.triu(1).T


def _largest(counts: Tensor) -> int:
    return int(counts.max()) if len(counts) else 0


@cache
def _rows_of_triangle(size: int) -> list[slice]:
    """Where each row of the upper triangle of a (size, size) matrix is among its numbers."""
    ends = np.cumsum(np.arange(size, 0, -1)).tolist()
    return [slice(end - size + index, end) for index, end in enumerate(ends)]
