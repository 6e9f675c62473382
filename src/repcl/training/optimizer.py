"""The optimizer of a stage: AdamW in four groups, with a linear warm-up."""

from collections.abc import Iterable

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from repcl.training.settings import StageSettings


def build_optimizer(
    encoder: nn.Module, others: Iterable[nn.Module], settings: StageSettings
) -> torch.optim.AdamW:
    """AdamW over {encoder, other parts} × {decayed, not decayed}, fused: six times cheaper on a CPU.

    As in the authors' code, the LayerNorm weights of the encoder are not decayed and those of the heads are.
    """
    groups = []
    for decayed in (True, False):
        of_encoder = [
            parameter
            for name, parameter in encoder.named_parameters()
            if parameter.requires_grad and _is_decayed(name, parameter, in_encoder=True) == decayed
        ]
        of_others = [
            parameter
            for part in others
            for name, parameter in part.named_parameters()
            if parameter.requires_grad and _is_decayed(name, parameter, in_encoder=False) == decayed
        ]
        decay = settings.weight_decay if decayed else 0.0
        groups.append({"params": of_encoder, "lr": settings.learning_rate, "weight_decay": decay})
        groups.append({"params": of_others, "lr": settings.head_learning_rate, "weight_decay": decay})
    return torch.optim.AdamW([group for group in groups if group["params"]], fused=True)


def build_warmup(optimizer: torch.optim.Optimizer, warmup_steps: float) -> LambdaLR:
    """Rates rise from 0 at step 0 to their full value at `warmup_steps`, then stay."""
    return LambdaLR(optimizer, lambda step: min(1.0, step / warmup_steps) if warmup_steps > 0 else 1.0)


def _is_decayed(name: str, parameter: nn.Parameter, *, in_encoder: bool) -> bool:
    # In a transformer encoder the vectors are exactly the biases and the LayerNorm weights.
    return parameter.dim() > 1 if in_encoder else not name.endswith("bias")
