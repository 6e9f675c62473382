"""What runs tell while they are made, as plain values that can travel between processes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from repcl.experiments.observer import RunObserver


@dataclass(frozen=True)
class Event:
    """Something that happened in a run: `task`, `accuracy`, `stage`, `step`, `note`, `done` or `failed`."""

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)


Tell = Callable[[Event], None]
Listener = Callable[[int, Event], None]


class Reporter(RunObserver):
    """Turns what an observer hears into events."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell

    def task_begins(self, number: int, tasks: int) -> None:
        """Tell."""
        self.tell(Event("task", {"number": number, "tasks": tasks}))

    def task_ends(self, number: int, accuracy: float | None) -> None:
        """Tell."""
        self.tell(Event("accuracy", {"number": number, "accuracy": accuracy}))

    def stage_begins(self, name: str, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        """Tell."""
        self.tell(Event("stage", {"name": name, "epochs": epochs, "steps": steps_per_epoch}))

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        """Tell, with the loss terms as plain numbers."""
        self.tell(Event("step", {"terms": {name: float(term) for name, term in terms.items()}}))
