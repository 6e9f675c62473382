"""Seeded class orders: the same orders as the authors' released code, round by round."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")


def round_seed(round_number: int) -> int:
    """The random seed of a round: round 0 is the first round of the authors' code."""
    return 2021 + 100 * round_number


def class_order(number_of_classes: int, seed: int) -> list[int]:
    """A seeded order of class indices.

    The argsort of a shuffled list is again a random order; it is what the published codes do, and only
    with it are their task sequences met.
    """
    shuffled = list(range(number_of_classes))
    random.Random(seed).shuffle(shuffled)
    return sorted(range(number_of_classes), key=shuffled.__getitem__)


def equal_parts(items: Sequence[Item], parts: int) -> list[list[Item]]:
    """Cut a sequence into parts whose sizes differ by one at most, larger parts first."""
    size, larger = divmod(len(items), parts)
    bounds = [0]
    for part in range(parts):
        bounds.append(bounds[-1] + size + (part < larger))
    return [list(items[start:end]) for start, end in pairwise(bounds)]
