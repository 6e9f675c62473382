"""The read-only observer of training: it is told what happens and can change nothing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor


class Observer:
    """Hears about every stage and step; this one does nothing, subclasses show or time it."""

    def stage_begins(self, name: str, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        """A stage of `epochs × steps_per_epoch` steps begins."""

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        """An optimization step was made; `terms` are the weighted, detached losses of the step."""

    def stage_ends(self, name: str) -> None:
        """The stage is over."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A stage without steps of its own, such as the memory update."""
        self.stage_begins(name)
        yield
        self.stage_ends(name)
