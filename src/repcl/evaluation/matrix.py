"""The accuracy matrix: how well each task was solved after each task."""

from collections.abc import Sequence
from dataclasses import dataclass

from repcl.evaluation.predictions import TestedExample, fraction_correct


@dataclass(frozen=True)
class AccuracyMatrix:
    """Accuracies between 0 and 1 of one run; tasks count from 0.

    Attributes:
        rows: Row i holds the accuracies after task i, column j those on task j. None above the diagonal,
            where nothing was evaluated, and where a task has no test examples.
    """

    rows: tuple[tuple[float | None, ...], ...]

    @classmethod
    def from_predictions(cls, tested: Sequence[TestedExample], tasks: int) -> "AccuracyMatrix":
        """Count the correct predictions of each task after each task."""
        of_task = [[example for example in tested if example.task == task] for task in range(tasks)]
        return cls(
            tuple(
                tuple(fraction_correct(examples, after=after) for examples in of_task)
                for after in range(tasks)
            )
        )

    @property
    def tasks(self) -> int:
        """How many tasks were learned."""
        return len(self.rows)

    def accuracy(self, *, on: int, after: int) -> float | None:
        """Accuracy on one task's test examples after another task."""
        return self.rows[after][on]

    def column(self, task: int) -> tuple[float | None, ...]:
        """Accuracies on one task, from the moment it was learned to the end."""
        return tuple(row[task] for row in self.rows[task:])

    def as_lists(self) -> list[list[float | None]]:
        """The rows as JSON can hold them."""
        return [list(row) for row in self.rows]
