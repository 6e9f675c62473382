"""Sample weights: how many times each text counts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from repcl.classifier.guard import drawn
from repcl.classifier.inputs import InvalidInput, Label
from repcl.data import Example
from repcl.errors import shortened

MOST = 1000


def weighted(
    examples: Sequence[Example], labels: Sequence[Label], sample_weight: Any, *, seed: int
) -> tuple[list[Example], list[Label]]:
    """The examples and their labels, each as many times as its weight says.

    A whole number is the same as that many copies, 0 as none. Of a fraction such as 2.3, the text counts two
    or three times, so that the weights of a class add up; which texts get more depends on texts and seed
    only. A class with any weight above 0 has at least one text.

    Args:
        examples: to learn.
        labels: of the examples.
        sample_weight: a number for each.
        seed: decides which texts are rounded up.
    """
    weights = _checked(sample_weight, len(examples))
    by_class: dict[Label, list[int]] = {}
    for index in sorted(np.flatnonzero(weights).tolist(), key=lambda index: drawn(seed, examples[index])):
        by_class.setdefault(labels[index], []).append(index)
    if not by_class:
        raise InvalidInput("Expected a sample_weight above 0 for some text, found none.")
    times = np.zeros(len(examples), dtype=np.int64)
    for own in by_class.values():
        times[own] = _rounded(weights[own])
    chosen = np.repeat(np.arange(len(examples)), times).tolist()
    return [examples[index] for index in chosen], [labels[index] for index in chosen]


def _rounded(weights: Any) -> Any:
    """Whole numbers whose sums stay as close to those of the weights as can be."""
    whole = np.floor(weights)
    steps = np.floor((weights - whole).cumsum() + 0.5)
    found = (whole + np.diff(steps, prepend=0.0)).astype(np.int64)
    if not found.any():
        found[weights.argmax()] = 1
    return found


def _checked(sample_weight: Any, count: int) -> Any:
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"Expected a number for each text as sample_weight, found {shortened(sample_weight)}."
        ) from error
    if weights.ndim == 0:
        weights = np.full(count, float(weights))
    if weights.shape != (count,):
        raise InvalidInput(
            f"Expected one sample_weight for each of the {count} texts, found shape {weights.shape}: "
            "sample_weight.shape has to be (texts,)."
        )
    is_bad = ~((weights >= 0) & (weights <= MOST))
    if is_bad.any():
        index = int(is_bad.argmax())
        raise InvalidInput(
            f"Expected sample_weight from 0 to {MOST}, found {weights[index]} at position {index}: a weight "
            "of 2 counts a text twice."
        )
    return weights
