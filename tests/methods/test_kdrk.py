"""KDRK against the values and properties of its specification."""

from typing import Any

import pytest
import torch
from torch import Tensor

from repcl.data import Example, Task
from repcl.losses import soft_cross_entropy
from repcl.methods import make_settings
from repcl.methods.base import seeded
from repcl.methods.distilling import Pairs, by_classes
from repcl.methods.kcn import KCN
from repcl.methods.kdrk import KDRK, mixture_of_rows, most_probable, transferred_share
from tests.conftest import tiny_encoder, toy_task

QUICK = {"batch_size": 4, "initial_epochs": 1, "memory_per_class": 2, "feature_size": 8}


def tiny(kind: Any = "sentence", *, of: Any = KDRK, **values: Any) -> Any:
    encoder = tiny_encoder(kind)
    with seeded(0, 0, torch.device("cpu")):
        return of(encoder, make_settings(of.Settings, {**QUICK, **values})).eval()


def rows(*values: tuple[float, ...], grad: bool = False) -> Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


# Slots: None, two old classes, one new class.
TEACHER = rows((0, 2, -1), (0, -4, -4))
STUDENT = rows((0, 1, 1, 2), (0, -3, -3, 1))
NEW_CLASS = torch.tensor([2, 2])


def softened(student: Tensor, teacher: Tensor) -> Tensor:
    return soft_cross_entropy(student, teacher, temperature=2.0, target_temperature=2.0)


def test_the_loss_of_a_new_batch_has_the_values_worked_out_by_hand() -> None:
    method = tiny()
    assert softened(STUDENT[:1, :3], TEACHER[:1]).item() == pytest.approx(1.073632, abs=1e-6)
    assert softened(STUDENT[1:, :3], TEACHER[1:]).item() == pytest.approx(0.688502, abs=1e-6)
    distilled = method.self_trained(STUDENT[:, :3], TEACHER)
    hard = method.hard_loss(STUDENT, NEW_CLASS)
    assert distilled.item() == pytest.approx(0.880690, abs=1e-6)
    assert hard.item() == pytest.approx(0.483106, abs=1e-6)
    assert by_classes(distilled, hard, old=3, new=1).item() == pytest.approx(0.781294, abs=1e-6)


@pytest.mark.parametrize(
    ("soften_replay", "distillation", "replay", "total"),
    [(False, 0.856668, 0.765954, 0.767348), (True, 0.860006, 0.768458, 0.769625)],
)
def test_the_loss_of_replay_has_the_values_worked_out_by_hand(
    soften_replay: bool, distillation: float, replay: float, total: float
) -> None:
    method = tiny(soften_replay=soften_replay)
    teacher, student = rows((0, 3, 0)), rows((0, 2, 0, 1))
    distilled = method.replayed(student[:, :3], teacher)
    hard = method.hard_loss(student, torch.tensor([0]))
    loss = by_classes(distilled, hard, old=3, new=1)
    assert hard.item() == pytest.approx(0.493812, abs=1e-6)
    assert distilled.item() == pytest.approx(distillation, abs=1e-6)
    assert loss.item() == pytest.approx(replay, abs=1e-6)
    method.memory.keep("fruit", [Example(str(number), "fruit") for number in range(20)])
    share = method._share_of_new(2)
    assert share * 0.781294 + (1 - share) * loss.item() == pytest.approx(total, abs=1e-6)


def test_a_student_that_answers_as_its_teacher_learns_nothing_more_on_exemplars() -> None:
    student = TEACHER.clone().requires_grad_()
    tiny().replayed(student, TEACHER).backward()
    assert student.grad is not None
    assert student.grad.abs().max().item() == pytest.approx(0.0, abs=1e-12)


def test_without_softening_a_student_that_answers_as_its_teacher_is_told_to_be_less_sure() -> None:
    student = TEACHER[:1].clone().requires_grad_()
    tiny(soften_replay=False).replayed(student, TEACHER[:1]).backward()
    assert student.grad is not None
    assert student.grad[0, 1] > 0 > student.grad[0, 2]  # the highest score falls, the lowest rises


def test_balanced_weights_do_not_depend_on_the_size_of_the_memory() -> None:
    method = tiny(replay_weights="balanced")
    method.memory.keep("fruit", [Example(str(number), "fruit") for number in range(20)])
    assert method._share_of_new(2) == 0.5


def test_no_self_training_where_the_teacher_calls_everything_none() -> None:
    method = tiny()
    teacher, student = rows((0, -4, -4), (0, -5, -3)), STUDENT[:, :3]
    assert torch.equal(method.self_trained(student, teacher), softened(student, teacher))


def test_an_example_exactly_at_the_threshold_is_left_out() -> None:
    teacher, student = TEACHER[:1], STUDENT[:1, :3]
    threshold = torch.softmax(2 * teacher, dim=1)[0, 0].item()
    method = tiny(none_threshold=threshold)
    assert torch.equal(method.self_trained(student, teacher), softened(student, teacher))


