"""FreeLB: adversarial perturbations of word embeddings whose gradients come free with training."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from repcl.training.stage import LossTerms


def adversarial_losses(
    loss_at: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    steps: int,
    step_size: float,
    radius: float,
    clean_weight: float = 1.0,
) -> Iterator[LossTerms]:
    """Yield the losses of `clean_weight · L(x) + 1/K Σ_t L(x + δ_t)`, one pass at a time.

    With δ_0 = 0 the first adversarial loss *is* the clean loss, so both share one pass: the objective
    is (clean_weight + 1/K) L(x) + 1/K Σ_{t≥1} L(x + δ_t), K passes instead of K + 1. The caller runs
    backward on each group before it asks for the next; that backward pass also gives δ its gradient.

    Args:
        loss_at: the loss with a perturbation (batch, length, hidden) added to the word embeddings.
        start: zeros of the perturbation's shape; padding is recognized by its zero gradient.
        steps: K.
        step_size: α, the length of one ascent step of a sentence.
        radius: ε, the largest norm of a sentence's perturbation; 0 for no limit.
        clean_weight: 1 as in the paper; 0 as in the authors' released code.
    """
    perturbation = start
    for step in range(steps):
        is_last = step == steps - 1
        perturbation = perturbation.detach().requires_grad_(not is_last)
        loss = loss_at(perturbation)
        if step == 0:
            yield {"clean": (clean_weight + 1 / steps) * loss}
        else:
            yield {f"adversarial {step}": loss / steps}
        if not is_last and perturbation.grad is not None:
            perturbation = ascend(perturbation, perturbation.grad, step_size=step_size, radius=radius)


@torch.no_grad()
def ascend(perturbation: Tensor, gradient: Tensor, *, step_size: float, radius: float) -> Tensor:
    """One normalized step uphill for each sentence, then back onto the ball of the radius."""
    moved = perturbation + step_size * gradient / _sentence_norm(gradient)
    if radius <= 0:
        return moved
    return moved * (radius / _sentence_norm(moved)).clamp(max=1.0)


def _sentence_norm(values: Tensor) -> Tensor:
    """Norm over all tokens and coordinates of a sentence, (batch, 1, 1), never zero."""
    norms: Tensor = torch.linalg.vector_norm(values, dim=(1, 2), keepdim=True)
    return norms.clamp_min(1e-8)
