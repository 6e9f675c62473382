"""The pull toward the untouched encoder: what was general before the first task should stay so."""

import copy
from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import Field
from torch import Tensor, nn

from repcl.data import Batch, Example
from repcl.losses import squared_distance
from repcl.methods.base import BEFORE_THE_FIRST_TASK, Method, seeded
from repcl.methods.settings import MethodSettings

Module = TypeVar("Module", bound=nn.Module)


class RetentionSettings(MethodSettings):
    """Settings of methods that can hold on to the untouched encoder's representations."""

    retain: float = Field(
        0.0, ge=0, description="pull of new representations toward those of the untouched encoder; 0: none"
    )


def retention(
    method: Method, examples: Sequence[Example], weight: float
) -> Callable[[Batch, Tensor], Tensor] | None:
    """The weighted loss of a batch of these examples and its representations; None without weight.

    What the untouched encoder makes of the examples is computed once, here.
    """
    if not weight:
        return None
    untouched = frozen_copy(method.encoder)
    # markers are not part of the pretrained weights; the same seed draws them as they were at the start
    device, draw = method.encoder.device, method.settings.other_draw
    with seeded(method.seed, BEFORE_THE_FIRST_TASK, device, draw=draw):
        untouched.start_over()
    targets = method.for_all(examples, untouched.represent)

    def loss(batch: Batch, representation: Tensor) -> Tensor:
        target = targets[batch.positions.cpu()].to(representation.device)
        return weight * squared_distance(representation, target)

    return loss


def frozen_copy(module: Module) -> Module:
    """A copy in evaluation mode whose parameters take no gradient."""
    return copy.deepcopy(module).requires_grad_(False).eval()
