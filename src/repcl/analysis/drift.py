"""Drift and confusion: how far old classes move, and which new classes they are taken for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from repcl.analysis.snapshots import Rows, Snapshots
from repcl.evaluation import TestedExample


@dataclass(frozen=True)
class Movement:
    """How far the centroids of all old classes moved while one task was learned, means over classes.

    Attributes:
        task: the task that was learned, from 0.
        turned: 1 - cosine between a centroid before and after.
        moved: distance moved, as a part of the centroid's length before.
        classes: how many old classes there were.
    """

    task: int
    turned: float
    moved: float
    classes: int


@dataclass(frozen=True)
class Confusion:
    """An old class, a class that came later, and how many of the old one's test texts are taken for it."""

    label: str
    taken_for: str
    texts: int
    share: float


def centroid_movements(snapshots: Snapshots) -> list[Movement]:
    """For each task from the second on, where the moments before and after it were kept."""
    movements = []
    for task in range(1, snapshots.tasks):
        before, after = snapshots.after.get(task), snapshots.after.get(task + 1)
        if before is not None and after is not None:
            movements.append(_movement(before.test, after.test, snapshots, task))
    return [movement for movement in movements if movement.classes]


def taken_for_newer(
    tested: Sequence[TestedExample], class_tasks: Mapping[str, int], *, most: int = 10
) -> list[Confusion]:
    """The most frequent mistakes after the last task that take an old class for a class of a later task."""
    texts = Counter(example.label for example in tested)
    mistakes = Counter(
        (example.label, guess)
        for example in tested
        if (guess := example.predicted[-1]) is not None and class_tasks[guess] > class_tasks[example.label]
    )
    ordered = sorted(mistakes.items(), key=lambda item: (-item[1], item[0]))
    return [
        Confusion(label, guess, number, number / texts[label]) for (label, guess), number in ordered[:most]
    ]


def _movement(before: Rows, after: Rows, snapshots: Snapshots, task: int) -> Movement:
    is_old = snapshots.test_tasks < task
    old = np.unique(snapshots.test_labels[is_old])
    turned, moved = [], []
    for label in old:
        rows = is_old & (snapshots.test_labels == label)
        one, other = before[rows].mean(axis=0), after[rows].mean(axis=0)
        length = float(np.linalg.norm(one))
        cosine = float(one @ other) / (length * float(np.linalg.norm(other)))
        turned.append(max(0.0, 1 - cosine))  # rounding must not make it negative
        moved.append(float(np.linalg.norm(other - one)) / length)
    return Movement(task, float(np.mean(turned or [0.0])), float(np.mean(moved or [0.0])), classes=len(old))