def test_without_none_self_training_takes_what_is_like_one_old_class() -> None:
    method = tiny(virtual_none=False)
    teacher, student = rows((3, 0, 0), (0.1, 0, 0)), rows((1, 0, 0), (0, 0, 1))
    sharpened = soft_cross_entropy(student[:1], teacher[:1], target_temperature=0.5)
    expected = (2 * softened(student, teacher) + sharpened) / 3
    assert torch.allclose(method.self_trained(student, teacher), expected)


def test_new_slots_learn_nothing_from_distillation() -> None:
    method = tiny()
    student = STUDENT.clone().requires_grad_()
    loss = method.self_trained(student[:, :3], TEACHER) + method.replayed(student[:, :3], TEACHER)
    loss.backward()
    assert student.grad is not None
    assert student.grad[:, 3].tolist() == [0.0, 0.0]


def test_a_student_equal_to_its_teacher_is_still_taught_larger_margins() -> None:
    student = TEACHER[:1].clone().requires_grad_()
    softened(student, TEACHER[:1]).backward()
    assert student.grad is not None
    assert student.grad.abs().max().item() == pytest.approx(0.0, abs=1e-12)
    soft_cross_entropy(student, TEACHER[:1], target_temperature=0.5).backward()
    assert student.grad[0, 1] < 0 < student.grad[0, 0]


def test_class_counts_weigh_to_one_and_no_new_class_means_no_cross_entropy() -> None:
    one = torch.tensor(1.0)
    assert by_classes(one, one, old=9, new=8).item() == pytest.approx(1.0)
    assert by_classes(one, 5 * one, old=9, new=0).item() == pytest.approx(1.0)


ROWS, FEATURE = rows((3, 0), (0, 4)), rows((0.6, 0.8))


def test_a_new_row_mixes_own_features_and_old_rows_as_worked_out_by_hand() -> None:
    own, transferred = rows((0.066493, 0.088658)), rows((0.574658, 3.107136))
    mixed = mixture_of_rows(FEATURE, ROWS)
    assert torch.allclose(mixed, (own + transferred)[0], atol=1e-5)
    assert torch.allclose(0.25 * mixed, rows((0.160288, 0.798948))[0], atol=1e-5)


def test_the_second_version_shares_between_own_features_and_old_rows() -> None:
    mixed = mixture_of_rows(FEATURE, ROWS, own_share=0.5)
    assert torch.allclose(mixed, rows((0.617300, 3.202265))[0], atol=1e-5)


def test_the_second_version_looks_at_the_most_probable_slots_and_none() -> None:
    kept = most_probable(rows((0.05, 0.6, 0.32, 0.02, 0.01)), has_none=True)
    assert kept[0].tolist() == pytest.approx([0.051546, 0.618557, 0.329897, 0.0, 0.0], abs=1e-6)
    kept = most_probable(rows((0.005, 0.99, 0.003, 0.002)), has_none=False)
    assert kept[0].tolist() == pytest.approx([0.005025, 0.994975, 0.0, 0.0], abs=1e-6)


def test_the_slots_of_each_text_are_shares_of_their_own_sum() -> None:
    kept = most_probable(rows((0.005, 0.99, 0.003, 0.002), (0.3, 0.4, 0.05, 0.25)), has_none=False)
    assert kept.sum(dim=1).tolist() == pytest.approx([1.0, 1.0])


def test_slots_are_kept_until_nine_tenths_are_reached() -> None:
    kept = most_probable(rows((0.3, 0.4, 0.05, 0.25)), has_none=False)  # 0.4, 0.7, 0.95: three are enough
    assert kept[0].tolist() == pytest.approx([0.3 / 0.95, 0.4 / 0.95, 0.0, 0.25 / 0.95])


def test_without_none_the_own_part_has_the_share_that_no_old_class_claims() -> None:
    # scores (1.8, 3.2): weights (0.197816, 0.802184), so the own part has 0.197816
    mixed = mixture_of_rows(FEATURE, ROWS, has_none=False)
    expected = rows((0.197816 * 3.5 * 0.6 + 0.197816 * 3, 0.197816 * 3.5 * 0.8 + 0.802184 * 4))
    assert torch.allclose(mixed, expected[0], atol=1e-5)


def test_a_zero_feature_gives_a_finite_row() -> None:
    for own_share in (None, 0.5):
        assert torch.isfinite(mixture_of_rows(rows((0, 0)), ROWS, own_share=own_share)).all()


@pytest.mark.parametrize(
    ("examples", "share"),
    [(0, 0.25), (20, 0.092), (60, 0.012), (100, 1.7e-3), (175, 4.0e-5), (320, 2.8e-8), (420, 1.9e-10)],
)
def test_transfer_fades_with_the_number_of_examples(examples: int, share: float) -> None:
    assert transferred_share(examples, gate=0.25, decay=0.05) == pytest.approx(share, rel=0.04)


