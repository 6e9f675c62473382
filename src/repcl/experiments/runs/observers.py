"""Who hears about a run while it is made: the observers, and the events that travel to other processes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from torch import Tensor

from repcl.training import Observer, Observers, Stage

Outcome = TypeVar("Outcome", covariant=True)


class RunObserver(Observer):
    """An observer of training that also hears about tasks; this one does nothing."""

    def task_begins(self, number: int, tasks: int) -> None:
        """Task `number` (from 0) of `tasks` begins."""

    def task_ends(self, number: int, accuracy: float | None) -> None:
        """The task was learned; `accuracy` is over all classes seen so far."""


class RunObservers(Observers, RunObserver):
    """Several observers of a run as one."""

    def __init__(self, observers: Sequence[RunObserver]) -> None:
        super().__init__(observers)
        self.of_run = tuple(observers)

    def task_begins(self, number: int, tasks: int) -> None:
        """Tell every observer that a task begins."""
        for observer in self.of_run:
            observer.task_begins(number, tasks)

    def task_ends(self, number: int, accuracy: float | None) -> None:
        """Tell every observer that the task was learned."""
        for observer in self.of_run:
            observer.task_ends(number, accuracy)


class StageClock(RunObserver):
    """Seconds spent in each stage of the task at hand, by name, and the number of its steps.

    Wall time, which other work on the machine makes longer, and beside it the time of the processor.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.processor_seconds: dict[str, float] = {}
        self.steps = 0
        self._began = self._processor_began = 0.0

    def task_begins(self, number: int, tasks: int) -> None:  # noqa: ARG002 (every task is timed alike)
        """Count from zero."""
        self.seconds, self.processor_seconds, self.steps = {}, {}, 0

    def stage_begins(self, stage: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:  # noqa: ARG002
        """Start the clocks."""
        self._began, self._processor_began = time.perf_counter(), time.process_time()

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:  # noqa: ARG002
        """Count it."""
        self.steps += 1

    def stage_ends(self, stage: Stage) -> None:
        """Stop the clocks."""
        name = str(stage)
        for seconds, spent in (
            (self.seconds, time.perf_counter() - self._began),
            (self.processor_seconds, time.process_time() - self._processor_began),
        ):
            seconds[name] = seconds.get(name, 0.0) + spent


class LossRecord(RunObserver):
    """The loss of each step of initial learning of the task at hand."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self._is_initial = False

    def task_begins(self, number: int, tasks: int) -> None:  # noqa: ARG002
        """Forget the task before."""
        self.losses = []

    def stage_begins(self, stage: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:  # noqa: ARG002
        """Note whether its steps count."""
        self._is_initial = stage is Stage.INITIAL_LEARNING

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        """Note the cross-entropy, or the sum where a method has none."""
        if self._is_initial:
            self.losses.append(float(terms["ce"] if "ce" in terms else sum(terms.values())))


@dataclass(frozen=True)
class TaskBegins:
    """Task `number` (from 0) of `tasks` begins."""

    number: int
    tasks: int


@dataclass(frozen=True)
class TaskEnds:
    """A task was learned; `accuracy` is over all classes seen so far."""

    number: int
    accuracy: float | None


@dataclass(frozen=True)
class StageBegins:
    """A stage of `epochs × steps_per_epoch` steps begins."""

    stage: str
    epochs: int
    steps_per_epoch: int


@dataclass(frozen=True)
class StepEnds:
    """An optimization step was made with these weighted losses."""

    terms: Mapping[str, float]


@dataclass(frozen=True)
class Note:
    """Something worth telling the user."""

    text: str


@dataclass(frozen=True)
class Ended(Generic[Outcome]):
    """A run or an analysis is over; a `Failure` if it ended with an error."""

    outcome: Outcome


Event: TypeAlias = TaskBegins | TaskEnds | StageBegins | StepEnds | Note | Ended[Any]
Tell = Callable[[Event], None]
Listener = Callable[[int, Event], None]


class Reporter(RunObserver):
    """Turns what it hears into events, plain values that can travel between processes."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell

    def task_begins(self, number: int, tasks: int) -> None:
        """Tell the number of the task."""
        self.tell(TaskBegins(number, tasks))

    def task_ends(self, number: int, accuracy: float | None) -> None:
        """Tell the accuracy."""
        self.tell(TaskEnds(number, accuracy))

    def stage_begins(self, stage: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        """Tell the length of the stage."""
        self.tell(StageBegins(str(stage), epochs, steps_per_epoch))

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        """Tell the loss terms as plain numbers."""
        self.tell(StepEnds({name: float(term) for name, term in terms.items()}))
