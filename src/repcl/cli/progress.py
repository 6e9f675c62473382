"""The live overview of a grid: what runs, how far it is, what it has reached, how long it will take."""

from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from repcl.experiments.events import Event

PARTS = 1000  # a task of a run is that many parts of its bar


class GridProgress:
    """Bars on a terminal, a line per finished task elsewhere."""

    def __init__(self, titles: Sequence[str], console: Console) -> None:
        self.titles = titles
        self.console = console
        self.states = [RunState() for _ in titles]
        self.bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[what]}", markup=False),
            console=console,
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

    def hear(self, number: int, event: Event) -> None:
        """Show an event of a run."""
        state = self.states[number]
        state.hear(event)
        if number not in self.lines:
            self.lines[number] = self.bars.add_task(self.titles[number], total=PARTS, what="")
        self.bars.update(self.lines[number], completed=state.share * PARTS, what=state.what)
        done = sum(state.share for state in self.states)
        failed = sum(state.has_failed for state in self.states)
        ended = sum(state.has_ended for state in self.states)
        what = f"{ended} ended" + (f", {failed} failed" if failed else "")
        self.bars.update(self.overall, completed=done * PARTS, what=what)
        if event.kind in ("accuracy", "note", "failed"):
            self.console.print(Text(f"{self.titles[number]}: {state.news(event)}"), soft_wrap=True)
        if state.has_ended:
            self.bars.update(self.lines[number], visible=False)


class RunState:
    """Where one run is."""

    def __init__(self) -> None:
        self.share = 0.0
        self.what = ""
        self.has_failed = False
        self.has_ended = False
        self._task, self._tasks = 0, 1
        self._stage, self._steps, self._steps_per_epoch, self._epochs = "", 0, 1, 1
        self._stages_in_task = 0

    def hear(self, event: Event) -> None:
        """Take an event into account."""
        values = event.values
        if event.kind == "task":
            self._task, self._tasks, self._stages_in_task = values["number"], values["tasks"], 0
        elif event.kind == "stage":
            self._stage, self._epochs, self._steps_per_epoch = (
                values["name"],
                values["epochs"],
                values["steps"],
            )
            self._steps = 0
            self._stages_in_task += 1
        elif event.kind == "step":
            self._steps += 1
        elif event.kind in ("done", "failed"):
            self.has_ended, self.has_failed = True, event.kind == "failed"
        self.share = 1.0 if self.has_ended else self._estimate()
        self.what = self._describe(values.get("terms", {}))

    def news(self, event: Event) -> str:
        """The event as a line of text."""
        if event.kind == "note":
            return str(event.values["text"])
        if event.kind == "failed":
            return f"failed, {event.values['outcome'].reason}"
        accuracy = event.values["accuracy"]
        reached = "not evaluated" if accuracy is None else f"accuracy {accuracy:.1%}"
        return f"task {event.values['number'] + 1} of {self._tasks} learned, {reached} on all classes so far"

    def _estimate(self) -> float:
        """Tasks done and the part of this task: training stages are taken for most of it."""
        within = self._steps / max(1, self._epochs * self._steps_per_epoch)
        part = {"initial learning": 0.6 * within, "memory update": 0.6, "replay": 0.6 + 0.35 * within}
        return (self._task + part.get(self._stage, 0.95)) / self._tasks

    def _describe(self, terms: dict[str, float]) -> str:
        epoch = min(self._epochs, self._steps // max(1, self._steps_per_epoch) + 1)
        losses = " ".join(f"{name} {value:.2f}" for name, value in terms.items())
        return f"task {self._task + 1}/{self._tasks} {self._stage} epoch {epoch}/{self._epochs} {losses}"
