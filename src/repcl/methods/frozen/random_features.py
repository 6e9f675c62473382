"""Fixed random features of representations, computed in whole numbers."""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

REPRESENTATION_STEPS = 2**15
"""Steps of the grid on which representations lie, per unit."""
WEIGHT_STEPS = 2**10
FEATURE_STEPS = 2**6


def on_grid(representations: Tensor) -> Tensor:
    """Representations at unit length, in whole steps of 16 bits."""
    unit = nn.functional.normalize(representations.double(), dim=1)
    # a zero vector stays zero; +1 itself would need a 17th bit
    return (unit * REPRESENTATION_STEPS).round().clamp(max=REPRESENTATION_STEPS - 1).short()


class RandomFeatures(nn.Module):
    """Several random maps h = relu(z W), W ~ N(0, 1), that are drawn again from their seed, never saved.

    Representations, weights and features lie on grids coarse enough for float64 to hold every sum exactly,
    and fine enough to leave accuracy alone: the result is the same on every machine and in every batch.

    Args:
        size: of a representation.
        features: of each map.
        maps: how many.
        seed: which maps are drawn.
    """

    def __init__(self, size: int, features: int, maps: int, *, seed: int) -> None:
        super().__init__()
        self.shape, self.seed = (maps, size, features), seed

    @cached_property
    def weights(self) -> Tensor:
        """The maps, (maps, size, features) in steps, drawn when they are first used."""
        # NumPy promises that this generator's numbers never change; a saved learner depends on it.
        drawn = np.random.RandomState(self.seed).standard_normal(self.shape)
        return torch.from_numpy((drawn * WEIGHT_STEPS).round().astype(np.float32))

    def forward(self, rows: Tensor, which: int) -> Tensor:
        """Features by one map, in steps: (examples, size) on the grid -> (examples, features) in float64."""
        raw = rows.double() @ self.weights[which].double()
        return (raw.relu() * (FEATURE_STEPS / REPRESENTATION_STEPS / WEIGHT_STEPS)).round()
