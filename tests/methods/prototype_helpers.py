"""What the tests of EMAR, RP-CRE and ACA share."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from repcl.data import Batch, Example, InputKind, Span, Task
from repcl.methods import Method
from repcl.methods.base import seeded
from repcl.training import Observer
from tests.conftest import tiny_encoder

FAST: dict[str, Any] = {"memory_per_class": 3, "batch_size": 4, "learning_rate": 1e-3}


def make(
    chosen: type[Method], kind: InputKind = "sentence", *, expected_classes: int = 0, **settings: Any
) -> Any:
    """A method on the tiny encoder, with the class's own defaults for everything not given."""
    encoder = tiny_encoder(kind)
    with seeded(7, 0, encoder.device):
        checked = chosen.Settings(**settings)
        return chosen.for_settings(checked)(
            encoder, checked, seed=7, expected_classes=expected_classes
        ).eval()


def matrix(*rows: Sequence[float], width: int = 0) -> Tensor:
    """Rows of numbers, padded with zeros to a width."""
    return torch.tensor([[*row, *[0.0] * (width - len(row))] for row in rows], dtype=torch.float32)


def labeled(*labels: int) -> Batch:
    """A batch of which nothing but the labels will be looked at."""
    nothing = torch.zeros(len(labels), 1, dtype=torch.long)
    return Batch(nothing, nothing, nothing, torch.tensor(labels), torch.arange(len(labels)))


class Diary(Observer):
    """Writes down the stages, and what `look` sees when each begins and ends."""

    def __init__(self, look: Callable[[], Any] = lambda: None) -> None:
        self.look = look
        self.stages: list[str] = []
        self.begins: list[tuple[str, Any]] = []
        self.ends: list[tuple[str, Any]] = []

    def stage_begins(self, name: str, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        self.stages.append(name)
        self.begins.append((name, self.look()))

    def stage_ends(self, name: str) -> None:
        self.ends.append((name, self.look()))


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Whether two state dictionaries are equal to the bit."""
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def copied(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key: value.clone() for key, value in state.items()}


def longest_moves(before: dict[str, Tensor], after: dict[str, Tensor]) -> dict[str, float]:
    """By how much the entry that moved most has moved, in each weight."""
    return {
        key: (after[key] - value).abs().max().item()
        for key, value in before.items()
        if value.numel() and value.shape == after[key].shape
    }


def relation_task(*classes: str, each: int) -> Task:
    """Classes of many equal texts, all with the head before the tail."""
    texts = [Example("anna lives in paris", name, head=Span(0, 4), tail=Span(14, 19)) for name in classes]
    return Task(classes, [text for text in texts for _ in range(each)], [])


def count_updates(method: Method, tasks: Sequence[Task], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many optimizer steps each task would take, without taking any."""
    steps: list[int] = []

    def counting(learner: Any, name: str, batches: Any, losses: Any, stage: Any, **more: Any) -> None:
        steps[-1] += stage.epochs * len(batches)

    def keep_first(task: Task) -> None:
        for name in task.classes:
            own = [example for example in task.train if example.label == name]
            method.memory.keep(name, own[: method.memory.per_class])

    monkeypatch.setattr("repcl.methods.prototypical.run_stage", counting)
    monkeypatch.setattr(method, "remember", keep_first)
    monkeypatch.setattr(method, "for_all", lambda examples, function: torch.ones(len(examples), 32))
    for task in tasks:
        steps.append(0)
        method.learn(task)
    return steps


def fewrel_sized() -> list[Task]:
    """Ten tasks of eight classes with 420 training examples each."""
    return [relation_task(*(f"{task}-{index}" for index in range(8)), each=420) for task in range(10)]
