"""Two variables seen together, and how true and independent pairs of them are drawn."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Drawn:
    """True pairs, and which texts their halves are of; only those of one class have two texts each.

    Attributes:
        left: (pairs, size).
        right: (pairs, size).
        left_texts: (pairs,) numbers of texts.
        right_texts: (pairs,) the same numbering.
    """

    left: Tensor
    right: Tensor
    left_texts: Tensor
    right_texts: Tensor

    def __len__(self) -> int:
        return len(self.left)

    def same_text(self, left: Tensor, right: Tensor) -> Tensor:
        """Whether the left halves at some indices and the right halves at others are of one text."""
        return self.left_texts[left] == self.right_texts[right]


@dataclass(frozen=True)
class Paired:
    """Rows of two variables.

    Attributes:
        left: (rows, size).
        right: (rows, size); row i belongs to row i of `left`.
        labels: (rows,) classes; with them a row's partner is not its own right half but that of another row
            of its class, a new one in each draw.
    """

    left: Tensor
    right: Tensor
    labels: Tensor | None = None

    def __len__(self) -> int:
        return len(self.left)

    def take(self, rows: Tensor) -> "Paired":
        """Some of the rows."""
        labels = None if self.labels is None else self.labels[rows]
        return Paired(self.left[rows], self.right[rows], labels)

    def split(self, share: float, generator: torch.Generator) -> tuple["Paired", "Paired"]:
        """A random share of the rows, and the others."""
        shuffled = torch.randperm(len(self), generator=generator)
        cut = round(share * len(self))
        return self.take(shuffled[:cut]), self.take(shuffled[cut:])

    def draw(self, rows: int, generator: torch.Generator) -> Drawn:
        """At most so many true pairs, in random order."""
        left = right = torch.arange(len(self))
        if self.labels is not None:
            left, right = same_class(self.labels, generator)
        chosen = torch.randperm(len(left), generator=generator)[:rows]
        left, right = left[chosen], right[chosen]
        return Drawn(self.left[left], self.right[right], left, right)

    def standardized(self, like: "Paired") -> "Paired":
        """Every coordinate with the mean and spread that it has in `like` taken out."""
        left, right = _standardized(self.left, like.left), _standardized(self.right, like.right)
        return replace(self, left=left, right=right)


def same_class(labels: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Each row with a random other row of its class, as indices; the only row of a class has no partner."""
    shuffled = torch.randperm(len(labels), generator=generator)
    _, order = labels[shuffled].sort(stable=True)
    rows = shuffled[order]  # class by class, in random order within
    sizes = labels.bincount()
    sizes = sizes[sizes > 0]
    ends = sizes.cumsum(0) - 1
    following = torch.arange(len(rows)) + 1
    following[ends] = ends - sizes + 1  # the last of a class goes with the first
    has_partner = rows != rows[following]
    return rows[has_partner], rows[following][has_partner]


def _standardized(rows: Tensor, like: Tensor) -> Tensor:
    spread = like.std(dim=0, unbiased=False)
    # a coordinate that never changes says nothing, and must not become huge where it changes by rounding
    is_constant = spread <= 1e-6 * like.abs().amax(dim=0)
    return (rows - like.mean(dim=0)) / spread.masked_fill(is_constant, torch.inf)
