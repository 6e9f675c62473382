"""Lower bounds of mutual information, from what a critic says about true and made-up pairs; in nats."""

from collections.abc import Sequence
from math import inf, log

import torch
from torch import Tensor


def donsker_varadhan(joint: Tensor, marginal: Tensor) -> Tensor:
    """E[T] over true pairs minus ln E[exp T] over independent pairs (Belghazi et al., 2018, eq. 5).

    Args:
        joint: (pairs,) scores of true pairs.
        marginal: (pairs,) scores of pairs whose halves were drawn independently.
    """
    return joint.mean() - log_mean_exp(marginal)


def log_mean_exp(scores: Tensor) -> Tensor:
    """Ln of the mean of exp(score), finite for any finite scores."""
    return scores.logsumexp(dim=0) - log(len(scores))


def moving_log_mean(previous: Tensor | None, marginal: Tensor, *, rate: float) -> Tensor:
    """Ln of the moving average (1 - rate) · m + rate · mean(exp T); the first batch starts it."""
    fresh = log_mean_exp(marginal.detach())
    if previous is None or rate == 1:
        return fresh
    return torch.logaddexp(previous + log(1 - rate), fresh + log(rate))


def corrected_loss(joint: Tensor, marginal: Tensor, log_average: Tensor) -> Tensor:
    """A loss with MINE's corrected gradient; its value means nothing, report `donsker_varadhan` instead.

    The gradient of -ln E[exp T] on a batch divides by that batch's mean, which is biased; here it divides by
    a moving average that is held fixed (Belghazi et al., 2018, eq. 12).
    """
    return -joint.mean() + (marginal - log_average).exp().mean()


def info_nce_bound(scores: Tensor) -> Tensor:
    """Ln N minus InfoNCE's loss; never above ln N (van den Oord et al., 2018).

    Args:
        scores: (N, N), row i scores the left half i with every right half; its own stands on the diagonal.
            Minus infinity leaves a pair out, and N of its row is one less.
    """
    considered = (scores > -inf).sum(dim=1, dtype=scores.dtype)
    return (considered.log() + scores.log_softmax(dim=1).diagonal()).mean()


def fano_bound(accuracy: float, sizes: Sequence[int]) -> float:
    """The least I(Z;Y) that lets anyone read `accuracy` out of Z, for classes with so many texts each."""
    if len(sizes) < 2:
        return 0.0
    error = 1 - accuracy
    about_classes = _entropy([size / sum(sizes) for size in sizes])
    return max(0.0, about_classes - _entropy([accuracy, error]) - error * log(len(sizes) - 1))


def _entropy(shares: Sequence[float]) -> float:
    return -sum(share * log(share) for share in shares if share > 0)
