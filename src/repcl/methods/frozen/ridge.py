"""Ridge regression from its sufficient statistics, and the choice of the ridge without held-out examples."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

RIDGES = torch.logspace(-1, 4, 21, dtype=torch.float64)
LARGEST_SPECTRUM = 500


def one_thread() -> AbstractContextManager[Any]:
    """Let NumPy and SciPy compute with one thread, or the bits would depend on the machine."""
    limited: AbstractContextManager[Any] = _linear_algebra().limit(limits=1)
    return limited


@cache
def _linear_algebra() -> ThreadpoolController:
    """The libraries that they compute with; to look for them takes milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401 (loads its library)

    return ThreadpoolController().select(user_api="blas")


def ridge_factor(gram: Tensor, ridge: float) -> Tensor:
    """The Cholesky factor of G + λI, lower triangular; what is above the diagonal is not to be read.

    Args:
        gram: G = HᵀH, (features, features) in float64; what is below the diagonal is not read. Its memory
            becomes that of the factor.
        ridge: λ.
    """
    from scipy.linalg import cho_factor  # takes half a second, and answering needs none

    gram.diagonal().add_(ridge)
    with one_thread():  # SciPy takes two thirds of torch's time
        factor, _ = cho_factor(gram.numpy().T, lower=True, overwrite_a=True, check_finite=False)
    return torch.from_numpy(factor)


def ridge_weights(factor: Tensor, targets: Tensor) -> Tensor:
    """The solution B of (G + λI) B = Q, (features, classes).

    Args:
        factor: of G + λI, from `ridge_factor`.
        targets: Q = HᵀY, (features, classes) in float64; its memory, if it can be, is that of the solution.
    """
    from scipy.linalg import cho_solve

    with one_thread():
        solved = cho_solve((factor.numpy(), True), targets.numpy(), overwrite_b=True, check_finite=False)
    return torch.from_numpy(solved)


def half_solved(factor: Tensor, rows: Tensor) -> Tensor:
    """L⁻¹h of each row h, (rows, features): products of two of them are those by (G + λI)⁻¹.

    Args:
        factor: L in float32, which takes half the time and has digits enough.
        rows: h.
    """
    from scipy.linalg import solve_triangular

    with one_thread():
        solved = solve_triangular(
            factor.numpy(),
            rows.numpy().T.astype(np.float32),
            lower=True,
            check_finite=False,
        )
    return torch.from_numpy(solved.T)


def choose_ridge(gram: Tensor, targets: Tensor, examples: float) -> float:
    """The ridge that generalized cross-validation prefers (Golub et al., 1979).

    It needs G, Q and the number of examples only, so it does not depend on their order. The spectrum of a
    large G would cost seconds; random features are exchangeable, so that of the first 500 stands for it. Its
    λ is taken as it is, though eigenvalues grow with the number of features: the highest score wants less
    shrinkage than squared error does.

    Args:
        gram: G = HᵀH, (features, features) in float64; what is below the diagonal is not read.
        targets: Q = HᵀY, (features, classes) in float64, for targets of one 1 an example.
        examples: how many there are.
    """
    size = min(len(gram), LARGEST_SPECTRUM)
    upper = gram[:size, :size].triu()
    eigenvalues, vectors = torch.linalg.eigh(upper + upper.triu(1).T)
    is_used = eigenvalues > eigenvalues[-1].clamp(min=1e-12) * 1e-12
    spectrum = eigenvalues[is_used]
    explained = ((vectors.T[is_used] @ targets[:size]) ** 2).sum(dim=1) / spectrum  # of Σy², per direction
    ridges = RIDGES[:, None]
    unreachable = (examples - explained.sum()).clamp(min=0.0)
    residual = unreachable + (explained * (ridges / (spectrum + ridges)) ** 2).sum(dim=1)
    freedom = examples - (spectrum / (spectrum + ridges)).sum(dim=1)
    criterion = residual / freedom.clamp(min=1e-12) ** 2
    # where it is flat, as for a single example, rounding must not decide
    is_best = criterion <= criterion.min() * (1 + 1e-9)
    return float(RIDGES[is_best].max())
