"""The eigenvalue spectrum of representations: in how many directions they spread."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TOP = 100  # eigenvalues that are shown


@dataclass(frozen=True)
class Spectrum:
    """The largest eigenvalues of the covariance, and summaries that ignore the scale of representations.

    Attributes:
        raw: as they are; they grow with the square of the representations' length, so do not compare methods
            by them.
        unit: after every representation was scaled to length 1.
        shares: parts of the total variance.
        effective_rank: exp of the shares' entropy; d equal eigenvalues give d.
        participation_ratio: (Σλ)² / Σλ²; d equal eigenvalues give d.
        top_share: part of the variance in the first C - 1 directions, all that C class means can span.
        texts: how many representations; no more than texts - 1 eigenvalues can be above zero.
    """

    raw: Sequence[float]
    unit: Sequence[float]
    shares: Sequence[float]
    effective_rank: float
    participation_ratio: float
    top_share: float
    texts: int


def spectrum(representations: NDArray[np.floating], classes: int) -> Spectrum:
    """The spectrum of (texts, size) representations of texts of so many classes."""
    values = eigenvalues(representations)
    shares = _shares(values)
    return Spectrum(
        raw=values[:TOP].tolist(),
        unit=eigenvalues(_unit(representations))[:TOP].tolist(),
        shares=shares[:TOP].tolist(),
        effective_rank=effective_rank(values),
        participation_ratio=participation_ratio(values),
        top_share=float(shares[: max(classes - 1, 0)].sum()),
        texts=len(representations),
    )


def eigenvalues(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """Eigenvalues of the covariance (n - 1 in the denominator), falling; all zero for fewer than two rows."""
    if len(rows) < 2:
        return np.zeros(len(rows))
    wide = rows.astype(np.float64)
    singular = np.linalg.svd(wide - wide.mean(axis=0), compute_uv=False)
    return np.asarray(singular**2 / (len(rows) - 1), dtype=np.float64)


def effective_rank(values: NDArray[np.float64]) -> float:
    """Exp of the entropy of the eigenvalues' shares."""
    shares = _shares(values)
    positive = shares[shares > 0]
    return float(np.exp(-(positive * np.log(positive)).sum()))


def participation_ratio(values: NDArray[np.float64]) -> float:
    """(Σλ)² / Σλ²; 1 where there is no variance at all."""
    total = float((values**2).sum())
    return float(values.sum() ** 2 / total) if total > 0 else 1.0


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    total = values.sum()
    return values / total if total > 0 else np.zeros_like(values)


def _unit(rows: NDArray[np.floating]) -> NDArray[np.floating]:
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))
