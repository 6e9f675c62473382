"""KCN against the values and properties of its specification."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from repcl.data import Batch, Example, Task
from repcl.memory import ExemplarMemory, nearest_to_mean
from repcl.methods import make_settings
from repcl.methods.base import seeded
from repcl.methods.distilling import Teacher, herding
from repcl.methods.kcn import KCN
from repcl.training import Observer
from tests.conftest import tiny_encoder, toy_task

QUICK = {"batch_size": 4, "initial_epochs": 1, "memory_per_class": 2, "feature_size": 8}


class Terms(Observer):
    """Remembers the losses of every step."""

    def __init__(self) -> None:
        self.terms: list[dict[str, float]] = []

    def step_ends(self, terms: Any) -> None:
        self.terms.append({name: float(value) for name, value in terms.items()})


def tiny(kind: Any = "sentence", **values: Any) -> KCN:
    encoder = tiny_encoder(kind)
    with seeded(0, 0, torch.device("cpu")):
        return KCN(encoder, make_settings(KCN.Settings, {**QUICK, **values})).eval()


def labeled(*labels: int) -> Batch:
    indices = torch.arange(len(labels))
    return Batch(indices, indices, indices, torch.tensor(labels), indices)


def by_hand(**values: Any) -> tuple[KCN, Teacher]:
    """Two old classes and a new one: teacher scores (2, 0), student scores (1, 1, 3)."""
    method = tiny(feature_size=2, virtual_none=False, **values)
    method.head.output.weight = nn.Parameter(torch.tensor([[0.6, 0.8], [0.6, 0.8], [1.8, 2.4]]))
    method.exemplar_features = lambda batch: torch.tensor([[0.6, 0.8]])  # type: ignore[method-assign]
    return method, Teacher(features=torch.tensor([[1.0, 0.0]]), slots=torch.tensor([[2.0, 0.0]]))


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


def test_the_three_losses_have_the_values_worked_out_by_hand() -> None:
    method, teacher = by_hand()
    hard, prediction, feature = method.three_losses(labeled(2), teacher)
    assert hard.item() == pytest.approx(0.239545, abs=1e-6)
    assert prediction.item() == pytest.approx(0.693147, abs=1e-6)
    assert feature.item() == pytest.approx(0.4, abs=1e-6)
    settings = method.settings
    total = hard + settings.prediction_weight * prediction + settings.feature_weight * feature
    assert total.item() == pytest.approx(1.074063, abs=1e-6)


def test_prediction_distillation_does_not_reach_the_new_class() -> None:
    method, teacher = by_hand()
    method.three_losses(labeled(2), teacher)[1].backward()
    gradient = method.head.output.weight.grad
    assert gradient is not None
    assert gradient[:2].abs().min() > 0
    assert gradient[2].tolist() == [0.0, 0.0]


def test_right_after_the_teacher_spoke_there_is_nothing_to_distil() -> None:
    method, task = tiny(), toy_task("sentence", "fruit", "vehicle")
    method.learn(task)
    teacher = method.teacher(task.train)
    _, prediction, feature = method.three_losses(next(iter(method.batches(task.train, 4))), teacher)
    prediction.backward()
    assert feature.item() == pytest.approx(0.0, abs=1e-6)
    assert all(
        part.grad is None or part.grad.abs().max().item() == pytest.approx(0.0, abs=1e-6)
        for part in method.parameters()
    )


def test_the_teacher_has_no_gradient() -> None:
    method, task = tiny(), toy_task("sentence", "fruit", "vehicle")
    method.learn(task)
    teacher = method.teacher(task.train)
    assert not teacher.features.requires_grad
    assert not teacher.slots.requires_grad


def test_the_first_task_knows_no_distillation() -> None:
    plain, weighted = tiny(), tiny(prediction_weight=50.0, feature_weight=70.0, temperature=9.0)
    for method in (plain, weighted):
        method.learn(toy_task("sentence", "fruit", "vehicle"))
    assert same_weights(plain, weighted)


def test_later_tasks_have_three_weighted_terms() -> None:
    method = tiny()
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    method.observer = terms = Terms()
    method.learn(toy_task("sentence", "weather"))
    assert len(terms.terms) == 3  # 6 new texts and 4 exemplars in batches of 4
    assert all(set(one) == {"ce", "pd", "fd"} for one in terms.terms)


def test_exemplars_are_the_nearest_to_the_class_mean_in_order() -> None:
    features = torch.tensor([[0.0], [1.0], [2.0], [3.0], [10.0]]).numpy()
    assert nearest_to_mean(features, 2) == [3, 2]
    method, task = tiny(memory_per_class=3), toy_task("sentence", "fruit")
    method.learn(task)
    features = method.for_all(task.train, method.exemplar_features).numpy()
    assert method.memory.of("fruit") == [task.train[index] for index in nearest_to_mean(features, 3)]


def test_herding_keeps_the_mean_of_the_chosen_near_the_mean_of_all() -> None:
    features = torch.tensor([[0.0], [4.0], [5.0], [10.0]]).numpy()
    assert herding(features, 3) == [2, 1, 3]
    assert nearest_to_mean(features, 3) == [2, 1, 0]
    assert sorted(herding(features, 9)) == [0, 1, 2, 3]


def test_old_classes_keep_their_exemplars() -> None:
    method = tiny()
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    old = method.memory.of("fruit")
    method.learn(Task(("weather",), [Example("the rain", "weather")], []))
    assert method.memory.of("fruit") == old
    assert method.memory.counts() == {"fruit": 2, "vehicle": 2, "weather": 1}


def test_a_hundred_in_all_is_the_official_quota() -> None:
    memory = ExemplarMemory(100, total=100)
    assert [memory.budget(classes) for classes in range(1, 11)] == [100, 50, 33, 25, 20, 16, 14, 12, 11, 10]


def test_the_virtual_none_is_a_constant_zero_that_is_never_predicted() -> None:
    method, task = tiny(), toy_task("sentence", "fruit", "vehicle")
    method.learn(task)
    slots = method.slots(torch.randn(3, 8))
    assert slots.shape == (3, 3)
    assert slots[:, 0].tolist() == [0.0, 0.0, 0.0]
    assert method.scores(task.test).shape == (6, 2)


@pytest.mark.parametrize(("head", "size", "parameters"), [("linear", 64, 2), ("hidden", 32, 5)])
def test_other_heads_distil_what_their_classifier_sees(head: str, size: int, parameters: int) -> None:
    method, task = tiny("relation", head=head), toy_task("relation", "fruit", "vehicle")
    method.learn(task)
    method.learn(toy_task("relation", "weather"))
    assert method.teacher(task.train).features.shape == (12, size)
    assert len(list(method.head.parameters())) == parameters


def test_the_bias_of_a_linear_head_starts_at_zero_and_grows_with_the_classes() -> None:
    method = tiny(head="linear")
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    method.classes.append("weather")
    before = method.head.output.bias.detach().clone()
    method.grow_head()
    assert method.head.output.bias.tolist() == [*before.tolist(), 0.0]


def test_the_memory_has_no_stage_and_no_epochs_of_its_own() -> None:
    assert "replay_epochs" not in KCN.Settings.model_fields


def test_pairs_weigh_distillation_by_old_and_labels_by_new_classes() -> None:
    method = tiny(combination="paired")
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    method.observer = terms = Terms()
    method.learn(toy_task("sentence", "weather"))
    assert len(terms.terms) == 2  # 6 new texts in batches of 4
    assert all(set(one) == {"new", "replay"} for one in terms.terms)


@pytest.mark.parametrize("combination", ["joint", "paired"])
def test_an_empty_memory_and_a_class_of_one_example_leave_finite_weights(combination: str) -> None:
    method = tiny(combination=combination, memory_total=1)
    method.learn(Task(("fruit", "vehicle"), [Example("the apple", "fruit"), Example("a car", "vehicle")], []))
    method.learn(Task(("weather",), [Example("the rain", "weather")], []))
    assert len(method.memory) == 0
    assert all(torch.isfinite(parameter).all() for parameter in method.parameters())


def test_a_zero_feature_is_distilled_without_nan() -> None:
    method, teacher = by_hand()
    zero: Tensor = torch.zeros(1, 2, requires_grad=True)
    method.exemplar_features = lambda batch: zero  # type: ignore[method-assign]
    sum(method.three_losses(labeled(0), teacher)).backward()  # type: ignore[union-attr]
    assert zero.grad is not None
    assert torch.isfinite(zero.grad).all()
