"""Statistics over rounds against scipy and examples worked by hand."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from repcl.errors import RepclError
from repcl.evaluation import (
    holm,
    mcnemar,
    paired_comparison,
    rounds_for_power,
    summarize,
    summarize_percents,
    summarize_tasks,
)
from repcl.evaluation.statistics import t_test_power

OURS = {2021: 0.856, 2121: 0.861, 2221: 0.849, 2321: 0.870, 2421: 0.855}
THEIRS = {2021: 0.843, 2121: 0.850, 2221: 0.846, 2321: 0.848, 2421: 0.857}


def by_seed(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


def test_the_standard_deviation_is_that_of_a_sample() -> None:
    summary = summarize([0.8, 0.9])
    assert summary.mean == pytest.approx(0.85)
    assert summary.rounds == 2
    assert summary.sd == pytest.approx(0.0707107, abs=1e-6)


def test_the_interval_is_students() -> None:
    values = list(OURS.values())
    summary = summarize(values)
    low, high = stats.t.interval(0.95, 4, loc=np.mean(values), scale=stats.sem(values))
    assert summary.low == pytest.approx(low)
    assert summary.high == pytest.approx(high)


def test_five_rounds_with_deviation_one_reach_1_2417_to_each_side() -> None:
    summary = summarize([-1.0, -1.0, 0.0, 1.0, 1.0])  # t(0.975, 4) = 2.7764, over √5
    assert summary.sd == pytest.approx(1)
    assert summary.high == pytest.approx(1.2417, abs=1e-4)


def test_one_round_has_no_spread() -> None:
    summary = summarize([0.8])
    assert (summary.mean, summary.sd, summary.low, summary.high, summary.rounds) == (0.8, None, None, None, 1)


def test_no_round_cannot_be_summarized() -> None:
    with pytest.raises(RepclError, match=r"^A summary needs the value of at least one round, found none\.$"):
        summarize([])


def test_a_metric_is_summarized_in_percent_over_the_rounds_that_have_it() -> None:
    summary = summarize_percents([0.5, None, 0.7])
    assert summary is not None
    assert summary.mean == pytest.approx(60)
    assert summary.rounds == 2
    assert summarize_percents([None]) is None


def test_a_round_with_fewer_tasks_counts_where_it_has_a_value() -> None:
    first, second, third = summarize_tasks([[0.8, None], [0.6, None, 0.5]])
    assert first is not None
    assert first.mean == pytest.approx(70)
    assert second is None
    assert third is not None
    assert (third.mean, third.rounds) == (50, 1)


def test_both_p_values_are_scipys() -> None:
    comparison = paired_comparison(OURS, THEIRS)
    ours, theirs = list(OURS.values()), list(THEIRS.values())
    assert comparison.difference == pytest.approx(np.mean(ours) - np.mean(theirs))
    assert comparison.t_p == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert comparison.wilcoxon_p == pytest.approx(stats.wilcoxon(np.subtract(ours, theirs)).pvalue)
    assert comparison.rounds == 5


@pytest.mark.parametrize("seed", range(5))
def test_both_p_values_are_scipys_for_many_rounds(seed: int) -> None:
    generator = random.Random(seed)
    ours, theirs = ([generator.gauss(mean, 1) for _ in range(20)] for mean in (0.3, 0.0))
    comparison = paired_comparison(by_seed(*ours), by_seed(*theirs))
    assert comparison.t_p == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert comparison.wilcoxon_p == pytest.approx(stats.wilcoxon(ours, theirs).pvalue)
    assert comparison.note == ""


def test_only_rounds_of_both_methods_are_compared() -> None:
    comparison = paired_comparison({1: 0.9, 2: 0.8, 3: 0.1}, {2: 0.6, 1: 0.8, 4: 0.0})
    assert comparison.rounds == 2
    assert comparison.difference == pytest.approx(0.15)


@pytest.mark.parametrize(("theirs", "difference"), [({1: 0.7}, 0.2), ({2: 0.7}, None)])
def test_fewer_than_two_common_rounds_are_not_tested(
    theirs: dict[int, float], difference: float | None
) -> None:
    comparison = paired_comparison({1: 0.9}, theirs)
    assert comparison.difference == (None if difference is None else pytest.approx(difference))
    assert (comparison.t_p, comparison.wilcoxon_p) == (None, None)
    assert comparison.note == f"No test: two rounds of both methods are needed, found {comparison.rounds}."


def test_equal_results_have_a_p_value_of_one() -> None:
    comparison = paired_comparison(OURS, OURS)
    assert (comparison.difference, comparison.t_p, comparison.wilcoxon_p) == (0, 1, 1)


def test_the_same_difference_in_every_round_is_no_evidence() -> None:
    comparison = paired_comparison(by_seed(0.3, 0.8, 0.9), by_seed(0.1, 0.6, 0.7))
    assert comparison.difference == pytest.approx(0.2)
    assert (comparison.t_p, comparison.wilcoxon_p) == (None, None)
    assert comparison.note.startswith("No test: the difference is the same in every round")
    assert comparison.rounds == 3


@pytest.mark.parametrize(("rounds", "least"), [(2, 0.5), (3, 0.25), (4, 0.125), (5, 0.0625)])
def test_wilcoxon_cannot_go_below_what_the_note_says(rounds: int, least: float) -> None:
    comparison = paired_comparison(by_seed(*range(1, rounds + 1)), by_seed(*[0.0] * rounds))
    assert comparison.wilcoxon_p == pytest.approx(least)
    assert comparison.note == f"At {rounds} rounds Wilcoxon's p cannot go below {least}."


def test_with_six_rounds_wilcoxon_can_go_below_5_percent_and_nothing_is_noted() -> None:
    comparison = paired_comparison(by_seed(*range(1, 7)), by_seed(*[0.0] * 6))
    assert comparison.wilcoxon_p == pytest.approx(2 / 2**6)
    assert comparison.note == ""


def test_rounds_without_difference_do_not_count_for_wilcoxon() -> None:
    comparison = paired_comparison(by_seed(0.5, 0.7, 0.8, 0.9), by_seed(0.5, 0.6, 0.6, 0.6))
    assert comparison.wilcoxon_p == pytest.approx(0.25)  # all three others favor one side: 2 / 2³


def test_holm_multiplies_by_the_number_of_tests_left() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_never_exceeds_one() -> None:
    assert holm([0.6, 0.7]) == [1.0, 1.0]


def test_holm_leaves_missing_values_alone() -> None:
    assert holm([None, 0.02, None, 0.04]) == [None, pytest.approx(0.04), None, pytest.approx(0.04)]


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_keeps_the_order_and_lies_between_raw_and_bonferroni(p_values: list[float]) -> None:
    adjusted = [p for p in holm(p_values) if p is not None]
    assert [adjusted[i] for i in np.argsort(p_values, kind="stable")] == sorted(adjusted)
    assert all(raw <= p <= min(1, len(p_values) * raw) for raw, p in zip(p_values, adjusted, strict=True))


def test_the_rounds_for_a_power_of_80_percent_are_those_of_textbooks() -> None:
    # Cohen (1988), paired t test at 5 %, two-sided: effects 0.2, 0.5 and 0.8 need 199, 34 and 15 pairs
    assert [rounds_for_power(effect) for effect in (0.2, 0.5, 0.8, -0.8)] == [199, 34, 15, 15]


def test_an_effect_next_to_nothing_has_no_number_of_rounds() -> None:
    assert rounds_for_power(0.01) is None
    assert rounds_for_power(0.0) is None


@pytest.mark.parametrize("effect", [1.0, 3.0, 5.0, 20.0, 1000.0])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 19])
def test_more_rounds_find_an_effect_of_any_size_more_often(effect: float, alpha: float) -> None:
    power = [t_test_power(effect, rounds, alpha) for rounds in range(2, 12)]
    assert power == sorted(power)
    assert power[-1] <= 1 + 1e-9


def test_the_power_for_a_large_effect_is_that_of_simulated_tests() -> None:
    drawn = np.random.default_rng(0).normal(5, 1, (50_000, 3))
    found = np.mean(stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05 / 19)
    assert t_test_power(5, 3, 0.05 / 19) == pytest.approx(found, abs=0.01)


def test_a_comparison_says_how_many_rounds_its_difference_would_need() -> None:
    differences = [ours - theirs for ours, theirs in zip(OURS.values(), THEIRS.values(), strict=True)]
    effect = np.mean(differences) / np.std(differences, ddof=1)
    found = paired_comparison(OURS, THEIRS).rounds_needed(tests=1)
    assert found == rounds_for_power(effect)
    drawn = np.random.default_rng(0).normal(effect, 1, (20_000, found or 0))
    assert np.mean(stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05) >= 0.8


def test_one_of_many_tests_needs_the_rounds_that_pass_a_stricter_bar() -> None:
    found = paired_comparison({1: 0.1, 2: 0.3, 3: 0.2}, {1: 0.0, 2: 0.0, 3: 0.2})  # effect 0.1333 / 0.1528
    needed = found.rounds_needed(tests=5) or 0
    effect = found.effect or 0.0
    assert effect == pytest.approx(0.8729, abs=1e-4)
    drawn = np.random.default_rng(0).normal(effect, 1, (20_000, needed))
    assert np.mean(stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.01) >= 0.79
    assert np.mean(stats.ttest_1samp(drawn[:, :-1], 0, axis=1).pvalue < 0.01) < 0.81


def test_where_nothing_is_tested_no_rounds_are_named() -> None:
    assert paired_comparison({1: 0.5}, {1: 0.4}).rounds_needed(tests=1) is None
    assert paired_comparison(by_seed(0.5, 0.6), by_seed(0.5, 0.6)).rounds_needed(tests=1) is None


@pytest.mark.parametrize(
    ("lost", "gained", "p_value"),
    [(0, 0, 1.0), (1, 0, 1.0), (3, 0, 0.25), (5, 0, 0.0625), (5, 1, 0.21875), (2, 2, 1.0)],
)
def test_mcnemar_is_the_two_sided_sign_test(lost: int, gained: int, p_value: float) -> None:
    assert mcnemar(lost, gained) == pytest.approx(p_value)
