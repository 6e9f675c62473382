"""CRL against the values and properties of its specification."""

from math import log
from typing import Any

import pytest
import torch
from torch import Tensor

from repcl.data import Batch, Example, Task
from repcl.losses import divergence, supervised_contrast
from repcl.methods import crl, make_settings
from repcl.methods.base import seeded
from repcl.methods.crl import CRL, bank_contrast, class_similarities, similarity_to_classes, squared_distances
from repcl.training import Observer
from tests.conftest import tiny_encoder, toy_example, toy_task

QUICK = {
    "batch_size": 4,
    "initial_epochs": 1,
    "replay_epochs": 1,
    "memory_per_class": 2,
    "learning_rate": 1e-3,
    "head_learning_rate": 1e-3,
}


class Terms(Observer):
    """Remembers the names of stages and of the losses in them."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.terms: list[dict[str, float]] = []

    def stage_begins(self, name: str, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        self.stages.append(name)

    def step_ends(self, terms: Any) -> None:
        self.terms.append({name: float(value) for name, value in terms.items()})


def tiny(kind: Any = "sentence", **values: Any) -> CRL:
    encoder = tiny_encoder(kind)
    with seeded(0, 0, torch.device("cpu")):
        return CRL(encoder, make_settings(CRL.Settings, {**QUICK, **values})).eval()


def rows(*values: tuple[float, ...], grad: bool = False) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, requires_grad=grad)


def numbers(*values: int) -> Tensor:
    return torch.tensor(values)


ANCHORS = rows((1, 0), (0, 1))
BANK, BANK_LABELS = rows((1, 0), (0, 1), (0.6, 0.8)), numbers(0, 1, 0)


def test_contrast_with_a_bank_has_the_value_worked_out_by_hand() -> None:
    loss = bank_contrast(ANCHORS, numbers(0, 1), BANK, BANK_LABELS, temperature=0.1)
    assert loss.item() == pytest.approx(1.072465, abs=1e-6)


@pytest.mark.parametrize(("anchor", "expected"), [(0, 2.017946), (1, 0.126984)])
def test_each_anchor_has_the_value_worked_out_by_hand(anchor: int, expected: float) -> None:
    anchors, labels = ANCHORS[anchor : anchor + 1], numbers(anchor)
    loss = bank_contrast(anchors, labels, BANK, BANK_LABELS, temperature=0.1)
    assert loss.item() == pytest.approx(expected, abs=1e-6)


def test_without_its_floor_it_is_supervised_contrast() -> None:
    loss = supervised_contrast(ANCHORS, numbers(0, 1), BANK, BANK_LABELS, temperature=0.1)
    assert loss.item() == pytest.approx(1.072581, abs=1e-6)


def test_a_bank_of_equal_rows_costs_the_logarithm_of_their_number() -> None:
    bank, labels = rows((0.6, 0.8)).repeat(6, 1), numbers(0, 1, 2, 0, 1, 1)
    loss = bank_contrast(ANCHORS, numbers(0, 1), bank, labels, temperature=0.1)
    assert loss.item() == pytest.approx(1.791759, abs=1e-5)


def test_contrast_is_never_below_the_logarithm_of_the_number_of_positives() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        bank = torch.nn.functional.normalize(torch.randn(9, 3, generator=generator), dim=1)
        loss = bank_contrast(bank[:1], numbers(0), bank, numbers(0, 0, 0, 1, 1, 2, 2, 2, 3), temperature=0.1)
        assert loss.item() >= log(3)


def test_anchors_without_a_positive_do_not_count() -> None:
    anchors = rows((1, 0), (0, 1), grad=True)
    loss = bank_contrast(anchors, numbers(0, 7), BANK, BANK_LABELS, temperature=0.1)
    assert loss.item() == pytest.approx(2.017946, abs=1e-6)


@pytest.mark.parametrize("temperature", [0.1, 0.01])
def test_no_positive_at_all_is_a_zero_with_a_gradient(temperature: float) -> None:
    anchors = rows((1, 0), (-1, 0), grad=True)
    loss = bank_contrast(anchors, numbers(7, 8), BANK, BANK_LABELS, temperature=temperature)
    loss.backward()
    assert loss.item() == 0.0
    assert anchors.grad is not None
    assert torch.isfinite(anchors.grad).all()


def test_positives_at_the_far_end_are_finite_at_a_low_temperature() -> None:
    anchors = rows((1, 0), grad=True)
    loss = bank_contrast(anchors, numbers(0), rows((-1, 0), (1, 0)), numbers(0, 1), temperature=0.01)
    loss.backward()
    assert torch.isfinite(loss)
    assert anchors.grad is not None
    assert torch.isfinite(anchors.grad).all()


PROTOTYPES = rows((3, 4, 0), (4, 3, 0), (0, 0, 2))


def test_similarities_of_classes_are_cosines_of_prototypes() -> None:
    expected = rows((1, 0.96, 0), (0.96, 1, 0), (0, 0, 1))
    assert torch.allclose(class_similarities(PROTOTYPES), expected, atol=1e-6)
    scaled = PROTOTYPES * torch.tensor([[1.0], [5.0], [1.0]])
    assert torch.allclose(class_similarities(scaled), expected, atol=1e-6)


def test_distillation_has_the_value_worked_out_by_hand() -> None:
    teacher = class_similarities(PROTOTYPES)
    directions, labels = rows((1, 0), (0.8, 0.6), (0, 1)), numbers(0, 2)
    students = similarity_to_classes(rows((1, 0), (0.6, 0.8)), directions, numbers(0, 1, 2), 3)
    assert divergence(10 * students[:1], 10 * teacher[:1]).item() == pytest.approx(0.256008, abs=1e-5)
    assert divergence(10 * students[1:], 10 * teacher[2:]).item() == pytest.approx(1.805399, abs=1e-5)
    assert divergence(10 * students, 10 * teacher[labels]).item() == pytest.approx(1.030704, abs=1e-5)
    answers = torch.softmax(10 * teacher[0], dim=0).tolist()
    assert answers == pytest.approx([0.598671, 0.401301, 0.000027], abs=1e-6)
    assert divergence(10 * teacher, 10 * teacher).item() == pytest.approx(0.0, abs=1e-7)


def test_the_direction_of_a_class_is_that_of_its_mean_in_the_bank() -> None:
    bank = rows((1, 0), (0, -1), (0.6, 0.8), (1, 0))
    cosines = similarity_to_classes(torch.eye(2), bank, numbers(0, 1, 0, 2), 2)
    assert torch.allclose(cosines[:, 0], torch.tensor([0.894427, 0.447214]), atol=1e-6)


def test_a_class_without_rows_in_the_bank_is_like_nothing() -> None:
    cosines = similarity_to_classes(torch.eye(2), rows((1, 0)), numbers(0), 2)
    assert cosines[:, 1].tolist() == [0.0, 0.0]


def test_the_nearest_prototype_wins() -> None:
    distances = squared_distances(rows((1, 2)), rows((0, 0), (3, 2), (1, 5)))
    assert distances[0].tolist() == pytest.approx([5.0, 4.0, 9.0])
    assert distances.argmin().item() == 1


@pytest.mark.parametrize("kind", ["sentence", "relation", "event"])
def test_embeddings_have_their_sizes_and_unit_length(kind: Any) -> None:
    method = tiny(kind)
    batch = next(iter(method.batches(toy_task(kind, "fruit").train, 6)))
    assert method.exemplar_features(batch).shape == (6, 32)
    assert method.contrasted(batch).shape == (6, 64)
    assert torch.allclose(method.contrasted(batch).norm(dim=1), torch.ones(6))


def test_there_is_no_classifier() -> None:
    assert {name for name, _ in tiny().named_children()} == {"encoder", "embedding", "projection"}


def test_the_first_task_has_no_replay_and_later_ones_do() -> None:
    method = tiny()
    method.observer = first = Terms()
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    method.observer = second = Terms()
    method.learn(toy_task("sentence", "weather"))
    assert first.stages == ["initial learning", "memory update"]
    assert second.stages == ["initial learning", "memory update", "replay", "memory update"]


def test_a_batch_of_new_classes_only_is_not_distilled() -> None:
    method = tiny(batch_size=1)
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    method.observer = terms = Terms()
    method.learn(toy_task("sentence", "weather"))
    replayed = [one["kd"] for one in terms.terms if "kd" in one]
    assert len(replayed) == 6
    assert sum(loss == 0.0 for loss in replayed) == 2


def test_the_bank_holds_the_embeddings_of_the_last_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    method, banks, seen = tiny(), [], {}
    method.learn(toy_task("sentence", "fruit"))
    contrasted = method.contrasted

    def spy(batch: Batch) -> Tensor:
        embeddings = contrasted(batch)
        if method.training:
            seen.update(zip(batch.positions.tolist(), embeddings.detach(), strict=True))
        return embeddings

    def loss(anchors: Tensor, labels: Tensor, bank: Tensor, *args: Any, **more: Any) -> Tensor:
        banks.append(bank)
        return bank_contrast(anchors, labels, bank, *args, **more)

    monkeypatch.setattr(crl, "bank_contrast", loss)
    monkeypatch.setattr(method, "contrasted", spy)
    method.learn(toy_task("sentence", "vehicle"))
    assert not banks[-1].requires_grad
    assert len(banks[-1]) == 4
    assert all(
        torch.equal(banks[-1][position], embedding) for position, embedding in seen.items() if position < 4
    )


def test_a_batch_of_new_data_meets_a_sample_of_the_bank(monkeypatch: pytest.MonkeyPatch) -> None:
    method, sizes = tiny(bank_sample=5), []

    def loss(anchors: Tensor, labels: Tensor, bank: Tensor, *args: Any, **more: Any) -> Tensor:
        sizes.append(len(bank))
        return bank_contrast(anchors, labels, bank, *args, **more)

    monkeypatch.setattr(crl, "bank_contrast", loss)
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    assert sizes == [5, 5, 5]


def test_prototypes_are_means_of_the_exemplars_of_all_seen_classes() -> None:
    method = tiny()
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    old = method.memory.of("fruit")
    method.learn(toy_task("sentence", "weather"))
    mean = method.for_all(method.memory.of("vehicle"), method.exemplar_features).mean(dim=0)
    assert method.memory.counts() == {"fruit": 2, "vehicle": 2, "weather": 2}
    assert method.memory.of("fruit") == old
    assert method.prototypes.shape == (3, 32)
    assert torch.allclose(method.prototypes[1], mean, atol=1e-6)


def test_new_examples_of_an_old_class_can_become_its_exemplars() -> None:
    method = tiny()
    method.learn(
        Task(("fruit", "place"), [toy_example("sentence", name, 0) for name in ("fruit", "place")], [])
    )
    method.learn(toy_task("sentence", "fruit", "vehicle", start=5))
    assert method.memory.counts() == {"fruit": 2, "place": 1, "vehicle": 2}


def test_a_memory_smaller_than_the_number_of_classes_leaves_finite_prototypes() -> None:
    method = tiny(memory_total=1)
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    before = method.prototypes.clone()
    method.learn(toy_task("sentence", "weather"))
    assert len(method.memory) == 0
    assert torch.equal(method.prototypes[:2], before)
    assert torch.isfinite(method.prototypes).all()
    assert method.prototypes[2].abs().max() > 0


def test_a_class_of_one_example_is_learned() -> None:
    method = tiny()
    method.learn(Task(("fruit",), [Example("the apple", "fruit")], []))
    assert method.predict([Example("a plum", "fruit")]) == ["fruit"]


def test_final_exemplars_of_a_class_that_comes_again_are_chosen_among_the_old_ones_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = tiny()
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    kept = method.memory.of("fruit")
    candidates: list[list[Example]] = []
    plain = method.remember

    def watched(task: Task) -> None:
        candidates.append(method.memory.of("fruit"))
        plain(task)

    monkeypatch.setattr(method, "remember", watched)
    method.learn(toy_task("sentence", "fruit", "weather", start=30))
    assert candidates == [kept, kept]
