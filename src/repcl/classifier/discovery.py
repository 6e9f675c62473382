"""Finding new classes: texts that a classifier does not know, in groups of alike ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from repcl.classifier.estimator import ContinualClassifier
from repcl.classifier.grouping import group_vectors, learned_guide
from repcl.classifier.inputs import as_examples
from repcl.classifier.known import same_text
from repcl.classifier.state import ClassifierState
from repcl.classifier.vectors import Labels, Vectors, embed, kept, of_last_layer
from repcl.data import Example
from repcl.errors import InvalidSetting
from repcl.methods.frozen.method import FrozenMethod

FEWEST_GUIDED = 2
"""With no more texts than that, learned classes say nothing about the number of groups."""


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
    unique = list({same_text(example): example for example in unknown}.values())
    if groups is not None and groups > len(unique) > 0:
        raise InvalidSetting(
            f"Expected at most {len(unique)} groups for as many unknown texts, found {groups}."
        )
    known = kept(state) if groups is None and len(unique) > FEWEST_GUIDED else None
    found, separation = grouped(state, unique, embed(state, unique), known=known, groups=groups)
    return Discovery(
        asked=len(examples),
        unknown=len(unknown),
        repeated=len(unknown) - len(unique),
        groups=found,
        separation=separation,
    )


def grouped(
    state: ClassifierState,
    examples: Sequence[Example],
    vectors: Vectors,
    *,
    known: tuple[Vectors, Labels] | None,
    groups: int | None = None,
) -> tuple[tuple[Group, ...], float | None]:
    """Examples in groups of alike ones, the largest first, and how far these are apart.

    Args:
        state: made the vectors.
        examples: each once.
        vectors: of the examples, (examples, size).
        known: vectors and classes of learned texts, which say how far apart classes are.
        groups: how many to form, where `known` does not decide.
    """
    guide, vectors = None, of_last_layer(state, vectors)
    if groups is None and known is not None and len(examples) > FEWEST_GUIDED:
        is_trained = not isinstance(state.method, FrozenMethod)
        guide = learned_guide(of_last_layer(state, known[0]), known[1], is_trained=is_trained)
    labels, separation = group_vectors(vectors, groups, guide)
    return _groups(examples, vectors, labels), separation


def _groups(examples: Sequence[Example], vectors: Vectors, labels: Labels) -> tuple[Group, ...]:
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)] if len(examples) else []
    ordered = sorted(members, key=lambda own: (-len(own), int(own[0])))
    found = []
    for number, own in enumerate(ordered, start=1):
        distance = np.linalg.norm(vectors[own] - vectors[own].mean(axis=0), axis=1)
        typical = own[np.argsort(distance, kind="stable")]
        found.append(Group(f"group-{number}", tuple(examples[index] for index in typical)))
    return tuple(found)
