"""Sparse replay: now and then a batch of new examples is mixed with exemplars of every old task."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from repcl.data.batches import similar_length_order


class Step(NamedTuple):
    """Numbers of the examples of one optimization step, and whether exemplars are among them."""

    numbers: list[int]
    is_replay: bool


class SparseReplay:
    """Epochs of steps over new examples; each iteration is one epoch.

    Args:
        lengths: of the new examples, in tokens; their numbers count from 0.
        exemplars: numbers of the exemplars of each old task.
        batch_size: examples of a step.
        every: new examples from one replay to the next.
        per_task: exemplars of each old task in a replay; all of a task that has fewer.
        generator: where the draws come from.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        exemplars: Sequence[Sequence[int]],
        *,
        batch_size: int,
        every: int,
        per_task: int,
        generator: torch.Generator,
    ) -> None:
        self.lengths = lengths
        self.exemplars = exemplars
        self.batch_size = batch_size
        self.every = every
        self.per_task = per_task
        self.generator = generator

    def __len__(self) -> int:
        batches = -(-len(self.lengths) // self.batch_size)
        replays = sum(self._is_replay(batch) for batch in range(batches))
        drawn = sum(min(self.per_task, len(numbers)) for numbers in self.exemplars)
        return batches + replays * -(-drawn // self.batch_size)

    def __iter__(self) -> Iterator[Step]:
        for number, batch in enumerate(similar_length_order(self.lengths, self.batch_size, self.generator)):
            if not self._is_replay(number):
                yield Step(batch, is_replay=False)
                continue
            mixed = self._shuffled([*batch, *(one for task in self.exemplars for one in self._draw(task))])
            for at in range(0, len(mixed), self.batch_size):
                yield Step(mixed[at : at + self.batch_size], is_replay=True)

    def _is_replay(self, number: int) -> bool:
        """Whether the period ends within the batch of that number."""
        seen = number * self.batch_size
        return bool(self.exemplars) and (seen + self.batch_size) // self.every > seen // self.every

    def _draw(self, numbers: Sequence[int]) -> list[int]:
        return self._shuffled(numbers)[: self.per_task]

    def _shuffled(self, numbers: Sequence[int]) -> list[int]:
        return [numbers[at] for at in torch.randperm(len(numbers), generator=self.generator).tolist()]