def test_without_transfer_new_rows_are_noise_as_long_as_old_rows() -> None:
    method, task = tiny(feature_size=512, gate=0.0), toy_task("sentence", "vehicle")
    method.learn(toy_task("sentence", "fruit"))
    method.classes.append("vehicle")
    old_rows = torch.full((1, 512), 2.0)
    method.grow_head()
    with seeded(0, 1, torch.device("cpu")):
        method.start_rows(task, method.teacher(task.train).features, old_rows)
    assert method.head.output.weight[1].norm().item() == pytest.approx(old_rows.norm().item(), rel=0.15)


@pytest.mark.parametrize(("transfer", "times"), [("none", 0), ("first", 1)])
def test_rows_are_mixed_from_old_ones_unless_nothing_is_transferred(
    transfer: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, mixed = tiny(transfer=transfer), []
    monkeypatch.setattr(method, "start_rows", lambda task, *_: mixed.append(task.classes))
    method.learn(toy_task("sentence", "fruit"))
    method.learn(toy_task("sentence", "vehicle"))
    assert mixed == [("vehicle",)] * times


@pytest.mark.parametrize(("decay", "share"), [("median", 0.5), (0.0, 1.0)])
def test_the_median_gate_is_half_open_for_a_class_of_median_size(decay: Any, share: float) -> None:
    method, task = tiny(gate=1.0, gate_decay=decay), toy_task("sentence", "vehicle")
    method.learn(toy_task("sentence", "fruit"))
    method.classes.append("vehicle")
    old_rows, features = torch.eye(8)[:1], torch.eye(8)[:1].repeat(6, 1)
    method.grow_head()
    with seeded(0, 1, torch.device("cpu")):
        noise = torch.randn(8) / 8**0.5
    with seeded(0, 1, torch.device("cpu")):
        method.start_rows(task, features, old_rows)
    expected = share * mixture_of_rows(features, old_rows) + (1 - share) * noise
    assert torch.allclose(method.head.output.weight[1], expected, atol=1e-6)


def test_old_rows_are_not_touched_by_the_start_of_new_ones() -> None:
    method = tiny()
    method.learn(toy_task("sentence", "fruit"))
    before = method.head.output.weight.data.clone()
    method.classes.append("vehicle")
    method.grow_head()
    task = toy_task("sentence", "vehicle")
    method.start_rows(task, method.teacher(task.train).features, before)
    assert torch.equal(method.head.output.weight.data[:1], before)


def test_the_virtual_none_has_no_row_and_no_prediction() -> None:
    method, task = tiny(), toy_task("sentence", "fruit", "vehicle")
    method.learn(task)
    assert method.head.output.weight.shape == (2, 8)
    assert method.slots(torch.randn(5, 8))[:, 0].tolist() == [0.0] * 5
    assert method.scores(task.test).shape == (6, 2)


@pytest.mark.parametrize("kind", ["sentence", "relation", "event"])
def test_kcn_and_kdrk_are_the_same_after_the_first_task(kind: Any) -> None:
    task = toy_task(kind, "fruit", "vehicle")
    scores = []
    for of in (KCN, KDRK):
        method = tiny(kind, of=of)
        method.learn(task)
        scores.append(method.scores(task.test))
    assert torch.equal(*scores)


def test_a_memory_as_large_as_a_batch_is_replayed_whole_at_every_step() -> None:
    method = tiny()
    new, memory = (
        toy_task("sentence", "fruit", train=10).train,
        toy_task("sentence", "vehicle", train=4).train,
    )
    pairs = Pairs(method.batches(new, 4), method.batches(memory, 4))
    epochs = [exemplars for _ in range(2) for _, exemplars in pairs]
    assert len(pairs) == 3
    assert len(epochs) == 6
    assert all(sorted(exemplars.positions.tolist()) == [0, 1, 2, 3] for exemplars in epochs if exemplars)


def test_exemplars_go_on_where_the_last_epoch_left_them() -> None:
    method = tiny()
    new, memory = toy_task("sentence", "fruit", train=4).train, toy_task("sentence", "vehicle").train
    pairs = Pairs(method.batches(new, 2), method.batches(memory, 2))
    met = [
        index
        for _ in range(3)
        for _, exemplars in pairs
        if exemplars
        for index in exemplars.positions.tolist()
    ]
    assert sorted(met) == sorted([*range(6), *range(6)])


def test_a_task_of_old_classes_only_still_learns_from_labels() -> None:
    method = tiny(head_learning_rate=1e-2, initial_epochs=3)
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    before = method.head.output.weight.detach().clone()
    method.learn(toy_task("sentence", "fruit", start=9))
    assert method.head.output.weight.shape == before.shape
    assert not torch.equal(method.head.output.weight, before)


@pytest.mark.parametrize(
    "values", [{}, {"virtual_none": False}, {"transfer": "second"}, {"gate_decay": "median"}]
)
def test_an_empty_memory_and_classes_of_one_or_no_example_leave_finite_weights(values: Any) -> None:
    method = tiny(memory_total=1, **values)
    method.learn(Task(("fruit", "vehicle"), [Example("the apple", "fruit"), Example("a car", "vehicle")], []))
    method.learn(Task(("weather", "place"), [Example("the rain", "weather")], []))
    assert len(method.memory) == 0
    assert all(torch.isfinite(parameter).all() for parameter in method.parameters())
