"""Losses as pure functions: tensors in, scalar out; no model, no settings, no state."""

from repcl.losses.contrast import info_nce, supervised_contrast, supervised_info_nce
from repcl.losses.distillation import (
    divergence,
    feature_distillation,
    soft_cross_entropy,
    squared_distance,
)
from repcl.losses.language import masked_token_loss

__all__ = [
    "divergence",
    "feature_distillation",
    "info_nce",
    "masked_token_loss",
    "soft_cross_entropy",
    "squared_distance",
    "supervised_contrast",
    "supervised_info_nce",
]
