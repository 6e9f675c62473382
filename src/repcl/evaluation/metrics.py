"""The metrics of one run, as pure functions of its accuracy matrix or of its predictions.

All are fractions, not percentages. A metric is None where it has no meaning: forgetting after a single task,
or the history of a method that was evaluated only at the end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from repcl.evaluation.matrix import AccuracyMatrix
from repcl.evaluation.predictions import TestedExample, fraction_correct


@dataclass(frozen=True)
class Scores:
    """Every metric that a result reports."""

    accuracy_matrix: AccuracyMatrix
    accuracy_after_task: tuple[float | None, ...]
    final_accuracy: float | None
    forgetting_rate: float | None
    average_incremental_accuracy: float | None
    backward_transfer: float | None
    forgetting_rate_f1: float | None


def score_predictions(tested: Sequence[TestedExample], tasks: int) -> Scores:
    """Compute every reported metric from the stored predictions."""
    matrix = AccuracyMatrix.from_predictions(tested, tasks)
    accuracies = accuracy_after_task(tested, tasks)
    return Scores(
        accuracy_matrix=matrix,
        accuracy_after_task=tuple(accuracies),
        final_accuracy=final_accuracy(tested, tasks),
        forgetting_rate=forgetting_rate(matrix),
        average_incremental_accuracy=average_incremental_accuracy(accuracies),
        backward_transfer=backward_transfer(matrix),
        forgetting_rate_f1=forgetting_rate_f1(tested, tasks),
    )


def accuracy_after_task(tested: Sequence[TestedExample], tasks: int) -> list[float | None]:
    """Accuracy after each task over all test examples of the tasks seen so far, each counting the same."""
    return [fraction_correct(tested, after=after) for after in range(tasks)]


def final_accuracy(tested: Sequence[TestedExample], tasks: int) -> float | None:
    """Accuracy after the last task over all test examples."""
    return fraction_correct(tested, after=tasks - 1)


def average_incremental_accuracy(accuracies: Sequence[float | None]) -> float | None:
    """Mean of the accuracies after each task; None if one of them is missing."""
    # the mean of what is left would not be comparable with that of a complete run
    return None if None in accuracies else _mean(accuracies)


def forgetting_rate(matrix: AccuracyMatrix) -> float | None:
    """Mean drop of the old tasks from their best earlier accuracy to the last; below 0 if they improved."""
    return _mean(_drop(matrix.column(task)) for task in range(matrix.tasks - 1))


def backward_transfer(matrix: AccuracyMatrix) -> float | None:
    """Mean change of the old tasks since they were learned; below 0 if they got worse."""
    columns = [matrix.column(task) for task in range(matrix.tasks - 1)]
    return _mean(last - first for first, *_, last in columns if first is not None and last is not None)


def forgetting_rate_f1(tested: Sequence[TestedExample], tasks: int) -> float | None:
    """The forgetting rate of the code RepCL's authors released: class F1 for accuracy, never below 0."""
    f1_after = [_class_f1(tested, after=after) for after in range(tasks)]
    drops = []
    for task in range(tasks - 1):
        classes = {example.label for example in tested if example.task == task}
        history = [_mean(f1.get(label) for label in classes) for f1 in f1_after[task:]]
        drops.append(_drop(history))
    # their best value includes the last one
    return _mean(max(drop, 0.0) for drop in drops if drop is not None)


def class_forgetting(tested: Sequence[TestedExample]) -> dict[str, float]:
    """Drop of each class from its best earlier accuracy to the last, for classes that have an earlier one."""
    tasks = max((example.task + len(example.predicted) for example in tested), default=0)
    of_class: dict[str, list[TestedExample]] = {}
    for example in tested:
        of_class.setdefault(example.label, []).append(example)
    drops = {label: _drop(accuracy_after_task(examples, tasks)) for label, examples in of_class.items()}
    return {label: drop for label, drop in drops.items() if drop is not None}


def _class_f1(tested: Sequence[TestedExample], *, after: int) -> dict[str, float]:
    """F1 of each class over all test examples evaluated after a task."""
    predictions = [(example.label, example.predicted_after(after)) for example in tested]
    pairs = [(label, predicted) for label, predicted in predictions if predicted is not None]
    if not pairs:
        return {}
    from sklearn.metrics import precision_recall_fscore_support  # takes seconds, and few need it

    true, guessed = zip(*pairs, strict=True)
    labels = sorted(set(true))
    _, _, f1, _ = precision_recall_fscore_support(true, guessed, labels=labels, zero_division=0)
    return dict(zip(labels, f1.tolist(), strict=True))


def _drop(history: Sequence[float | None]) -> float | None:
    """Best earlier value minus the last one; None if either is missing."""
    *earlier, last = history
    known = [value for value in earlier if value is not None]
    return max(known) - last if known and last is not None else None


def _mean(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
