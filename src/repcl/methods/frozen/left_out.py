"""Leave-one-out answers: what a learner would say to a text that it learned, had it never learned it.

Learners with a closed form answer this without learning again, so no text has to be held out to measure
them. Which texts are asked depends on their representations alone, not on the order in which they came.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from repcl.methods.frozen.cosines import FEW, PART, at_unit_length
from repcl.methods.frozen.kept_rows import KeptRows

MOST_ASKED = 1000
"""Texts asked after each update; more would take longer than learning."""
MOST_PAIRS = 4 * 10**6
"""Pairs of texts that are compared to find nearest ones."""
PAIR = 1_000_003
"""Odd, so that no two labels of a row get one key."""
SURE = 1 - 1e-6
"""The largest leverage that is believed; at 1 nothing but the text itself decides."""


@dataclass(frozen=True)
class LeftOut:
    """Answers to learned texts, each as if it had not been learned.

    Attributes:
        indices: of the texts among the kept rows, (texts,).
        keys: tell the texts apart through all updates, (texts,).
        labels: indices of their classes, (texts,).
        scores: (texts, classes).
        near: which of the texts were compared with all others.
        nearest: cosine of each of those with the nearest other text.
        nearest_stranger: cosine with the nearest text of another class; -2 where there is none.
    """

    indices: Tensor
    keys: Tensor
    labels: Tensor
    scores: Tensor
    near: Tensor
    nearest: Tensor
    nearest_stranger: Tensor


def row_keys(rows: Tensor) -> Tensor:
    """A number for each row that no other row has, but for chance."""
    multipliers = np.random.RandomState(0).randint(-(2**62), 2**62, rows.shape[1], dtype=np.int64)
    with np.errstate(over="ignore"):  # wraps around, which is exact
        found = [part.numpy().astype(np.int64) @ multipliers for part in torch.split(rows, FEW)]
    return torch.from_numpy(np.concatenate(found))


def spread_sample(labels: Tensor, keys: Tensor, most: int) -> Tensor:
    """Indices of at most so many rows, as even over the classes as can be, ordered by their keys."""
    first = np.lexsort((keys.numpy(), _ranks(labels, keys)))[:most]
    return torch.from_numpy(first[np.argsort(keys.numpy()[first], kind="stable")])


def next_of_classes(labels: Tensor, keys: Tensor, classes: Tensor, most: int) -> Tensor:
    """Indices of the rows of some classes that come next: as many again as `spread_sample` takes of each."""
    taken = np.bincount(labels[spread_sample(labels, keys, most)].numpy(), minlength=int(labels.max()) + 1)
    usual, rank = taken[labels.numpy()], _ranks(labels, keys)
    is_next = np.isin(labels.numpy(), classes.numpy()) & (usual <= rank) & (rank < 2 * usual)
    return torch.from_numpy(np.flatnonzero(is_next))


def _ranks(labels: Tensor, keys: Tensor) -> NDArray[np.int64]:
    """The place of each row in its class, by the keys."""
    order = np.lexsort((keys.numpy(), labels.numpy()))
    sorted_labels = labels.numpy()[order]
    starts = np.flatnonzero(np.r_[True, sorted_labels[1:] != sorted_labels[:-1]]) if len(order) else order
    sizes = np.diff(np.r_[starts, len(order)])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return rank


def times_of(keys: Tensor, labels: Tensor, asked: Tensor) -> Tensor:
    """How many times each of some rows is there with its label, (asked,); all copies go together."""
    _, pair, times = np.unique(pair_keys(keys, labels).numpy(), return_inverse=True, return_counts=True)
    return torch.from_numpy(times[pair][asked.numpy()]).double()


def pair_keys(keys: Tensor, labels: Tensor) -> Tensor:
    """A number for each row with its label; it wraps around, which is exact."""
    return keys * PAIR + labels.long()


def without_itself(fitted: Tensor, leverage: Tensor, labels: Tensor) -> Tensor:
    """Leave-one-out fits of a linear smoother, (ŷ - h y) / (1 - h), (texts, classes).

    Args:
        fitted: ŷ, (texts, classes); its memory becomes that of the result.
        leverage: h, how much a text decides its own fit, (texts,).
        labels: the index of each text's class, (texts,); its target is 1 there, and 0 elsewhere.
    """
    leverage = leverage.clamp(max=SURE)
    fitted[torch.arange(len(labels)), labels] -= leverage
    return fitted.div_((1 - leverage)[:, None])


@dataclass(frozen=True)
class ClassMeansWithout:
    """Leave-one-out fits of a ridge regression in which each class weighs the same, whatever its size n.

    There G is the scatter inside classes + Σ e μμᵀ, and Q has the columns e μ; e, the weight of a class, is
    kept. Without a row x, with d = x - μ, the mean of its class is μ - d / (n - 1): G changes by a matrix
    of rank two over μ and d, and its inverse by Woodbury's formula. Products are those by (G + λI)⁻¹.

    A row that is there m times goes m times: then 1 / (n - 1) is m / (n - m).

    Attributes:
        sizes: n of each row's class.
        times: m of each row.
        even: e.
        row_products: of x and x, for each row.
        cross_products: of x and μ.
        mean_products: of μ and μ.
    """

    sizes: Tensor
    times: Tensor
    even: float
    row_products: Tensor
    cross_products: Tensor
    mean_products: Tensor

    def scores(self, fitted: Tensor, fitted_means: Tensor, labels: Tensor) -> Tensor:
        """Fits without the row itself, (rows, classes).

        Args:
            fitted: of the rows, with themselves.
            fitted_means: of the means of their classes.
            labels: the index of each row's class.
        """
        shift = self.times / (self.sizes - self.times).clamp(min=1)
        row_away = self.row_products - self.cross_products  # of x and d
        mean_away = self.cross_products - self.mean_products  # of μ and d
        away_away = row_away - mean_away  # of d and d
        change = torch.zeros(len(labels), 2, 2, dtype=torch.float64)
        change[:, 0, 1] = change[:, 1, 0] = -self.even * shift
        change[:, 1, 1] = self.even * shift**2 - self.sizes * shift
        inside = torch.stack([self.mean_products, mean_away, mean_away, away_away], dim=1).view(-1, 2, 2)
        identity = torch.eye(2, dtype=torch.float64)
        middle = torch.linalg.solve(identity + change @ inside, change)  # (M⁻¹ + UᵀA⁻¹U)⁻¹
        seen = torch.stack([self.cross_products, row_away], dim=1)[:, None] @ middle  # xᵀA⁻¹U times it
        both = torch.stack([fitted_means, fitted - fitted_means], dim=1)  # UᵀB
        without: Tensor = fitted - (seen @ both)[:, 0]
        moved = row_away - (seen[:, 0] * torch.stack([mean_away, away_away], dim=1)).sum(dim=1)
        own = without[torch.arange(len(labels)), labels] - self.even * shift * moved
        lowest = without.amin(dim=1) - 1.0  # the class of a single text is gone without it
        without[torch.arange(len(labels)), labels] = torch.where(self.sizes > self.times, own, lowest)
        return without


def products(one: Tensor, other: Tensor) -> Tensor:
    """The product of each row with the one beside it, (rows,) in float64."""
    return (one.double() * other.double()).sum(dim=1)


def nearest_others(kept: KeptRows, keys: Tensor, asked: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines of kept rows with the nearest other row, and with the nearest of another class; -2 if none.

    Copies of a row are no others.
    """
    return nearest_others_of(kept.rows[asked], kept, keys, asked)


def nearest_others_of(rows: Tensor, kept: KeptRows, keys: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """The same for rows that may be computed in another way than the kept rows that are their own."""
    similar = torch.cat([cosines(rows, part) for part in torch.split(kept.rows, PART)], dim=1)
    similar.masked_fill_(keys[own][:, None] == keys[None, :], -2.0)
    is_own = kept.labels[own][:, None] == kept.labels[None, :]
    return similar.amax(dim=1), similar.masked_fill(is_own, -2.0).amax(dim=1)


def cosines(rows: Tensor, others: Tensor) -> Tensor:
    """Cosines of rows on the grid with others, (rows, others)."""
    unit, other = (torch.from_numpy(at_unit_length(part.numpy())) for part in (rows, others))
    return unit @ other.T
