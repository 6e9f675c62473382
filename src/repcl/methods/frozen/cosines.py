"""Cosines of representations; NumPy alone, for an export compares texts without torch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

PART = 16_384
"""Rows whose numbers are widened at a time; all of many would take gigabytes."""

FEW = 1024
"""Rows that whole copies are made of on the way."""

Rows = NDArray[Any]
Cosines = NDArray[np.float32]


def nearest_cosines(rows: Rows, kept: Rows) -> Cosines:
    """Cosine of each row with the nearest of the kept rows, (rows,)."""
    unit = at_unit_length(rows)
    parts = [kept[start : start + PART] for start in range(0, len(kept), PART)]
    found: Cosines = np.max([(unit @ at_unit_length(part).T).max(axis=1) for part in parts], axis=0)
    return found


def at_unit_length(rows: Rows) -> Cosines:
    """Rows of length one; one without any length stays as it is."""
    found = rows.astype(np.float32)
    for start in range(0, len(found), FEW):
        part = found[start : start + FEW]
        part /= np.maximum(np.linalg.norm(part, axis=1, keepdims=True), np.float32(1e-12))
    return found
