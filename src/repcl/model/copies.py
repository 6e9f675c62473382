"""Copies of a module that are never trained: frozen teachers and momentum copies."""

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)


def frozen_copy(module: Module) -> Module:
    """A copy in evaluation mode whose parameters take no gradient."""
    return copy.deepcopy(module).requires_grad_(False).eval()


def momentum_copy(module: Module) -> Module:
    """A copy that follows its source by `follow`; it keeps dropout on, as in the authors' code."""
    return copy.deepcopy(module).requires_grad_(False).train()


@torch.no_grad()
def follow(momentum: nn.Module, source: nn.Module, *, decay: float) -> None:
    """Exponential moving average: θ' ← decay · θ' + (1 − decay) · θ."""
    targets: list[Tensor] = list(momentum.parameters())
    sources: list[Tensor] = list(source.parameters())
    torch._foreach_lerp_(targets, sources, 1.0 - decay)
