"""Instant (after RanPAC, McDonnell et al., 2023): ridge regression on random features of a frozen encoder."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from repcl.methods.frozen.method import FrozenMethod, KeepingSettings
from repcl.methods.frozen.random_features import FEATURE_STEPS, RandomFeatures
from repcl.methods.frozen.ridge import choose_ridge, ridge_weights
from repcl.methods.frozen.sums import Moments
from repcl.methods.search_ranges import Choices, Dimension


class InstantSettings(KeepingSettings):
    """Settings of the instant learner."""

    maps: int = Field(3, ge=1, le=1000, description="independent random maps, whose scores are averaged")
    features: int = Field(
        2000, ge=1, le=100_000, description="random features of each map; memory grows with the square"
    )
    ridge: float | None = Field(None, gt=0, description="λ; left open, generalized cross-validation chooses")
    balanced: bool = Field(False, description="every class weighs the same, whatever its number of examples")
    map_seed: int = Field(
        0, ge=0, lt=2**32, description="which maps are drawn; only equal ones can be united"
    )

    search: ClassVar[Mapping[str, Dimension]] = {
        "features": Choices((1000, 2000, 3000)),
        "balanced": Choices((False, True)),
    }


class Instant(FrozenMethod):
    """Accumulate HᵀH and HᵀY of random features H = relu(Z W), solve once per task, forget nothing."""

    Settings: ClassVar[type[InstantSettings]] = InstantSettings
    settings: InstantSettings

    def build_parts(self) -> None:
        """The ledger, and the random maps."""
        super().build_parts()
        size, settings = self.encoder.representation_size, self.settings
        self.maps = RandomFeatures(size, settings.features, settings.maps, seed=settings.map_seed)

    def new_sums(self) -> list[Moments]:
        """Gram matrix, class sums and counts of each map."""
        return [Moments(self.settings.features) for _ in range(self.settings.maps)]

    def features(self, rows: Tensor, number: int) -> Tensor:
        """Random features by one map, in steps."""
        features: Tensor = self.maps(rows, number)
        return features

    def solve(self) -> tuple[Tensor, ...]:
        """The ridge solution of each map, (features, classes), all with the λ chosen on the first.

        Averaging maps takes away noise that a single map needs its ridge for, so they share it.
        """
        ridge = self.settings.ridge
        weights = []
        for moments in self.ledger.moments():
            gram, targets = self._problem(moments)
            if ridge is None:
                ridge = choose_ridge(gram, targets, float(moments.counts.sum())) / self.settings.maps
            weights.append(ridge_weights(gram, targets, ridge))
        return tuple(weights)

    def row_scores(self, rows: Tensor, solution: tuple[Tensor, ...]) -> Tensor:
        """Regressed class memberships, averaged over the maps."""
        scores = [self.maps(rows, which) @ weights for which, weights in enumerate(solution)]
        return torch.stack(scores).mean(dim=0) / FEATURE_STEPS

    def _problem(self, moments: Moments) -> tuple[Tensor, Tensor]:
        """G, right on and above its diagonal, and Q of the regression on one-hot targets."""
        gram = moments.upper_gram().div_(FEATURE_STEPS**2)
        sums = moments.sums.double().div_(FEATURE_STEPS).T
        if not self.settings.balanced:
            return gram, sums
        # Class by class Gram matrices would not fit, so the spread inside classes is taken as shared:
        # G = Σ_c n_c (S + μ_c μ_cᵀ), and then every n_c becomes n / C.
        counts = moments.counts.double()
        means = sums / counts.clamp(min=1)
        even = counts.sum() / (counts > 0).sum().clamp(min=1)
        return gram - means @ sums.T + even * (means @ means.T), even * means
