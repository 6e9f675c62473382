"""The read-only observer of a run: what an observer of training hears, and tasks."""

from repcl.training import Observer


class RunObserver(Observer):
    """An observer that also hears about tasks; this one does nothing."""

    def task_begins(self, number: int, tasks: int) -> None:
        """Task `number` (from 0) of `tasks` begins."""

    def task_ends(self, number: int, accuracy: float | None) -> None:
        """The task was learned; `accuracy` is over all classes seen so far."""
