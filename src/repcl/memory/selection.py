"""Which examples of a class to keep: those nearest to the centers of its clusters, or to its mean."""

from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Features = NDArray[np.floating[Any]]


def nearest_to_centers(features: Features, count: int) -> list[int]:
    """Rows nearest to the centers of `count` K-means clusters, the row of the largest cluster first.

    When two centers would take the same row, the later one takes its next nearest; so exactly
    `min(count, rows)` different rows come back, in an order in which any beginning is a sensible choice.
    """
    wanted = min(count, len(features))
    if wanted in (0, len(features)):
        return list(range(wanted))
    from sklearn.cluster import KMeans  # takes a second to import, and answering needs none
    from sklearn.exceptions import ConvergenceWarning

    clusters = min(wanted, len(np.unique(features, axis=0)))  # equal texts cannot be different centers
    with threadpool_limits(1), catch_warnings():  # one thread: the same bits however many cores there are
        simplefilter("ignore", ConvergenceWarning)  # rows that differ by rounding alone are filled up below
        fitted = KMeans(clusters, n_init=10, random_state=0).fit(features)
    distances = fitted.transform(features)  # (rows, clusters)
    sizes = np.bincount(fitted.labels_, minlength=clusters)
    chosen: list[int] = []
    for center in np.argsort(-sizes, kind="stable"):
        chosen.append(_nearest_unused(distances[:, center], chosen))
    while len(chosen) < wanted:
        chosen.append(_nearest_unused(distances.min(axis=1), chosen))
    return chosen


def nearest_to_mean(features: Features, count: int) -> list[int]:
    """The `count` rows nearest to the mean of all rows, nearest first."""
    distances = np.linalg.norm(features - features.mean(axis=0), axis=1)
    return [int(row) for row in np.argsort(distances, kind="stable")[:count]]


def _nearest_unused(distances: Features, used: list[int]) -> int:
    return next(int(row) for row in np.argsort(distances, kind="stable") if row not in used)
