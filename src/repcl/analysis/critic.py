"""The critic T(x, z): a small network that tells true pairs from independent ones."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import linear


class Critic(nn.Module):
    """A ReLU network on (x, z) side by side.

    Its first layer is linear in x and in z, so each half goes through it once, however many pairs it is in.

    Args:
        left: size of x.
        right: size of z.
        hidden: sizes of the hidden layers.
    """

    def __init__(self, left: int, right: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.first = nn.Linear(left + right, hidden[0])
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(hidden):
            layers += [nn.ReLU(), nn.Linear(inputs, outputs)]
        self.rest = nn.Sequential(*layers, nn.ReLU(), nn.Linear(hidden[-1], 1))
        self.left_size = left

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Scores of pairs, (pairs,)."""
        return self.score(*self.halves(left, right))

    def halves(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """What each half adds to the first layer, both (rows, hidden)."""
        weight = self.first.weight
        return (
            linear(left, weight[:, : self.left_size], self.first.bias),
            linear(right, weight[:, self.left_size :]),
        )

    def score(self, left_half: Tensor, right_half: Tensor) -> Tensor:
        """Scores of pairs of halves, (..., hidden) each -> (...)."""
        scores: Tensor = self.rest(left_half + right_half)
        return scores.squeeze(-1)


def new_critic(left: int, right: int, hidden: Sequence[int], *, seed: int) -> Critic:
    """A critic whose first weights depend on the seed only."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return Critic(left, right, hidden)
