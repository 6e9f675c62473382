"""Finding new classes: texts that a classifier does not know, in groups of alike ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import pairwise_distances, silhouette_score

from repcl.classifier.estimator import ContinualClassifier
from repcl.classifier.inputs import as_examples
from repcl.data import Example
from repcl.errors import InvalidSetting

MAX_GROUPS = 50
SHARE_OF_BEST = 0.9
"""Fewest groups with this share of the best separation win. Silhouettes hardly fall where a class is split:
on classes of CLINC150 the best alone suggested twice as many groups as there were."""
MAX_TREE = 2000
"""Texts that groups are formed from; further ones join the nearest group."""

Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Texts that are alike, the most typical first."""

    name: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Discovery:
    """What was found among some texts.

    Attributes:
        asked: how many texts there were.
        unknown: how many of them the classifier does not know.
        groups: the unknown ones, the largest group first.
        separation: mean silhouette from -1 to 1; near 0 the groups run into each other.
    """

    asked: int
    unknown: int
    groups: tuple[Group, ...]
    separation: float | None


def discover(
    classifier: ContinualClassifier,
    texts: Any,
    *,
    threshold: float | str = "auto",
    groups: int | None = None,
) -> Discovery:
    """Group the texts that a classifier does not know.

    Args:
        classifier: says which texts it knows, and how alike texts are.
        texts: a sequence of str or of `Example`.
        threshold: the least confidence with which a text is known.
        groups: how many to form; chosen by their separation if not given.
    """
    examples = as_examples(texts)
    state = classifier.fitted_state()
    is_unknown = state.unknown_rule(threshold).applies(state.evidence(examples))
    unknown = [example for example, has_no_class in zip(examples, is_unknown, strict=True) if has_no_class]
    unique = list({example.text: example for example in unknown}.values())
    if groups is not None and groups > len(unique) > 0:
        raise InvalidSetting(
            f"Expected at most {len(unique)} groups for as many unknown texts, found {groups}."
        )
    vectors = embed(classifier, unique)
    labels, separation = group_vectors(vectors, groups)
    return Discovery(len(examples), len(unknown), _groups(unique, vectors, labels), separation)


def embed(classifier: ContinualClassifier, examples: Sequence[Example]) -> Vectors:
    """Representations at unit length, (examples, size)."""
    return classifier.fitted_state().embed(examples)


def group_vectors(vectors: Vectors, groups: int | None = None) -> tuple[NDArray[np.int64], float | None]:
    """The group of each vector and how well groups are apart: Ward's tree, cut where silhouettes are best."""
    count = len(vectors)
    if count < (3 if groups is None else 2) or groups == 1:
        return np.zeros(count, dtype=np.int64), None
    chosen = np.linspace(0, count - 1, min(count, MAX_TREE)).astype(int)
    sample = vectors[chosen]
    tree = linkage(sample, method="ward")
    distances = pairwise_distances(sample)
    wanted = [groups] if groups else range(2, min(MAX_GROUPS, len(sample) // 2, len(sample) - 1) + 1)
    cuts = [fcluster(tree, number, criterion="maxclust") for number in wanted]
    rated = [
        (float(silhouette_score(distances, cut, metric="precomputed")), index)
        for index, cut in enumerate(cuts)
        if 1 < len(np.unique(cut)) < len(sample)
    ]
    if not rated:
        return _joined(vectors, sample, cuts[0]) if groups else np.zeros(count, dtype=np.int64), None
    separation, best = next(pair for pair in rated if pair[0] >= SHARE_OF_BEST * max(rated)[0])
    return _joined(vectors, sample, cuts[best]), separation


def _joined(vectors: Vectors, sample: Vectors, cut: NDArray[Any]) -> NDArray[np.int64]:
    """Every vector in the group whose mean is nearest; those of the tree stay where the tree put them."""
    names = np.unique(cut)
    if len(vectors) == len(sample):
        return np.searchsorted(names, cut).astype(np.int64)
    means = np.stack([sample[cut == name].mean(axis=0) for name in names])
    nearest: NDArray[np.int64] = pairwise_distances(vectors, means).argmin(axis=1).astype(np.int64)
    return nearest


def _groups(examples: Sequence[Example], vectors: Vectors, labels: NDArray[np.int64]) -> tuple[Group, ...]:
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)] if len(examples) else []
    ordered = sorted(members, key=lambda own: (-len(own), int(own[0])))
    found = []
    for number, own in enumerate(ordered, start=1):
        distance = np.linalg.norm(vectors[own] - vectors[own].mean(axis=0), axis=1)
        texts = tuple(examples[index].text for index in own[np.argsort(distance, kind="stable")])
        found.append(Group(f"group-{number}", texts))
    return tuple(found)
