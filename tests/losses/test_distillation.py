"""Distillation losses against hand-worked numbers."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from repcl.losses import divergence, feature_distillation, soft_cross_entropy, squared_distance


def rows(*values: tuple[float, ...], grad: bool = False) -> Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


def softened(student: Tensor, teacher: Tensor, temperature: float = 2.0) -> Tensor:
    return soft_cross_entropy(student, teacher, temperature=temperature, target_temperature=temperature)


def test_soft_cross_entropy_of_equal_student_scores_is_ln_2() -> None:
    assert softened(rows((1, 1)), rows((2, 0))).item() == pytest.approx(0.693147, abs=1e-6)


def test_soft_cross_entropy_is_least_at_the_entropy_of_the_softened_teacher() -> None:
    assert softened(rows((2, 0)), rows((2, 0))).item() == pytest.approx(0.582203, abs=1e-6)
    assert softened(rows((7, 5)), rows((2, 0))).item() == pytest.approx(0.582203, abs=1e-6)


def test_soft_cross_entropy_has_no_gradient_where_the_student_agrees() -> None:
    student = rows((2, 0, -1), grad=True)
    softened(student, rows((5, 3, 2))).backward()
    assert student.grad is not None
    assert student.grad.abs().max().item() == pytest.approx(0.0, abs=1e-12)


def test_a_very_soft_teacher_is_uniform() -> None:
    loss = soft_cross_entropy(rows((1, 0, 0)), rows((9, -3, 4)), target_temperature=1e9)
    uniform = -torch.log_softmax(rows((1, 0, 0)), dim=1).mean()
    assert loss.item() == pytest.approx(uniform.item(), abs=1e-7)


def test_a_certain_teacher_makes_it_ordinary_cross_entropy() -> None:
    student, labels = rows((1, 0, 2), (0, 3, 1)), torch.tensor([2, 0])
    teacher = 1e4 * torch.nn.functional.one_hot(labels, 3).double()
    assert torch.allclose(soft_cross_entropy(student, teacher), cross_entropy(student, labels))


def test_student_and_teacher_may_have_different_temperatures() -> None:
    loss = soft_cross_entropy(rows((0, 1, 1)), rows((0, 2, -1)), target_temperature=0.5)
    assert loss.item() == pytest.approx(0.879937, abs=1e-6)


def test_divergence_is_zero_for_equal_answers_and_soft_cross_entropy_minus_entropy_otherwise() -> None:
    student, teacher = rows((0.3, 1.0, -2.0)), rows((1.0, 0.0, 0.5))
    entropy = soft_cross_entropy(teacher, teacher)
    assert divergence(teacher + 4, teacher).item() == pytest.approx(0.0, abs=1e-12)
    assert torch.allclose(divergence(student, teacher), soft_cross_entropy(student, teacher) - entropy)


def test_divergence_is_the_mean_over_the_rows() -> None:
    # teacher (3/4, 1/4) and student (1/2, 1/2): ln 2 - H, H = 2 ln 2 - 3/4 ln 3; the second row agrees
    student, teacher = rows((0, 0), (1, 5)), rows((math.log(3), 0), (1, 5))
    expected = 0.75 * math.log(3) - math.log(2)
    assert divergence(student, teacher).item() == pytest.approx(expected / 2)


def test_divergence_takes_any_number_of_dimensions_before_the_classes() -> None:
    student, teacher = rows((0, 0), (1, 5)), rows((math.log(3), 0), (1, 5))
    flat, nested = divergence(student, teacher), divergence(student[:, None], teacher[:, None])
    assert nested.item() == pytest.approx(flat.item())


def test_divergence_flows_into_both_sides() -> None:
    student, teacher = rows((1, 0), grad=True), rows((0, 1), grad=True)
    divergence(student, teacher).backward()
    assert student.grad is not None
    assert teacher.grad is not None
    assert student.grad.abs().min() > 0
    assert teacher.grad.abs().min() > 0


def test_divergence_survives_answers_that_are_certain() -> None:
    student = rows((1000, 0), grad=True)
    loss = divergence(student, rows((0, 1000)))
    loss.backward()
    assert loss.item() == pytest.approx(1000)
    assert student.grad is not None
    assert torch.isfinite(student.grad).all()


def test_feature_distillation_is_one_minus_the_cosine() -> None:
    assert feature_distillation(rows((0.6, 0.8)), rows((1, 0))).item() == pytest.approx(0.4)
    assert feature_distillation(rows((1, 0), (0, 1)), rows((-1, 0), (0, 1))).item() == pytest.approx(1.0)


def test_feature_distillation_does_not_see_lengths() -> None:
    assert feature_distillation(rows((6, 8)), rows((0.1, 0))).item() == pytest.approx(0.4)


def test_feature_distillation_of_a_zero_feature_is_finite() -> None:
    feature = rows((0, 0), grad=True)
    loss = feature_distillation(feature, rows((1, 2)))
    loss.backward()
    assert loss.item() == pytest.approx(1.0)
    assert feature.grad is not None
    assert torch.isfinite(feature.grad).all()


def test_squared_distance_sums_over_coordinates_and_averages_over_rows() -> None:
    features, targets = rows((1, 2), (0, 3)), rows((4, 6), (0, 2))  # 3² + 4² and 0² + 1²
    assert squared_distance(features, targets).item() == pytest.approx((25 + 1) / 2)


@pytest.mark.parametrize("loss", [soft_cross_entropy, divergence, feature_distillation, squared_distance])
def test_an_empty_batch_costs_nothing_and_can_be_differentiated(loss: object) -> None:
    student = torch.zeros(0, 3, requires_grad=True)
    value = loss(student, torch.zeros(0, 3))  # type: ignore[operator]
    value.backward()
    assert value.item() == 0.0
    assert not math.isnan(value.item())
