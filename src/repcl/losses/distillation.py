"""Distillation: a model is held to answers and features that were given before.

Scores are logits, one row per example; each loss is a mean over the rows, and a zero that can still be
differentiated when there are none.
"""

from torch import Tensor
from torch.nn import functional


def soft_cross_entropy(
    scores: Tensor, target_scores: Tensor, *, temperature: float = 1.0, target_temperature: float = 1.0
) -> Tensor:
    """Cross-entropy with the softened answers of a teacher, -Σ softmax(u/T') · ln softmax(v/T).

    Args:
        scores: (batch, classes) of the student, v.
        target_scores: (batch, classes) of the teacher, u.
        temperature: T, divides the student's scores.
        target_temperature: T', divides the teacher's scores; below 1 it sharpens.
    """
    targets = functional.softmax(target_scores / target_temperature, dim=-1)
    return _mean(-(targets * functional.log_softmax(scores / temperature, dim=-1)).sum(dim=-1))


def divergence(scores: Tensor, target_scores: Tensor) -> Tensor:
    """Kullback-Leibler divergence KL(softmax(target) ‖ softmax(scores)), (..., classes) both.

    Gradient flows into both arguments.
    """
    targets = functional.log_softmax(target_scores, dim=-1)
    differences = targets - functional.log_softmax(scores, dim=-1)
    return _mean((targets.exp() * differences).sum(dim=-1))


def feature_distillation(features: Tensor, target_features: Tensor) -> Tensor:
    """One minus the cosine of each feature with the teacher's, both (batch, dim)."""
    return _mean(1.0 - functional.cosine_similarity(features, target_features, dim=-1))


def squared_distance(features: Tensor, target_features: Tensor) -> Tensor:
    """Squared Euclidean distance of each feature to its target, both (batch, dim)."""
    return _mean((features - target_features).square().sum(dim=-1))


def _mean(losses: Tensor) -> Tensor:
    # the built-in mean over no row at all is NaN
    return losses.sum() / max(losses.numel(), 1)
