"""Progress of one learning process, and the notes it leaves, on the terminal's error output."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress

from repcl.cli.progress import bar_with_times

if TYPE_CHECKING:
    from repcl.training import Observer, Stage


@contextmanager
def stage_bars(console: Console) -> "Iterator[Observer]":
    """An observer that shows a bar for each stage of learning, where someone looks at a terminal."""
    from repcl.training import Observer  # with torch, which commands that only look do not need

    bars = Progress(
        *bar_with_times(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )

    class StageBars(Observer):
        bar = bars.add_task("", visible=False)

        def stage_begins(self, stage: "Stage", *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
            bars.remove_task(self.bar)
            self.bar = bars.add_task(str(stage), total=epochs * steps_per_epoch)

        def step_ends(self, terms: Mapping[str, Any]) -> None:  # noqa: ARG002 (losses say little to users)
            bars.advance(self.bar)

    with bars:
        yield StageBars()


@contextmanager
def notes_to(console: Console) -> Iterator[None]:
    """Print warnings as plain notes; what the guard says is reported elsewhere."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    if not caught:
        return
    from repcl.classifier import ForgettingWarning

    for text in dict.fromkeys(
        str(warning.message) for warning in caught if warning.category is not ForgettingWarning
    ):
        console.print(f"Note: {text}")
