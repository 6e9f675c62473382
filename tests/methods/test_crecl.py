"""CRECL against the values and properties of its specification."""

from math import log
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from repcl.data import Batch, Example, Task
from repcl.methods import make_settings
from repcl.methods.base import seeded
from repcl.methods.crecl import CRECL, FullBatches, dropout_consistency
from repcl.training import LossTerms, Observer
from tests.conftest import tiny_encoder, toy_task

QUICK = {
    "batch_size": 4,
    "initial_batch_size": 2,
    "initial_epochs": 1,
    "consistency_epochs": 1,
    "contrast_epochs": 1,
    "replay_epochs": 1,
    "memory_per_class": 2,
}
PROTOTYPES = ((0.8, 0.6), (0.6, 0.8), (0.0, -1.0))


class Steps(Observer):
    """Remembers how many steps each stage had."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int]] = []

    def stage_begins(self, name: str, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        self.stages.append((name, epochs * steps_per_epoch))


def tiny(kind: Any = "sentence", **values: Any) -> CRECL:
    encoder = tiny_encoder(kind)
    with seeded(0, 0, torch.device("cpu")):
        return CRECL(encoder, make_settings(CRECL.Settings, {**QUICK, **values})).eval()


def logits(*samples: tuple[tuple[float, ...], ...]) -> Tensor:
    return torch.tensor(samples, dtype=torch.float64)


def matcher(*prototypes: tuple[float, ...], sentences: Tensor) -> CRECL:
    """A method whose projection changes nothing and whose embeddings are given."""
    method = tiny()
    method.projector = nn.Sequential()
    method.prototypes = torch.tensor(prototypes)
    method.exemplar_features = lambda batch: sentences  # type: ignore[method-assign]
    return method


def labeled(*labels: int) -> Batch:
    indices = torch.tensor(labels)
    return Batch(indices, indices, indices, indices, indices)


def weights(part: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in part.parameters()]


def test_consistency_of_two_opposed_samples_has_the_value_worked_out_by_hand() -> None:
    loss = dropout_consistency(logits(((2, 0),), ((0, 2),)))
    assert loss.item() == pytest.approx(0.327813, abs=1e-6)


def test_consistency_is_a_sum_over_the_batch() -> None:
    loss = dropout_consistency(logits(((2, 0), (1, 5)), ((0, 2), (1, 5))))
    assert loss.item() == pytest.approx(0.327813, abs=1e-6)


def test_consistency_of_three_samples_has_the_value_worked_out_by_hand() -> None:
    loss = dropout_consistency(logits(((1, 0, 0),), ((0, 1, 0),), ((1, 1, 0),)))
    assert loss.item() == pytest.approx(0.061027, abs=1e-6)


def test_equal_samples_are_consistent() -> None:
    assert dropout_consistency(logits(((3, 1),), ((3, 1),))).item() == pytest.approx(0.0, abs=1e-12)


def test_classification_is_a_mean_over_all_samples() -> None:
    samples = logits(((2, 0),), ((0, 2),)).reshape(2, 2)
    assert cross_entropy(samples, torch.tensor([0, 0])).item() == pytest.approx(1.126928, abs=1e-6)


def test_without_dropout_the_samples_of_a_text_coincide() -> None:
    method = tiny()
    method.classes = ["fruit", "vehicle"]
    method.grow_head()
    batch = next(iter(method.batches(toy_task("sentence", "fruit", "vehicle").train, 4)))
    terms = method.classify_consistently(batch)
    assert terms["js"].item() == pytest.approx(0.0, abs=1e-6)
    assert torch.allclose(terms["ce"], method.classify(batch)["ce"])
    method.head.train()
    assert method.classify_consistently(batch)["js"].item() > 0


def test_the_consistency_term_keeps_its_weight_when_the_batch_size_changes() -> None:
    terms: list[LossTerms] = []
    for consistency_batch in (4, 8):
        method = tiny(consistency_batch=consistency_batch)
        method.classes = ["fruit", "vehicle"]
        batch = next(iter(method.batches(toy_task("sentence", "fruit", "vehicle").train, 4)))
        with seeded(1, 0, torch.device("cpu")):
            method.grow_head()
            terms.append(method.train().classify_consistently(batch))
    assert terms[1]["js"].item() == pytest.approx(2 * terms[0]["js"].item())
    assert terms[1]["ce"].item() == pytest.approx(terms[0]["ce"].item())


def test_matching_has_the_values_worked_out_by_hand() -> None:
    method = matcher(*PROTOTYPES, sentences=torch.eye(2))
    expected = torch.tensor([[10.0, 7.5, 0.0], [7.5, 10.0, -12.5]])
    assert torch.allclose(method.class_scores(labeled(0, 1)), expected, atol=1e-5)
    assert method.match(labeled(0, 1))["prototypes"].item() == pytest.approx(0.078911, abs=1e-5)
    assert method.match(labeled(1, 0))["prototypes"].item() == pytest.approx(2.578911, abs=1e-5)


def test_the_order_of_prototypes_only_permutes_the_scores() -> None:
    straight = matcher(*PROTOTYPES, sentences=torch.eye(2))
    turned = matcher(*reversed(PROTOTYPES), sentences=torch.eye(2))
    scores = turned.class_scores(labeled(0, 1)).flip(1)
    assert torch.allclose(scores, straight.class_scores(labeled(0, 1)))
    assert turned.match(labeled(2, 1))["prototypes"].item() == pytest.approx(0.078911, abs=1e-5)


def test_one_seen_class_costs_nothing_and_equal_prototypes_cost_ln_c() -> None:
    alone = matcher((0.8, 0.6), sentences=torch.eye(2))
    assert alone.match(labeled(0, 0))["prototypes"].item() == 0.0
    equal = matcher(*[(0.8, 0.6)] * 5, sentences=torch.eye(2))
    assert equal.match(labeled(0, 3))["prototypes"].item() == pytest.approx(log(5), abs=1e-6)


@pytest.mark.parametrize("kind", ["sentence", "relation", "event"])
def test_projections_have_unit_length_and_scores_are_bounded_by_the_temperature(kind: Any) -> None:
    method, task = tiny(kind), toy_task(kind, "fruit", "vehicle")
    method.learn(task)
    batch = next(iter(method.batches(task.train, 4)))
    projected = method.project(method.exemplar_features(batch))
    assert projected.shape == (4, 384)
    assert torch.allclose(projected.norm(dim=1), torch.ones(4))
    assert method.class_scores(batch).abs().max() <= 12.5001


def test_prototypes_are_constants_and_do_not_move_while_texts_are_matched() -> None:
    method, task = tiny(), toy_task("sentence", "fruit", "vehicle")
    method.learn(task)
    before = method.prototypes.clone()
    method._match("replay", method.batches(task.train, 4), 1)
    assert not method.prototypes.requires_grad
    assert torch.equal(method.prototypes, before)


def test_old_prototypes_follow_the_encoder_into_the_next_task() -> None:
    method = tiny()
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    before = method.prototypes.clone()
    method.learn(toy_task("sentence", "weather"))
    mean = method.for_all(method.memory.of("fruit"), method.exemplar_features).mean(dim=0)
    assert method.prototypes.shape == (3, 32)
    assert not torch.equal(method.prototypes[:2], before)
    assert torch.allclose(method.prototypes[0], mean, atol=1e-6)


def test_classification_leaves_the_projector_and_matching_leaves_the_classifier() -> None:
    method, task = tiny(), toy_task("sentence", "fruit", "vehicle")
    method.learn(task)
    projector, classifier = weights(method.projector), weights(method.head.output)
    method.run("initial learning", method.batches(task.train, 4), method.classify_consistently, 1)
    assert all(map(torch.equal, projector, weights(method.projector)))
    assert not all(map(torch.equal, classifier, weights(method.head.output)))
    classifier = weights(method.head.output)
    method._match("replay", method.batches(task.train, 4), 1)
    assert not all(map(torch.equal, projector, weights(method.projector)))
    assert all(map(torch.equal, classifier, weights(method.head.output)))


def test_batches_are_filled_to_their_nominal_size() -> None:
    method, task = tiny(), toy_task("sentence", "fruit", "vehicle", train=7)
    full = FullBatches(method.batches(task.train, 4))
    sizes = [len(batch) for batch in full]
    assert len(full) == 4
    assert sizes == [4, 4, 4, 4]


def test_every_text_is_met_in_an_epoch_of_filled_batches() -> None:
    method, task = tiny(), toy_task("sentence", "fruit", "vehicle", train=7)
    met = [
        index for batch in FullBatches(method.batches(task.train, 4)) for index in batch.positions.tolist()
    ]
    assert set(met) == set(range(14))


def test_a_batch_larger_than_twice_the_data_is_filled_with_repeats() -> None:
    method, task = tiny(), toy_task("sentence", "fruit", train=3)
    assert [len(batch) for batch in FullBatches(method.batches(task.train, 20))] == [20]


@pytest.mark.parametrize("size", [4, 40])
def test_what_a_batch_is_filled_with_depends_on_the_seed_alone(size: int) -> None:
    met = []
    for elsewhere in (1, 2):
        method, task = tiny(), toy_task("sentence", "fruit", "vehicle", train=7)
        full = FullBatches(method.batches(task.train, size))
        torch.manual_seed(elsewhere)
        met.append([batch.positions.tolist() for batch in full])
    assert met[0] == met[1]


def test_a_task_has_four_stages_and_batches_of_memory_have_a_text_for_each_class() -> None:
    method = tiny()
    method.observer = steps = Steps()
    method.learn(toy_task("sentence", "fruit", "vehicle", train=7))
    assert steps.stages == [
        ("initial learning", 7),
        ("initial learning", 4),
        ("memory update", 1),
        ("initial learning", 4),
        ("replay", 2),
    ]


def test_events_have_a_hidden_layer_too() -> None:
    assert len(tiny("event").head.hidden) == 4


def test_a_class_of_one_example_and_an_empty_memory_leave_finite_weights() -> None:
    method = tiny(memory_total=1)
    method.learn(Task(("fruit", "vehicle"), [Example("the apple", "fruit"), Example("a car", "vehicle")], []))
    method.learn(Task(("weather",), [Example("the rain", "weather")], []))
    assert len(method.memory) == 0
    assert all(torch.isfinite(parameter).all() for parameter in method.parameters())
    assert torch.isfinite(method.scores([Example("snow", "weather")])).all()
