"""Linear discriminant analysis: class means and one covariance shared by all classes."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from repcl.methods.frozen.left_out import SURE
from repcl.methods.frozen.method import FrozenMethod, KeepingSettings
from repcl.methods.frozen.random_features import REPRESENTATION_STEPS
from repcl.methods.frozen.sums import Moments
from repcl.methods.search_ranges import Dimension, Range


class LDASettings(KeepingSettings):
    """Settings of linear discriminant analysis."""

    shrinkage: float = Field(
        0.01,
        gt=0,
        le=1,
        description="share of the covariance replaced by one that is equal in all directions",
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
        means, factor = self._model()
        weights = torch.cholesky_solve(means.T, factor)
        return weights, -0.5 * (means.T * weights).sum(dim=0)

    def _model(self) -> tuple[Tensor, Tensor]:
        """Class means, (classes, representation size), and the Cholesky factor of the covariance."""
        (moments,) = self.ledger.moments()
        covariance = shrunk(within_class_covariance(moments), self.settings.shrinkage)
        return moments.means() / REPRESENTATION_STEPS, torch.linalg.cholesky(covariance)

    def solution_shapes(self) -> list[tuple[int, ...]]:
        """Weights and offsets."""
        return [(self.encoder.representation_size, len(self.classes)), (len(self.classes),)]

    def row_scores(self, rows: Tensor, solution: tuple[Tensor, ...]) -> Tensor:
        """Log-likelihoods, without the terms that are equal for all classes."""
        weights, offsets = solution
        return rows.double() / REPRESENTATION_STEPS @ weights + offsets

    def left_out_scores(self, rows: Tensor, labels: Tensor, times: Tensor) -> Tensor:
        """Log-likelihoods, mean and covariance of the own class without the row itself.

        Taking a text x out of its class changes the covariance S by a multiple of d dᵀ, d = x - μ, and so its
        inverse by Sherman and Morrison's formula. The even spread that S is shrunk toward, which one text
        hardly changes, stays as it is.
        """
        (moments,) = self.ledger.moments()
        means, factor = self._model()
        sizes = moments.counts[labels].double()
        x = rows.double() / REPRESENTATION_STEPS
        away = x - means[labels]
        freedom = max(int(moments.counts.sum()) - int((moments.counts > 0).sum()), 1)
        shift = times / (sizes - times).clamp(min=1)
        share = (1 - self.settings.shrinkage) / freedom * sizes * shift
        turned = torch.cholesky_solve(away.T, factor).T  # S⁻¹d
        gain = share / (1 - (share * (away * turned).sum(dim=1)).clamp(max=SURE))
        weights = torch.cholesky_solve(means.T, factor)
        seen = turned @ means.T  # dᵀS⁻¹μ of all classes
        along = (x * turned).sum(dim=1)
        scores = x @ weights + (gain * along)[:, None] * seen
        scores -= 0.5 * ((means.T * weights).sum(dim=0) + gain[:, None] * seen**2)
        rest = means[labels] - shift[:, None] * away
        rest_turned = torch.cholesky_solve(rest.T, factor).T
        rest_seen = (turned * rest).sum(dim=1)
        own = (x * rest_turned).sum(dim=1) + gain * along * rest_seen
        own -= 0.5 * ((rest * rest_turned).sum(dim=1) + gain * rest_seen**2)
        scores[torch.arange(len(labels)), labels] = torch.where(sizes > times, own, scores.amin(dim=1) - 1)
        return scores * ((freedom - times).clamp(min=1) / freedom)[:, None]


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
