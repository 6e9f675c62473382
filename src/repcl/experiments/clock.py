"""An observer that times stages, counts steps and passes everything on."""

import time
from collections.abc import Mapping

from torch import Tensor

from repcl.training import Observer, Stage


class StageClock(Observer):
    """Seconds spent in each stage, by name, and the number of steps in all."""

    def __init__(self, next_observer: Observer) -> None:
        self.next = next_observer
        self.seconds: dict[str, float] = {}
        self.steps = 0
        self._began = 0.0

    def stage_begins(self, name: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        """Start the clock."""
        self._began = time.perf_counter()
        self.next.stage_begins(name, epochs=epochs, steps_per_epoch=steps_per_epoch)

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        """Count it and pass it on."""
        self.steps += 1
        self.next.step_ends(terms)

    def stage_ends(self, name: Stage) -> None:
        """Stop the clock."""
        spent = time.perf_counter() - self._began
        self.seconds[name] = self.seconds.get(name, 0.0) + spent
        self.next.stage_ends(name)
