"""Prototypes: the mean feature of each class."""

import torch
from torch import Tensor


def class_means(features: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Mean feature of each class, (classes, size); zeros for a class without features.

    Args:
        features: (rows, size).
        labels: (rows,) the class of each row, below `classes`.
        classes: how many rows come back.
    """
    # a product, not `index_add`, whose order of summation is left to chance on a GPU
    is_member = torch.arange(classes, device=labels.device)[:, None] == labels  # (classes, rows)
    counts = is_member.sum(dim=1, keepdim=True).clamp(min=1)
    return (is_member.to(features.dtype) @ features) / counts
