"""Contrastive losses: anchors are drawn to keys of their own class and away from all others.

Cosine similarities divided by the temperature are the logits. An anchor's loss is the mean over its
positives, the result the mean over the anchors that have any; without positives it is a zero that can still
be differentiated. Keys of a batch and of a queue are passed as one tensor.
"""

import torch
from torch import Tensor
from torch.nn import functional


def supervised_info_nce(
    anchors: Tensor,
    labels: Tensor,
    keys: Tensor,
    key_labels: Tensor,
    *,
    temperature: float,
    own_key: Tensor | None = None,
) -> Tensor:
    """Contrast each positive with the negatives alone: positives never compete (Barbano et al., 2022).

    Args:
        anchors: (batch, dim).
        labels: (batch,) classes of the anchors.
        keys: (candidates, dim).
        key_labels: (candidates,) classes of the keys.
        temperature: Divides the cosine similarities.
        own_key: (batch,) index of each anchor's own key, which is left out altogether; -1 where it has none.
    """
    logits = _similarity(anchors, keys) / temperature
    is_positive, is_negative = _pairs(labels, key_labels, own_key)
    # ln(eᵖ + Σeⁿ) - p, written so that losses far below the logits' precision survive
    losses = functional.softplus(_log_sum_exp(logits, is_negative) - logits)
    return _mean_over_positives(losses, is_positive)


def supervised_contrast(
    anchors: Tensor,
    labels: Tensor,
    keys: Tensor,
    key_labels: Tensor,
    *,
    temperature: float,
    own_key: Tensor | None = None,
) -> Tensor:
    """Contrast each positive with all candidates, positives included (SupCon "out", Khosla et al., 2020).

    The arguments are those of `supervised_info_nce`.
    """
    logits = _similarity(anchors, keys) / temperature
    is_positive, is_negative = _pairs(labels, key_labels, own_key)
    losses = _log_sum_exp(logits, is_positive | is_negative) - logits
    return _mean_over_positives(losses, is_positive)


def info_nce(anchors: Tensor, keys: Tensor, *, temperature: float, own_key: Tensor) -> Tensor:
    """Contrast each anchor's own key with all other keys, whatever their class (van den Oord et al., 2018).

    Args:
        anchors: (batch, dim).
        keys: (candidates, dim).
        temperature: Divides the cosine similarities.
        own_key: (batch,) index of each anchor's only positive; an anchor with -1 does not count.
    """
    # every key is a class of its own
    key_labels = torch.arange(len(keys), device=keys.device)
    return supervised_info_nce(anchors, own_key, keys, key_labels, temperature=temperature)


def _similarity(anchors: Tensor, keys: Tensor) -> Tensor:
    """Cosines of all anchors with all keys, (batch, candidates)."""
    return functional.normalize(anchors, dim=1) @ functional.normalize(keys, dim=1).T


def _pairs(labels: Tensor, key_labels: Tensor, own_key: Tensor | None) -> tuple[Tensor, Tensor]:
    """Which candidates are positives and which negatives of each anchor, both (batch, candidates)."""
    is_same_class = labels[:, None] == key_labels
    if own_key is None:
        return is_same_class, ~is_same_class
    is_other = own_key[:, None] != torch.arange(len(key_labels), device=key_labels.device)
    return is_same_class & is_other, ~is_same_class & is_other


def _log_sum_exp(logits: Tensor, included: Tensor) -> Tensor:
    """Log-sum-exp over each row's included logits, (batch, 1); the lowest finite number if there are none."""
    # -inf would be exact, but the gradient of an empty row would be NaN
    return logits.masked_fill(~included, torch.finfo(logits.dtype).min).logsumexp(dim=1, keepdim=True)


def _mean_over_positives(losses: Tensor, is_positive: Tensor) -> Tensor:
    """Mean over each anchor's positives, then over the anchors that have any."""
    positives = is_positive.sum(dim=1)
    per_anchor = losses.masked_fill(~is_positive, 0.0).sum(dim=1) / positives.clamp(min=1)
    return per_anchor.sum() / (positives > 0).sum().clamp(min=1)
