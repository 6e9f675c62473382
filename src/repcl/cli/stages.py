"""Progress of one learning process, and the notes it leaves, on the terminal's error output."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from repcl.classifier import ForgettingWarning
from repcl.training import Observer


class StageBar(Observer):
    """A bar for each stage of learning, where someone looks at a terminal."""

    def __init__(self, console: Console) -> None:
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self.bar = self.bars.add_task("", visible=False)

    def __enter__(self) -> "StageBar":
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def stage_begins(self, name: str, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        """Show a new bar."""
        self.bars.remove_task(self.bar)
        self.bar = self.bars.add_task(name, total=epochs * steps_per_epoch)

    def step_ends(self, terms: Mapping[str, Any]) -> None:  # noqa: ARG002 (losses say little to users)
        """Move it on."""
        self.bars.advance(self.bar)


@contextmanager
def notes_to(console: Console) -> Iterator[None]:
    """Print warnings as plain notes; what the guard says is reported elsewhere."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(
        str(warning.message) for warning in caught if warning.category is not ForgettingWarning
    ):
        console.print(f"Note: {text}")
