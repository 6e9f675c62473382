"""Embeddings as sentence-transformers makes them, for peers that bring no encoder of their own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 64


class Sentences:
    """Mean states of an encoder's last layer at unit length.

    A text's embedding is kept: test texts come again after every task.

    Args:
        encoder: a folder.
    """

    def __init__(self, encoder: Path) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(encoder))
        self.model: Any = AutoModel.from_pretrained(str(encoder)).eval()
        self.kept = dict[str, Any]()

    def __call__(self, texts: Sequence[str]) -> Any:
        """Embeddings, (texts, size), as a NumPy array."""
        new = [text for text in dict.fromkeys(texts) if text not in self.kept]
        self.kept.update(zip(new, self.embedded(new), strict=True))
        return np.stack([self.kept[text] for text in texts])

    def embedded(self, texts: Sequence[str]) -> list[Any]:
        import torch

        rows = list[Any]()
        with torch.no_grad():
            for start in range(0, len(texts), BATCH):
                batch = list(texts[start : start + BATCH])
                tokens = self.tokenizer(
                    batch, padding=True, truncation=True, max_length=256, return_tensors="pt"
                )
                states = self.model(**tokens).last_hidden_state
                mask = tokens["attention_mask"][:, :, None]
                means = (states * mask).sum(dim=1) / mask.sum(dim=1)
                rows.extend(torch.nn.functional.normalize(means, dim=1).numpy())
        return rows
