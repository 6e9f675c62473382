"""How many groups texts form, and which: a tree of merges, cut where groups are as far apart as classes are.

Ward's tree merges the two groups whose union adds least scatter, n_a n_b / (n_a + n_b) · |mean_a - mean_b|².
Divided by the harmonic mean of both sizes plus a constant, for the chance in means of few texts, this can be
compared between large and small groups: it is called the *gap* of a merge here.

Where to stop is read off the classes that were learned. Their kept texts form a tree of their own, with as
many texts of each class as the groups in question have; the gap at which that tree has as many groups as
there are classes is the gap of a class. The number of groups is the one for which both sides agree: with so
many groups, and so many texts in each, the gap of a class leaves just so many groups. Few numbers disagree
much, for larger groups have wider gaps, so a single crossing would be a matter of chance: a line through the
disagreement of all numbers that are likely says where they agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import pairwise_distances, silhouette_score

from repcl.classifier.vectors import Labels, Vectors

MAX_TREE = 2000
"""Texts that groups are formed from; further ones join the nearest group."""

# Chosen on training texts of demo, HWU64, BANKING77 and CLINC150 (benchmarks/group_number.py).
FEW_TEXTS = 10.0
"""Added to the size of groups: with so many texts the mean of a group counts half."""
USUAL_GAP = 0.1
"""The gap of a class of ten texts, where no learned class tells: a share of the spread of all texts."""
GROWTH = 0.15
"""The gap grows with this power of the number of texts of a group, where no learned class tells."""
USUAL_WEIGHT = 3.0
"""The usual gap counts as much as three learned classes."""
TEN = 10.0
USUAL_SIZE = 12.0
SIZE_WEIGHT = 0.1
"""How much groups of twelve texts are preferred where the gap says little."""
LIKELY = 0.7
"""Numbers count less in the line the further they are from the one of groups of twelve texts: this is the
standard deviation of their logarithms."""

ASKED = (2, 3, 5, 8, 13, 20)
"""Texts of each learned class with which the gap is measured."""
MOST_ASKED = 1500
DRAWS = 2
STEPS = 60
FEWEST_SIZES = 3
"""Sizes of learned classes by which growth can be measured."""


@dataclass(frozen=True)
class Guide:
    """What learned classes tell about the gap of a class.

    Attributes:
        classes: how many there are.
        sizes: log of the number of texts of a class, ascending.
        gaps: log of the gap of a class with so many texts.
        spread: mean squared distance of their texts from the mean of all, where gaps are shares of it.
    """

    classes: int = 0
    sizes: Sequence[float] = ()
    gaps: Sequence[float] = ()
    spread: float | None = None

    def log_gap(self, size: float, spread: float) -> float:
        """Log of the gap of a class.

        Args:
            size: how many texts it has.
            spread: mean squared distance of the texts in question from their mean.
        """
        usual = float(np.log(USUAL_GAP * spread) + GROWTH * np.log(size / TEN))
        if not self.sizes:
            return usual
        beyond = max(0.0, float(np.log(size)) - self.sizes[-1])
        learned = float(np.interp(np.log(size), self.sizes, self.gaps)) + self._growth() * beyond
        if self.spread:
            learned += float(np.log(spread / self.spread))
        weight = self.classes / (self.classes + USUAL_WEIGHT)
        return weight * learned + (1 - weight) * usual

    def _growth(self) -> float:
        """The power of the number of texts with which the measured gap grows."""
        last = slice(-FEWEST_SIZES - 1, None)
        few = len(self.sizes) < FEWEST_SIZES
        return GROWTH if few else float(np.polyfit(self.sizes[last], self.gaps[last], 1)[0])


def learned_guide(vectors: Vectors, labels: Labels, *, is_trained: bool = False) -> Guide:
    """The guide of learned classes.

    Args:
        vectors: of their kept texts, (texts, size).
        labels: the class of each.
        is_trained: whether the encoder was trained on these classes; it has pulled them apart, so that only
            the relation of gap and spread tells something about other texts.
    """
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    count = len(members)
    if count < 2:
        return Guide()
    most = min(int(np.median([len(own) for own in members])), ASKED[-1], max(2, MOST_ASKED // count))
    draw = np.random.default_rng(0)
    points = []
    for asked in sorted({min(size, most) for size in ASKED}):
        found = []
        for _ in range(DRAWS):
            chosen = np.concatenate([draw.permutation(own)[:asked] for own in members])
            gap = _gap_of_classes(vectors[chosen], count)
            found += [] if gap is None else [gap]
        if found:
            points.append((float(np.log(len(chosen) / count)), float(np.mean(found))))
    if not points:
        return Guide()
    sizes, gaps = zip(*points, strict=True)
    return Guide(count, sizes, gaps, _spread(vectors) if is_trained else None)


def group_vectors(
    vectors: Vectors, groups: int | None = None, guide: Guide | None = None
) -> tuple[Labels, float | None]:
    """The group of each vector, and how well groups are apart: their mean silhouette.

    Args:
        vectors: (texts, size).
        groups: how many to form; suggested if not given.
        guide: what learned classes tell about the gap of a class.
    """
    count = len(vectors)
    if count < (3 if groups is None else 2) or groups == 1:
        return np.zeros(count, dtype=np.int64), None
    sample = vectors[np.linspace(0, count - 1, min(count, MAX_TREE)).astype(int)]
    tree = linkage(sample, method="ward")
    wanted = groups or group_number(tree, guide or Guide(), spread=_spread(sample))
    cut = fcluster(tree, wanted, criterion="maxclust").astype(np.int64)
    is_apart = 1 < len(np.unique(cut)) < len(sample)
    return _joined(vectors, sample, cut), float(silhouette_score(sample, cut)) if is_apart else None


def group_number(tree: Vectors, guide: Guide, *, spread: float) -> int:
    """How many groups the leaves of a tree form: at least two, and of two leaves or more on average."""
    leaves, gaps, most = len(tree) + 1, merge_gaps(tree), max(2, (len(tree) + 1) // 2)
    if gaps.max() <= 0:
        return 1  # all texts have one place

    def left(number: float) -> int:
        """How many groups the gap of a class leaves, if its size is that of so many groups."""
        return 1 + int((gaps > np.exp(guide.log_gap(leaves / number, spread))).sum())

    if most == 2:
        return 2
    numbers = np.geomspace(2, most, STEPS)
    unusual = np.log(numbers * USUAL_SIZE / leaves)
    disagreement = np.log([left(number) for number in numbers]) - np.log(numbers)
    # weights of squares are the squares of those that polyfit takes
    slope, offset = np.polyfit(unusual, disagreement, 1, w=np.exp(-((unusual / LIKELY) ** 2) / 4))
    agreed = -slope * offset / (slope**2 + SIZE_WEIGHT)  # the least of disagreement² + SIZE_WEIGHT · unusual²
    return min(max(2, left(np.clip(np.exp(agreed) * leaves / USUAL_SIZE, 2, most))), most)


def merge_gaps(tree: Vectors) -> NDArray[np.float64]:
    """The gap of each merge of Ward's tree, (merges,), or that of an earlier merge inside if it is larger."""
    leaves = len(tree) + 1
    sizes = np.concatenate([np.ones(leaves), tree[:, 3]])
    one, other = tree[:, 0].astype(int), tree[:, 1].astype(int)
    mean_size = 2 * sizes[one] * sizes[other] / (sizes[one] + sizes[other])
    gaps = np.concatenate([np.zeros(leaves), tree[:, 2] ** 2 / 2 / (mean_size + FEW_TEXTS)])
    for merge in range(len(tree)):
        gaps[leaves + merge] = max(gaps[leaves + merge], gaps[one[merge]], gaps[other[merge]])
    return gaps[leaves:]


def _gap_of_classes(vectors: Vectors, classes: int) -> float | None:
    """Log of the gap that leaves about as many groups as there are classes; None with too few texts."""
    fewest, most = max(0, int(0.9 * classes) - 2), int(np.ceil(1.1 * classes))
    if len(vectors) < most + 3:
        return None
    gaps = np.sort(merge_gaps(linkage(vectors, method="ward")))[::-1][fewest : most + 1]
    if gaps[-1] <= 0:
        return None
    return float(np.log(gaps).mean())


def _spread(vectors: Vectors) -> float:
    return float(((vectors - vectors.mean(axis=0)) ** 2).sum(axis=1).mean())


def _joined(vectors: Vectors, sample: Vectors, cut: Labels) -> Labels:
    """Every vector in the group whose mean is nearest; those of the tree stay where the tree put them."""
    names = np.unique(cut)
    if len(vectors) == len(sample):
        return np.searchsorted(names, cut).astype(np.int64)
    means = np.stack([sample[cut == name].mean(axis=0) for name in names])
    nearest: Labels = pairwise_distances(vectors, means).argmin(axis=1).astype(np.int64)
    return nearest
