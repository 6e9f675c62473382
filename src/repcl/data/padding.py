"""Tokenized examples side by side, padded to one length; NumPy alone, for an export answers without torch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from repcl.data.examples import TokenizedExample


class Padded(NamedTuple):
    """Rows of one length: token ids and mask, (rows, length), and spans, (rows, spans, 2)."""

    ids: NDArray[np.int64]
    mask: NDArray[np.int64]
    spans: NDArray[np.int64]


def padded(rows: Sequence[TokenizedExample], pad_id: int) -> Padded:
    """Pad rows on the right to the longest of them."""
    lengths = np.array([len(row.ids) for row in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, pad_id, dtype=np.int64)
    ids[mask] = np.concatenate([row.ids for row in rows])
    return Padded(ids, mask.astype(np.int64), np.array([row.spans for row in rows], dtype=np.int64))


def by_length(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Batches of row numbers, the short rows first."""
    order = sorted(range(len(lengths)), key=lambda row: lengths[row])
    return [order[at : at + batch_size] for at in range(0, len(order), batch_size)]
