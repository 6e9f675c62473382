"""FEA: two stages, fixed exemplars, a head over all classes."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from repcl.data import Batch, InputKind, Task
from repcl.methods import build_method
from repcl.methods import fea as fea_module
from repcl.methods.fea import FEA
from repcl.training import LossTerms, Observer, run_stage
from repcl.training import stage as stage_module
from repcl.training.stage import build_optimizer
from tests.conftest import tiny_encoder, toy_task

CHEAP = {
    "initial_epochs": 1,
    "replay_epochs": 1,
    "batch_size": 4,
    "memory_per_class": 3,
    "learning_rate": 1e-3,
}


def made(kind: InputKind = "sentence", *, expected_classes: int = 0, seed: int = 0, **settings: Any) -> FEA:
    method = build_method(
        "fea",
        kind,
        encoder=tiny_encoder(kind),
        settings={**CHEAP, **settings},
        expected_classes=expected_classes,
        seed=seed,
    )
    assert isinstance(method, FEA)
    return method


def two_tasks() -> tuple[Task, Task]:
    small = toy_task("sentence", "place", train=2)
    weather = toy_task("sentence", "weather")
    second = Task(("weather", "place"), weather.train + small.train, weather.test + small.test)
    return toy_task("sentence", "fruit", "vehicle"), second


@pytest.fixture
def texts_of_stages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[tuple[int, ...]]]]:
    """For each stage its name and the token ids of every text it trained on."""
    stages: list[tuple[str, list[tuple[int, ...]]]] = []

    def spied(
        learner: FEA,
        name: str,
        batches: Any,
        losses: Callable[[Batch], LossTerms],
        settings: Any,
        **more: Any,
    ) -> None:
        texts: list[tuple[int, ...]] = []

        def spied_losses(batch: Batch) -> LossTerms:
            texts.extend(
                tuple(ids[: int(mask.sum())].tolist())
                for ids, mask in zip(batch.ids, batch.mask, strict=True)
            )
            return losses(batch)

        stages.append((name, texts))
        run_stage(learner, name, batches, spied_losses, settings, **more)

    monkeypatch.setattr(fea_module, "run_stage", spied)
    return stages


Stages = list[tuple[str, list[tuple[int, ...]]]]


def ids_by_class(method: FEA, *tasks: Task) -> dict[tuple[int, ...], str]:
    examples = [example for task in tasks for example in task.train]
    return {
        row.ids: example.label
        for row, example in zip(method.encoder.tokenize(examples), examples, strict=True)
    }


def test_balanced_tuning_sees_every_seen_class_equally_often(texts_of_stages: Stages) -> None:
    method = made(replay_epochs=2)
    first, second = two_tasks()
    method.learn(first)
    method.learn(second)
    label = ids_by_class(method, first, second)
    name, texts = texts_of_stages[-1]
    assert name == "replay"
    # three each in two epochs, and two of the class that has only two texts
    assert Counter(label[ids] for ids in texts) == {"fruit": 6, "vehicle": 6, "weather": 6, "place": 4}


def test_fast_adaption_sees_no_old_text(texts_of_stages: Stages) -> None:
    method = made()
    first, second = two_tasks()
    method.learn(first)
    method.learn(second)
    label = ids_by_class(method, first, second)
    name, texts = texts_of_stages[1]
    assert name == "initial learning"
    assert Counter(label[ids] for ids in texts) == {"weather": 6, "place": 2}


def test_the_first_task_ends_before_balanced_tuning(texts_of_stages: Stages) -> None:
    made().learn(two_tasks()[0])
    assert [name for name, _ in texts_of_stages] == ["initial learning"]


def test_the_seed_decides_the_order_of_the_texts(texts_of_stages: Stages) -> None:
    for seed in (1, 2, 1):
        made(seed=seed).learn(two_tasks()[0])
    first, other, again = (texts for _, texts in texts_of_stages)
    assert first == again
    assert first != other


def test_classes_not_seen_yet_are_never_predicted() -> None:
    class Fixed(nn.Module):
        def forward(self, representation: Tensor) -> Tensor:
            return torch.tensor([[5.0, 1.0, 9.0]]).expand(len(representation), 3)

    method = made()
    method.classes = ["a", "b"]
    method.head = Fixed()  # type: ignore[assignment]
    assert method.predict(two_tasks()[0].test[:1]) == ["a"]


def test_exemplars_of_old_classes_stay_the_same() -> None:
    method = made()
    first, second = two_tasks()
    method.learn(first)
    before = {name: method.memory.of(name) for name in first.classes}
    method.learn(second)
    assert {name: method.memory.of(name) for name in first.classes} == before


def test_cross_entropy_runs_over_all_classes_of_a_reserved_head() -> None:
    method = made(reserved=True, expected_classes=80)
    method.classes = [str(number) for number in range(8)]
    method.grow_head()
    nn.init.zeros_(method.head.output.weight)
    batch = next(iter(method.batches(two_tasks()[0].train[:4], 4)))
    labeled = Batch(batch.ids, batch.mask, batch.spans, torch.arange(4), batch.positions)
    assert method.classify(labeled)["ce"].item() == pytest.approx(4.382027)  # ln 80


def test_each_stage_starts_with_empty_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    built: list[torch.optim.Optimizer] = []

    def spied(*arguments: Any) -> torch.optim.Optimizer:
        optimizer = build_optimizer(*arguments)
        sizes.append(len(optimizer.state))
        built.append(optimizer)
        return optimizer

    monkeypatch.setattr(stage_module, "build_optimizer", spied)
    method = made()
    for task in two_tasks():
        method.learn(task)
    assert sizes == [0, 0, 0]  # two initial stages and one replay
    assert len(set(map(id, built))) == 3
    assert all(optimizer.state for optimizer in built)


def test_balanced_tuning_brings_old_classes_back() -> None:
    method = made(
        initial_epochs=12, replay_epochs=12, memory_per_class=6, learning_rate=2e-3, head_learning_rate=5e-3
    )
    first, second = toy_task("sentence", "fruit", "vehicle"), toy_task("sentence", "weather", "conflict")
    method.learn(first)

    def accuracy_on_old_classes() -> float:
        predicted = method.predict(first.test)
        return sum(guess == example.label for guess, example in zip(predicted, first.test, strict=True)) / 6

    class Watcher(Observer):
        after: dict[str, float] = {}  # noqa: RUF012

        def stage_ends(self, name: str) -> None:
            self.after[name] = accuracy_on_old_classes()

    method.observer = watcher = Watcher()
    method.learn(second)
    assert watcher.after["initial learning"] < 0.5 < watcher.after["replay"]
