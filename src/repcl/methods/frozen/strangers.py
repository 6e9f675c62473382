"""Learned texts as they would look had none of their class been learned.

So look texts of a class that is not known. It is not enough to cross out their own class's score: the other
classes have learned that these texts are not theirs, which they cannot know of an unknown class.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from repcl.methods.frozen.left_out import SURE
from repcl.methods.frozen.ridge import one_thread

Rows = NDArray[np.float64]
FEWEST_CLASSES = 8
"""Classes that are left out; fewer say too little about others."""


@dataclass(frozen=True)
class Strangers:
    """Texts of classes that are each left out whole.

    Attributes:
        scores: (texts, classes), -inf for their own.
        nearest: cosine of each with the nearest text of another class.
    """

    scores: Tensor
    nearest: Tensor


def whole_classes(labels: Tensor, keys: Tensor, most: int) -> list[Tensor]:
    """Indices of the rows of each of some classes; none where classes are too few or too large.

    Half as many rows as there may be are enough, if they are of enough classes.

    Args:
        labels: of all rows.
        keys: of the rows; the least one of a class says when it comes, not the order in which it was learned.
        most: rows of all of these classes together.
    """
    order = np.lexsort((keys.numpy(), labels.numpy()))
    starts = np.flatnonzero(np.diff(labels.numpy()[order], prepend=-1))
    classes = [part for part in np.split(order, starts)[1:] if len(part) <= most // FEWEST_CLASSES]
    classes.sort(key=lambda part: int(keys[part[0]]))
    rows = np.cumsum([len(part) for part in classes])
    wanted = max(FEWEST_CLASSES, int((rows < most // 2).sum()) + 1)
    return [torch.from_numpy(part) for part in classes[:wanted]] if len(classes) >= FEWEST_CLASSES else []


def without_their_classes(
    solved: Tensor, fitted: Tensor, sizes: Sequence[int], *, even: float | None = None
) -> Tensor:
    """Fits of rows by ridge regressions that never saw the class of the row, (rows, classes).

    Args:
        solved: L⁻¹x of the rows x, class by class, (rows, features), from `half_solved`.
        fitted: their fits by the regression that saw all classes, (rows, classes).
        sizes: how many rows each class has.
        even: the weight of each class where all weigh the same.
    """
    by_class = [torch.split(part.double(), list(sizes)) for part in (solved, fitted)]
    with one_thread():
        found = [
            _without_class(rows.numpy(), fits.numpy(), even) for rows, fits in zip(*by_class, strict=True)
        ]
    return torch.from_numpy(np.concatenate(found))


def _without_class(solved: Rows, fitted: Rows, even: float | None) -> Rows:
    """Fits of the rows of one class.

    Without U, the rows of the class, G + λI = A becomes A - UᵀU, and its inverse changes by Woodbury's
    formula; Q changes in the column of the class only. So the other columns of the fit B grow by
    XA⁻¹Uᵀ (I - UA⁻¹Uᵀ)⁻¹ UB. Exact for the λ that was chosen with the class. Where classes weigh the same,
    U is x - μ of each row, and μ times the root of the weight.
    """
    taken, taken_fits = (solved, fitted) if even is None else (_spread(solved, even), _spread(fitted, even))
    leverage, directions = np.linalg.eigh(taken @ taken.T)
    grown = directions / (1 - np.minimum(leverage, SURE)) @ (directions.T @ taken_fits)
    found: Rows = fitted + (solved @ taken.T) @ grown
    return found


def _spread(part: Rows, even: float) -> Rows:
    mean = part.mean(axis=0, keepdims=True)
    return np.concatenate([part - mean, even**0.5 * mean])
