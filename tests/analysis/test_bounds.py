"""Bounds of mutual information against numbers worked out by hand."""

from math import exp, log

import pytest
import torch
from torch import Tensor

from repcl.analysis.bounds import (
    corrected_loss,
    donsker_varadhan,
    fano_bound,
    info_nce_bound,
    moving_log_mean,
)


def gaussian(rows: int, size: int, correlation: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    left = torch.randn(rows, size, generator=generator)
    noise = torch.randn(rows, size, generator=generator)
    return left, correlation * left + (1 - correlation**2) ** 0.5 * noise


def exact_critic(left: Tensor, right: Tensor, correlation: float) -> Tensor:
    """Ln p(x, y) / p(x) p(y) of correlated normal variables, over the last dimension."""
    square = correlation**2
    exponent = (square * (left**2 + right**2) - 2 * correlation * left * right) / (2 * (1 - square))
    return (-0.5 * log(1 - square) - exponent).sum(dim=-1)


@pytest.mark.parametrize(
    ("size", "correlation", "truth", "tolerance"),
    [(1, 0.5, 0.14384, 0.02), (1, 0.9, 0.83037, 0.02), (2, 0.9, 1.66073, 0.02), (20, 0.5, 2.87682, 0.05)],
)
def test_the_exact_critic_gives_the_information_of_normal_variables(size, correlation, truth, tolerance):
    left, right = gaussian(100_000, size, correlation)
    joint, marginal = (exact_critic(left, other, correlation) for other in (right, right.roll(1, dims=0)))
    assert donsker_varadhan(joint, marginal).item() == pytest.approx(truth, abs=tolerance)


def test_a_critic_that_says_the_same_of_all_pairs_has_found_nothing():
    assert donsker_varadhan(torch.full((7,), 3.5), torch.full((5,), 3.5)).item() == pytest.approx(0)


def test_adding_a_constant_to_the_critic_changes_nothing_unlike_for_the_f_divergence_bound():
    joint, marginal = torch.tensor([1.0, 2.0]), torch.tensor([0.5, -1.0])

    def f_divergence(shift: float) -> float:  # MINE-f, Nguyen, Wainwright and Jordan
        return float((joint + shift).mean() - (marginal + shift - 1).exp().mean())

    shifted = donsker_varadhan(joint + 5, marginal + 5)
    assert shifted.item() == pytest.approx(donsker_varadhan(joint, marginal).item(), abs=1e-6)
    assert abs(f_divergence(5) - f_divergence(0)) > 1


def test_scores_that_overflow_exp_give_a_finite_bound():
    bound = donsker_varadhan(torch.tensor([1000.0]), torch.tensor([1000.0, 0.0]))
    assert bound.item() == pytest.approx(log(2), abs=1e-4)


def weights_of_marginals(rate: float, previous: float) -> list[float]:
    marginal = torch.tensor([0.0, log(3)], requires_grad=True)
    average = moving_log_mean(torch.tensor(previous).log(), marginal, rate=rate)
    corrected_loss(torch.zeros(1), marginal, average).backward()
    assert marginal.grad is not None
    return marginal.grad.tolist()


def test_the_biased_gradient_weighs_independent_pairs_by_their_softmax():
    assert weights_of_marginals(rate=1.0, previous=1.0) == pytest.approx([0.25, 0.75])


def test_the_corrected_gradient_divides_by_the_moving_average():
    # 0.99 · 1 + 0.01 · 2 = 1.01, and e^T / (2 · 1.01)
    assert weights_of_marginals(rate=0.01, previous=1.0) == pytest.approx([0.49505, 1.48515], abs=1e-5)


def test_the_moving_average_starts_with_the_first_batch():
    assert moving_log_mean(None, torch.tensor([0.0, log(3)]), rate=0.01).item() == pytest.approx(log(2))


def test_loss_and_gradient_stay_finite_where_exp_overflows():
    marginal = torch.tensor([1000.0, 0.0], requires_grad=True)
    average = moving_log_mean(torch.tensor(0.0), marginal, rate=0.01)
    loss = corrected_loss(torch.zeros(2), marginal, average)
    loss.backward()
    assert loss.isfinite()
    assert marginal.grad is not None
    assert marginal.grad.isfinite().all()


def test_equal_scores_of_a_group_say_nothing():
    assert info_nce_bound(torch.full((6, 6), 2.0)).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("size", "temperature", "loss"), [(2, 1.0, 0.313262), (4, 1.0, 0.743668), (4, 0.05, 6.1835e-9)]
)
def test_orthonormal_pairs_give_the_loss_worked_out_by_hand(size, temperature, loss):
    scores = torch.eye(size, dtype=torch.float64) / temperature
    assert log(size) - info_nce_bound(scores).item() == pytest.approx(loss, rel=1e-5)
    assert loss == pytest.approx(log(1 + (size - 1) * exp(-1 / temperature)), rel=1e-4)


def test_the_group_bound_does_not_depend_on_the_order_and_stays_below_its_ceiling():
    scores = 30 * torch.randn(16, 16, generator=torch.Generator().manual_seed(0)) + 90 * torch.eye(16)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    assert info_nce_bound(scores[order][:, order]).item() == pytest.approx(info_nce_bound(scores).item())
    assert info_nce_bound(scores).item() <= log(16)


def test_larger_groups_come_nearer_to_the_truth_and_stay_below_ln_of_their_size():
    truth, values = 2.87682, []
    left, right = gaussian(8192, 20, 0.5)
    for size in (2, 8, 32, 128):
        groups = [
            info_nce_bound(exact_critic(left[at : at + size, None], right[None, at : at + size], 0.5)).item()
            for at in range(0, 2048, size)
        ]
        values.append(sum(groups) / len(groups))
        assert values[-1] < log(size)
    assert values == sorted(values)
    assert values[-1] < truth


def test_fano_reads_a_lower_bound_out_of_an_accuracy():
    # ln 80 - h(0.15) - 0.15 · ln 79: what the paper's accuracy on FewRel implies
    assert fano_bound(0.85, [140] * 80) == pytest.approx(3.30, abs=0.01)
    assert fano_bound(1.0, [5] * 8) == pytest.approx(log(8))
    assert fano_bound(1 / 8, [5] * 8) == pytest.approx(0, abs=1e-9)
    assert fano_bound(1.0, [1, 3]) == pytest.approx(0.25 * log(4) + 0.75 * log(4 / 3))
    assert fano_bound(0.0, [9]) == 0
