"""The loss of predicting masked tokens."""

from torch import Tensor
from torch.nn import functional


def masked_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy over the masked positions; a differentiable zero when nothing was masked.

    Args:
        logits: (masked, vocabulary).
        targets: (masked,) token ids that were masked.
    """
    # the built-in mean over no position at all is NaN
    return functional.cross_entropy(logits, targets, reduction="sum") / max(len(targets), 1)
