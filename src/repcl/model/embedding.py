"""Representations by a frozen encoder: each text is encoded once, and always to the same bits."""

import hashlib
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from repcl.data import Example, collate
from repcl.model.encoder import Encoder

BATCH = 64
FEWEST_ROWS = 4
LARGEST_MEMORY = 1 << 29
CACHE_VARIABLE = "REPCL_EMBEDDINGS"

_of_encoder: "WeakKeyDictionary[Encoder, Embeddings]" = WeakKeyDictionary()


class Embeddings:
    """The representations of a frozen encoder, kept in memory and, if a folder is given, on disk.

    Texts are encoded in batches of equal length, without padding, so a text's representation does not depend
    on the texts beside it: whether it came from the cache makes no difference to any bit.

    Args:
        encoder: whose weights never change.
        folder: where representations are kept between runs.
    """

    def __init__(self, encoder: Encoder, folder: Path | None = None) -> None:
        self.encoder = encoder
        self.kept: dict[str, Tensor] = {}
        self.store = EmbeddingStore(folder, encoder) if folder else None

    @classmethod
    def of(cls, encoder: Encoder) -> "Embeddings":
        """The one cache of an encoder; `REPCL_EMBEDDINGS` names the folder for disk."""
        if encoder not in _of_encoder:
            folder = os.environ.get(CACHE_VARIABLE)
            _of_encoder[encoder] = cls(encoder, Path(folder) if folder else None)
        return _of_encoder[encoder]
