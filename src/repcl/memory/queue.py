"""A first-in-first-out queue of contrastive keys with their labels."""

import torch
from torch import Tensor


class KeyQueue:
    """Keys of recent batches, newest first, at most `size` of them."""

    def __init__(self, size: int, keys: Tensor, labels: Tensor) -> None:
        self.size = size
        self.keys = keys[:size].detach()
        self.labels = labels[:size]

    def push(self, keys: Tensor, labels: Tensor) -> None:
        """Put a batch in front and drop what is too old."""
        self.keys = torch.cat([keys.detach(), self.keys])[: self.size]
        self.labels = torch.cat([labels, self.labels])[: self.size]
