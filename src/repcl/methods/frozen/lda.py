"""Linear discriminant analysis: class means and one covariance shared by all classes."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from repcl.methods.frozen.method import FrozenMethod, KeepingSettings
from repcl.methods.frozen.random_features import REPRESENTATION_STEPS
from repcl.methods.frozen.sums import Moments
from repcl.methods.search_ranges import Dimension, Range


class LDASettings(KeepingSettings):
    """Settings of linear discriminant analysis."""

    shrinkage: float = Field(
        0.01, gt=0, le=1, description="share of the covariance that is replaced by an even spread"
    )

    search: ClassVar[Mapping[str, Dimension]] = {"shrinkage": Range(1e-3, 0.5, is_log=True)}


class LDA(FrozenMethod):
    """Gaussian classes with one covariance and equal priors, on a frozen encoder."""

    Settings: ClassVar[type[LDASettings]] = LDASettings
    settings: LDASettings

    def new_sums(self) -> list[Moments]:
        """Class sums and products of the representations themselves."""
        return [Moments(self.encoder.representation_size)]

    def solve(self) -> tuple[Tensor, Tensor]:
        """Weights S⁻¹μ, (representation size, classes), and offsets -μᵀS⁻¹μ / 2."""
        (moments,) = self.ledger.moments()
        means = moments.means() / REPRESENTATION_STEPS
        covariance = shrunk(within_class_covariance(moments), self.settings.shrinkage)
        weights = torch.cholesky_solve(means.T, torch.linalg.cholesky(covariance))
        return weights, -0.5 * (means.T * weights).sum(dim=0)

    def row_scores(self, rows: Tensor, solution: tuple[Tensor, ...]) -> Tensor:
        """Log-likelihoods, without the terms that are equal for all classes."""
        weights, offsets = solution
        return rows.double() / REPRESENTATION_STEPS @ weights + offsets


def within_class_covariance(moments: Moments) -> Tensor:
    """Covariance of examples around the mean of their class, over n - C degrees of freedom."""
    sums, counts = moments.sums.double(), moments.counts
    between = (sums / counts.clamp(min=1)[:, None]).T @ sums
    freedom = max(int(counts.sum()) - int((counts > 0).sum()), 1)
    return (moments.gram() - between) / freedom / REPRESENTATION_STEPS**2


def shrunk(covariance: Tensor, shrinkage: float) -> Tensor:
    """(1 - a) S + a tr(S)/d I; the identity when there is no spread at all."""
    spread = covariance.diagonal().mean()
    identity = torch.eye(len(covariance), dtype=covariance.dtype)
    if spread <= 1e-9:
        return identity
    return (1 - shrinkage) * covariance + shrinkage * spread * identity
