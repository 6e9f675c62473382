"""Logistic regression on kept representations, with a row for every class, also for those without texts."""

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from repcl.methods.frozen.kept_rows import KeptRows
from repcl.methods.frozen.random_features import REPRESENTATION_STEPS


def fit_logistic(
    kept: KeptRows, classes: int, *, inverse_penalty: float, iterations: int
) -> tuple[Tensor, Tensor]:
    """Weights, (classes, size), and offsets, (classes,), in float64.

    Args:
        kept: what is fitted.
        classes: how many there are; those without rows get zeros.
        inverse_penalty: scikit-learn's C.
        iterations: most steps of the solver.
    """
    weights = torch.zeros(classes, kept.rows.shape[1], dtype=torch.float64)
    offsets = torch.zeros(classes, dtype=torch.float64)
    present = torch.unique(kept.labels).long()
    if len(present) > 1:
        from sklearn.linear_model import LogisticRegression  # takes a second, and answering needs none

        model = LogisticRegression(C=inverse_penalty, max_iter=iterations)
        with threadpool_limits(1):  # the same bits however many cores there are
            model.fit(unit_rows(kept.rows).numpy(), kept.labels.numpy())
        found, at = torch.from_numpy(model.coef_), torch.from_numpy(model.intercept_)
        if len(present) == 2:  # scikit-learn gives the difference of two classes
            found, at = torch.cat([-found, found]) / 2, torch.cat([-at, at]) / 2
        weights[present], offsets[present] = found, at
    return weights, offsets


def logits(rows: Tensor, weights: Tensor, offsets: Tensor) -> Tensor:
    """Scores of representations on the grid, (examples, classes)."""
    return unit_rows(rows) @ weights.T + offsets


def unit_rows(rows: Tensor) -> Tensor:
    """Representations of unit length, from their steps on the grid."""
    return rows.double() / REPRESENTATION_STEPS
