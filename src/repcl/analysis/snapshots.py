"""What is kept of a run for its analysis: representations of fixed texts at several moments."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Snapshot:
    """One moment of a run.

    Attributes:
        test: (test texts, size) representations of all test texts, of later tasks too.
        probe: (probe texts, size) representations of a few training texts of each class.
        within_task: (test texts,) the best class among those of the text's own task; -1 where its task was
            not learned yet.
        losses: (steps,) training loss of the new task, step by step.
    """

    test: Rows
    probe: Rows
    within_task: Numbers
    losses: Rows


@dataclass(frozen=True)
class Snapshots:
    """All moments of a run that were kept; classes and tasks count from 0 in order of arrival.

    Attributes:
        classes: names, in order of arrival.
        tasks: how many there are.
        inputs: (test texts, hidden) mean state of each text in the untouched encoder: the X of I(X;Z).
        test_labels: (test texts,) their classes.
        test_tasks: (test texts,) the tasks whose test part they are in.
        probe_labels: (probe texts,) their classes.
        probe_tasks: (probe texts,) the tasks whose training part they are in.
        after: number of tasks learned -> moment; 0 is the untouched encoder.
    """

    classes: tuple[str, ...]
    tasks: int
    inputs: Rows
    test_labels: Numbers
    test_tasks: Numbers
    probe_labels: Numbers
    probe_tasks: Numbers
    after: Mapping[int, Snapshot]

    @property
    def last(self) -> Snapshot | None:
        """The moment after the last task."""
        return self.after.get(self.tasks)

    @property
    def first(self) -> Snapshot | None:
        """After the first task; the end for a method that is trained only then, as `joint`."""
        return self.after.get(1) or (self.last if set(self.after) == {0, self.tasks} else None)
