"""The live overview of runs: what is being made, how far it is, what it reached, how long it will take."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

if TYPE_CHECKING:
    from repcl.experiments.runs.observers import Event

PARTS = 1000  # a task of a run is that many parts of its bar


def bar_with_times() -> list[ProgressColumn]:
    """A name, a bar, the time it has taken and the time left, each with its word; none of them is cut."""
    return [
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        BarColumn(bar_width=12),
        TimeElapsedColumn(),
        TextColumn("elapsed,", table_column=Column(no_wrap=True)),
        TimeRemainingColumn(),
        TextColumn("left", table_column=Column(no_wrap=True)),
    ]


class GridProgress:
    """Bars on a terminal, a line per finished task elsewhere."""

    def __init__(self, titles: Sequence[str], console: Console) -> None:
        self.titles = titles
        self.console = console
        self.states = [RunState() for _ in titles]
        self.bars = Progress(
            *bar_with_times(),
            # takes what room is left, and is cut where that is little
            TextColumn(
                "{task.fields[what]}",
                markup=False,
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            console=console,
            expand=True,
            disable=not console.is_terminal,
            transient=True,
        )
        self.overall = self.bars.add_task(f"{len(titles)} runs", total=len(titles) * PARTS, what="")
        self.lines: dict[int, TaskID] = {}

    def __enter__(self) -> "GridProgress":
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def hear(self, index: int, event: "Event") -> None:
        """Show an event of a run."""
        state = self.states[index]
        state.hear(event)
        if index not in self.lines:
            self.lines[index] = self.bars.add_task(self.titles[index], total=PARTS, what="")
        self.bars.update(self.lines[index], completed=state.share * PARTS, what=state.what)
        done = sum(state.share for state in self.states)
        failed = sum(state.has_failed for state in self.states)
        ended = sum(state.has_ended for state in self.states)
        what = f"{ended} ended" + (f", {failed} failed" if failed else "")
        self.bars.update(self.overall, completed=done * PARTS, what=what)
        news = state.news(event)
        if news is not None:
            self.console.print(Text(f"{self.titles[index]}: {news}"), soft_wrap=True)
        if state.has_ended:
            self.bars.update(self.lines[index], visible=False)


class RunState:
    """Where one run is."""

    def __init__(self) -> None:
        self.share = 0.0
        self.what = ""
        self.has_failed = False
        self.has_ended = False
        self._task, self._tasks = 0, 1
        self._stage, self._steps, self._steps_per_epoch, self._epochs = "", 0, 1, 1

    def hear(self, event: "Event") -> None:
        """Take an event into account."""
        from repcl.experiments.runs.observers import Ended, StageBegins, StepEnds, TaskBegins
        from repcl.experiments.runs.pool import Failure

        terms: Mapping[str, float] = {}
        match event:
            case TaskBegins(number, tasks):
                self._task, self._tasks = number, tasks
            case StageBegins(stage, epochs, steps_per_epoch):
                self._stage, self._epochs, self._steps_per_epoch = stage, epochs, steps_per_epoch
                self._steps = 0
            case StepEnds(terms):
                self._steps += 1
            case Ended(outcome):
                self.has_ended, self.has_failed = True, isinstance(outcome, Failure)
        self.share = 1.0 if self.has_ended else self._estimate()
        self.what = self._describe(terms)

    def news(self, event: "Event") -> str | None:
        """The event as a line of text, if it is worth one."""
        from repcl.experiments.runs.observers import Ended, Note, TaskEnds
        from repcl.experiments.runs.pool import Failure

        match event:
            case Note(text):
                return text
            case Ended(Failure() as failure):
                return f"failed, {failure.reason}"
            case TaskEnds(number, accuracy):
                reached = "not evaluated" if accuracy is None else f"accuracy {accuracy:.1%}"
                return f"task {number + 1} of {self._tasks} learned, {reached} on all classes so far"
        return None

    def _estimate(self) -> float:
        """Tasks done and the part of this task: training stages are taken for most of it."""
        from repcl.training import Stage

        within = self._steps / max(1, self._epochs * self._steps_per_epoch)
        part = {
            Stage.INITIAL_LEARNING.value: 0.6 * within,
            Stage.MEMORY_UPDATE.value: 0.6,
            Stage.REPLAY.value: 0.6 + 0.35 * within,
        }
        return (self._task + part.get(self._stage, 0.95)) / self._tasks

    def _describe(self, terms: Mapping[str, float]) -> str:
        epoch = min(self._epochs, self._steps // max(1, self._steps_per_epoch) + 1)
        losses = " ".join(f"{name} {value:.2f}" for name, value in terms.items())
        return f"task {self._task + 1}/{self._tasks} {self._stage} epoch {epoch}/{self._epochs} {losses}"
