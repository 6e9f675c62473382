"""Finding new classes: texts that a classifier does not know, in groups of alike ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from repcl.classifier.estimator import ContinualClassifier
from repcl.classifier.grouping import group_vectors, learned_guide
from repcl.classifier.inputs import as_examples
from repcl.classifier.vectors import Labels, Vectors, embed, kept
from repcl.data import Example
from repcl.errors import InvalidSetting
from repcl.methods.frozen.method import FrozenMethod


@dataclass(frozen=True)
class Group:
    """Texts that are alike, the most typical first."""

    name: str
    examples: tuple[Example, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts alone."""
        return tuple(example.text for example in self.examples)


@dataclass(frozen=True)
class Discovery:
    """What was found among some texts.

    Attributes:
        asked: how many texts there were.
        unknown: how many of them the classifier does not know.
        repeated: how many of the unknown ones repeat another one, which are left out of the groups.
        groups: the unknown ones, each once, the largest group first.
        separation: mean silhouette from -1 to 1; near 0 the groups run into each other.
    """

    asked: int
    unknown: int
    repeated: int
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
        groups: how many to form; if not given, so many that they are as far apart as the learned classes.
    """
    examples, state = as_examples(texts), classifier.fitted_state()
    is_unknown = state.unknown_rule(threshold).applies(state.evidence(examples))
    unknown = [example for example, has_no_class in zip(examples, is_unknown, strict=True) if has_no_class]
    unique = list({replace(example, label=""): example for example in unknown}.values())
    if groups is not None and groups > len(unique) > 0:
        raise InvalidSetting(
            f"Expected at most {len(unique)} groups for as many unknown texts, found {groups}."
        )
    vectors, guide = embed(state, unique), None
    if groups is None and len(unique) > 2:
        guide = learned_guide(*kept(state), is_trained=not isinstance(state.method, FrozenMethod))
    labels, separation = group_vectors(vectors, groups, guide)
    return Discovery(
        asked=len(examples),
        unknown=len(unknown),
        repeated=len(unknown) - len(unique),
        groups=_groups(unique, vectors, labels),
        separation=separation,
    )


def _groups(examples: Sequence[Example], vectors: Vectors, labels: Labels) -> tuple[Group, ...]:
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)] if len(examples) else []
    ordered = sorted(members, key=lambda own: (-len(own), int(own[0])))
    found = []
    for number, own in enumerate(ordered, start=1):
        distance = np.linalg.norm(vectors[own] - vectors[own].mean(axis=0), axis=1)
        typical = own[np.argsort(distance, kind="stable")]
        found.append(Group(f"group-{number}", tuple(examples[index] for index in typical)))
    return tuple(found)
