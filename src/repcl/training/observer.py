"""Stages of learning, and the read-only observers that are told about them and can change nothing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum

from torch import Tensor


class Stage(str, Enum):
    """The stages that a run is made of; the values appear in results, progress and trackers."""

    INITIAL_LEARNING = "initial learning"
    MEMORY_UPDATE = "memory update"
    REPLAY = "replay"
    ACTIVATION = "activation"
    RECONSOLIDATION = "reconsolidation"
    EMBEDDING = "embedding"
    SOLVING = "solving"
    EVALUATION = "evaluation"
    KEEPING = "keeping"

    def __str__(self) -> str:
        return self.value


class Observer:
    """Hears about every stage and step; this one does nothing, subclasses show or time it."""

    def stage_begins(self, stage: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        """A stage of `epochs × steps_per_epoch` steps begins."""

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        """An optimization step was made; `terms` are the weighted, detached losses of the step."""

    def stage_ends(self, stage: Stage) -> None:
        """The stage is over."""

    @contextmanager
    def stage(self, stage: Stage) -> Iterator[None]:
        """A stage without steps of its own, such as the memory update."""
        self.stage_begins(stage)
        yield
        self.stage_ends(stage)


class Observers(Observer):
    """Several observers as one: each hears everything, in the order in which they are given."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = tuple(observers)

    def stage_begins(self, stage: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        """Tell every observer that a stage begins."""
        for observer in self.observers:
            observer.stage_begins(stage, epochs=epochs, steps_per_epoch=steps_per_epoch)

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        """Tell every observer the losses of a step."""
        for observer in self.observers:
            observer.step_ends(terms)

    def stage_ends(self, stage: Stage) -> None:
        """Tell every observer that the stage is over."""
        for observer in self.observers:
            observer.stage_ends(stage)
