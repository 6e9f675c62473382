"""Fixed random features of representations, computed in whole numbers."""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from repcl.model.products import is_exporting, linear

REPRESENTATION_STEPS = 2**15
"""Steps of the grid on which representations lie, per unit."""
WEIGHT_STEPS = 2**10
FEATURE_STEPS = 2**6
SCALE = FEATURE_STEPS / REPRESENTATION_STEPS / WEIGHT_STEPS
UNSURE = 2**-10
"""How close to the middle between two steps a product in float32 may be on the wrong side of it; far more
than its error."""
PART = 256
"""Features that are computed again at a time; so many stay in the processor's cache."""

MOST_RECENT = 2000
"""Rows whose features stay in memory."""


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
        """The maps, (maps, features, size) in steps, drawn when they are first used."""
        # NumPy promises that this generator's numbers never change; a saved learner depends on it.
        drawn, (maps, size, features) = np.random.RandomState(self.seed), self.shape
        steps = np.empty((maps, features, size), dtype=np.float32)
        for one in steps:
            one[:] = (drawn.standard_normal((size, features)) * WEIGHT_STEPS).round().T
        return torch.from_numpy(steps)

    def forward(self, rows: Tensor, which: int) -> Tensor:
        """Features by one map, in steps: (examples, size) on the grid -> (examples, features) in float64.

        Products in float32 take half the time of float64. They tell how to round but for the few features
        that lie close to the middle between two steps, which are computed again, exactly.
        """
        if is_exporting():
            # it need not be exact, for its representations are not either
            weights = self.weights[which].T.contiguous()  # as they are multiplied, and not turned every time
            return ((rows.float() @ weights).relu() * SCALE).round().double()
        rough = linear(rows.float(), self.weights[which]).relu_().mul_(SCALE)
        found = rough.round().double()
        rough -= rough.floor()
        row, column = (rough.sub_(0.5).abs_() < UNSURE).nonzero(as_tuple=True)
        for part in torch.split(torch.arange(len(row)), PART):
            self._round_exactly(found, rows, which, row[part], column[part])
        return found

    def _round_exactly(self, found: Tensor, rows: Tensor, which: int, row: Tensor, column: Tensor) -> None:
        """Put the exact values of single features in their places."""
        weights = self.weights[which][column].double()
        exact = weights.mul_(rows[row]).sum(dim=1)  # whole numbers below 2^53
        found[row, column] = (exact.relu() * SCALE).round()


class RecentFeatures:
    """Features of rows by all maps, the last ones in memory, for most rows are asked about again and again.

    Args:
        maps: compute them.
    """

    def __init__(self, maps: RandomFeatures) -> None:
        self.maps = maps
        self._found: dict[bytes, Tensor] = {}  # (maps, features) in 16 bits

    def __call__(self, rows: Tensor, which: int) -> Tensor:
        """Features by one map, as it gives them."""
        keys = [row.tobytes() for row in rows.numpy()]
        missing = {key: index for index, key in enumerate(keys) if key not in self._found}
        if missing:
            new, maps = rows[list(missing.values())], range(self.maps.shape[0])
            made = torch.stack([self.maps(new, one).short() for one in maps], dim=1)
            self._found.update(zip(missing, map(torch.clone, made), strict=True))
        found = torch.stack([self._found[key][which] for key in keys]).double()
        while len(self._found) > MOST_RECENT:
            del self._found[next(iter(self._found))]
        return found
