"""Knowledge transfer: what learning a task does for tasks that follow, and to tasks that went before."""

import warnings
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from repcl.analysis.snapshots import Numbers, Rows, Snapshot, Snapshots
from repcl.evaluation import AccuracyMatrix, backward_transfer

SHOTS = (1, 5, 10)
STRENGTH = 10.0  # C of the probe: weak regularization for rows of length 1

ProbeMatrix = list[list[float | None]]


def probe_accuracy(
    rows: Rows, labels: Numbers, test_rows: Rows, test_labels: Numbers, *, shots: int
) -> float | None:
    """Test accuracy of logistic regression on `shots` texts of each class, on rows of length 1.

    All disjoint sets of so many texts of every class are used in turn, and the accuracies averaged; with
    fewer texts of a class there is one set, with what it has. None where there is nothing to tell apart or
    nothing to test.
    """
    if len(np.unique(labels)) < 2 or not len(test_labels):
        return None
    indices = _indices_within_class(labels)
    sets = max(1, min(Counter(labels.tolist()).values()) // shots)
    accuracies = []
    for number in range(sets):
        chosen = indices // shots == number
        accuracies.append(_fit_and_score(rows[chosen], labels[chosen], test_rows, test_labels))
    return fmean(accuracies)


def probe_matrix(snapshots: Snapshots, *, shots: int) -> ProbeMatrix:
    """Row i, column j: probe accuracy on task j with the encoder after i tasks, where j was not learned yet.

    Row 0 is the untouched encoder; what later rows lose against it is representation bias.
    """
    return [
        [
            _probe_task(snapshots, moment, task, shots) if task >= done else None
            for task in range(snapshots.tasks)
        ]
        for done in range(snapshots.tasks)
        for moment in [snapshots.after.get(done)]
    ]


def forward_transfer(matrix: ProbeMatrix) -> float | None:
    """Mean over tasks from the second on: probe accuracy just before the task, minus the untouched one."""
    gains = []
    for task in range(1, len(matrix)):
        before, untouched = matrix[task][task], matrix[0][task]
        if before is not None and untouched is not None:
            gains.append(before - untouched)
    return fmean(gains) if gains else None


def masked_matrix(snapshots: Snapshots) -> AccuracyMatrix:
    """The accuracy matrix when the task of a text is given, and only its classes can be answered."""
    return AccuracyMatrix(
        tuple(
            tuple(_masked_accuracy(snapshots, after, task) for task in range(snapshots.tasks))
            for after in range(1, snapshots.tasks + 1)
        )
    )


def masked_backward_transfer(snapshots: Snapshots) -> float | None:
    """Backward transfer that the growing number of classes has no part in."""
    return backward_transfer(masked_matrix(snapshots))


def steps_to_halve(losses: Sequence[float] | Rows, *, window: int = 5) -> int | None:
    """Learning speed: steps until the loss (mean of `window` steps) is half of its first value."""
    if len(losses) < window:
        return None
    smooth = np.convolve(np.asarray(losses, dtype=np.float64), np.ones(window) / window, mode="valid")
    low = np.nonzero(smooth <= smooth[0] / 2)[0]
    return int(low[0]) + window if len(low) else None


def _probe_task(snapshots: Snapshots, moment: Snapshot | None, task: int, shots: int) -> float | None:
    if moment is None:
        return None
    fitted, tested = snapshots.probe_tasks == task, snapshots.test_tasks == task
    return probe_accuracy(
        moment.probe[fitted],
        snapshots.probe_labels[fitted],
        moment.test[tested],
        snapshots.test_labels[tested],
        shots=shots,
    )


def _masked_accuracy(snapshots: Snapshots, after: int, task: int) -> float | None:
    moment = snapshots.after.get(after)
    of_task = snapshots.test_tasks == task
    if moment is None or task >= after or not of_task.any():
        return None
    return float(np.mean(moment.within_task[of_task] == snapshots.test_labels[of_task]))


def _indices_within_class(labels: Numbers) -> NDArray[np.int64]:
    """For each row how many rows of its class stand before it."""
    indices = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        is_member = labels == label
        indices[is_member] = np.arange(is_member.sum())
    return indices


def _fit_and_score(rows: Rows, labels: Numbers, test_rows: Rows, test_labels: Numbers) -> float:
    from sklearn.linear_model import LogisticRegression  # takes seconds to import

    probe = LogisticRegression(C=STRENGTH, max_iter=1000)
    with warnings.catch_warnings():
        # one text of each of many classes is what is asked for here
        warnings.filterwarnings("ignore", message="The number of unique classes")
        probe.fit(_unit(rows), labels)
    return float(probe.score(_unit(test_rows), test_labels))


def _unit(rows: Rows) -> Rows:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
