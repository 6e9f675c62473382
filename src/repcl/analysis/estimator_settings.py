"""How mutual information is estimated: one protocol for every method, and that of the authors' code."""

from dataclasses import dataclass
from typing import Literal

Partners = Literal["shifted", "drawn"]


@dataclass(frozen=True)
class EstimatorSettings:
    """The knobs of an estimate.

    Attributes:
        critics: fits with other first weights and other halves; the value is their mean.
        steps: of a fit, at most.
        patience: a fit ends when so many steps did not raise the bound on a fifth of its half, which it does
            not train on; the value is read off where that was highest. None: all steps, last value.
        hidden: layers of the critic.
        learning_rate: of Adam.
        moving_average: rate at which the gradient's denominator follows; 1 gives the biased gradient.
        batch_size: pairs of a step.
        is_held_out: fit on one half and read off the other, then the other way round; else both on all.
        partners: how independent pairs are made.
        look_every: steps between two points of the fitting curve.
    """

    critics: int = 5
    steps: int = 5000
    patience: int | None = 500
    hidden: tuple[int, ...] = (256, 256)
    learning_rate: float = 1e-4
    moving_average: float = 0.01
    batch_size: int = 256
    is_held_out: bool = True
    partners: Partners = "shifted"
    look_every: int = 25


AUTHORS = EstimatorSettings(
    critics=1,
    patience=None,
    hidden=(40,),
    moving_average=1.0,
    is_held_out=False,
    partners="drawn",
)
"""What the authors' released code does: judged by the texts it was fitted on, so it over-estimates."""
