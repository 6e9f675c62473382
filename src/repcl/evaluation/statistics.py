"""Statistics: the spread of one method over rounds, paired tests of two, correction for many tests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import isnan, sqrt
from statistics import fmean, stdev
from typing import overload

from repcl.errors import RepclError

ALPHA, POWER, MOST_ROUNDS = 0.05, 0.8, 200


@dataclass(frozen=True)
class Summary:
    """Mean over rounds, sample standard deviation, and 95 % t interval; the last two need two rounds."""

    mean: float
    sd: float | None
    low: float | None
    high: float | None
    rounds: int


@dataclass(frozen=True)
class Comparison:
    """Mean difference between two methods over the rounds both ran, with two-sided p values.

    There is no p value where no test is possible: with one round, or with the same difference in every round.

    Attributes:
        effect: mean difference over the standard deviation of the differences; None where there is no test.
    """

    difference: float | None
    t_p: float | None
    wilcoxon_p: float | None
    rounds: int
    note: str
    effect: float | None = None

    def rounds_needed(self, tests: int) -> int | None:
        """With so many rounds the t test would find a difference of this size in 80 of 100 cases.

        None where there is no test, and where more than `MOST_ROUNDS` would be needed.

        Args:
            tests: how many the p value is corrected for, as if it were the smallest of them.
        """
        return None if self.effect is None else rounds_for_power(self.effect, ALPHA / tests)


def summarize(values: Sequence[float]) -> Summary:
    """Summarize one metric over rounds."""
    if not values:
        raise RepclError("A summary needs the value of at least one round, found none.")
    mean, rounds = fmean(values), len(values)
    if rounds == 1:
        return Summary(mean, None, None, None, rounds)
    from scipy import stats  # takes a second to import

    sd = stdev(values)
    margin = float(stats.t.ppf(0.975, rounds - 1)) * sd / sqrt(rounds)
    return Summary(mean, sd, mean - margin, mean + margin, rounds)


def summarize_percents(fractions: Iterable[float | None]) -> Summary | None:
    """Summarize one metric over the rounds that have it, in percent; None if none has it."""
    known = [100 * value for value in fractions if value is not None]
    return summarize(known) if known else None


def summarize_tasks(rounds: Iterable[Sequence[float | None]]) -> list[Summary | None]:
    """Summarize accuracies after each task over rounds, in percent.

    Args:
        rounds: for each round the accuracy after each task as a fraction, None where nothing was evaluated.
            A round with fewer tasks than others counts where it has a value.
    """
    return [summarize_percents(of_task) for of_task in zip_longest(*rounds)]


def paired_comparison(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Comparison:
    """Compare two methods, each given as round → value, over the rounds they share."""
    shared = sorted(ours.keys() & theirs.keys())
    # two accuracies can differ by the same number of examples and yet not by the same float
    differences = [round(ours[number] - theirs[number], 12) for number in shared]
    rounds = len(differences)
    if rounds < 2:
        note = f"No test: two rounds of both methods are needed, found {rounds}."
        return Comparison(fmean(differences) if differences else None, None, None, rounds, note)
    if differences[0] and len(set(differences)) == 1:
        note = "No test: the difference is the same in every round, so nothing says how it scatters."
        return Comparison(differences[0], None, None, rounds, note)
    note = f"At {rounds} rounds Wilcoxon's p cannot go below {2 / 2**rounds:g}." if rounds < 6 else ""
    mean, spread = fmean(differences), stdev(differences)
    effect = mean / spread if spread else None
    return Comparison(mean, _t_test(differences), _wilcoxon_test(differences), rounds, note, effect)


def rounds_for_power(effect: float, alpha: float = ALPHA) -> int | None:
    """The fewest rounds with which a paired t test finds an effect with probability 80 %.

    Args:
        effect: mean difference over the standard deviation of the differences.
        alpha: the p value below which it counts as found.
    """
    return next((n for n in range(2, MOST_ROUNDS + 1) if t_test_power(effect, n, alpha) >= POWER), None)


def t_test_power(effect: float, rounds: int, alpha: float = ALPHA) -> float:
    """The probability that a two-sided paired t test finds an effect with so many rounds."""
    from scipy import stats

    freedom, shift = rounds - 1, abs(effect) * sqrt(rounds)
    critical = float(stats.t.ppf(1 - alpha / 2, freedom))
    # the chance of the opposite sign; where it is negligible, scipy gives no number
    opposite = float(stats.nct.cdf(-critical, freedom, shift))
    return float(stats.nct.sf(critical, freedom, shift)) + (0.0 if isnan(opposite) else opposite)


@overload
def holm(p_values: Sequence[float]) -> Sequence[float]: ...
@overload
def holm(p_values: Sequence[float | None]) -> Sequence[float | None]: ...
def holm(p_values: Sequence[float | None]) -> Sequence[float | None]:
    """Adjust p values for their number by Holm's step-down rule; None stays None and is not counted."""
    ascending = sorted((p, position) for position, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, position) in enumerate(ascending):
        highest = max(highest, min(1.0, (len(ascending) - rank) * p))
        adjusted[position] = highest
    return adjusted


def mcnemar(lost: int, gained: int) -> float:
    """Exact two-sided p that a change as uneven as this one is chance."""
    changed = lost + gained
    return min(1.0, 2 * at_least(max(lost, gained), changed, 0.5)) if changed else 1.0


def at_least(count: int, of: int, rate: float) -> float:
    """How likely so many of all are, or more, if each has this chance (binomial)."""
    from scipy.special import bdtrc  # `scipy.stats` takes a second more to import

    return float(bdtrc(count - 1, of, rate))


def _t_test(differences: Sequence[float]) -> float:
    """P value of Student's paired test; 1 where there is no difference at all."""
    from scipy import stats

    return float(stats.ttest_1samp(differences, 0.0).pvalue) if any(differences) else 1.0


def _wilcoxon_test(differences: Sequence[float]) -> float:
    """P value of Wilcoxon's signed-rank test, which needs a difference that is not zero."""
    from scipy import stats

    return float(stats.wilcoxon(differences).pvalue) if any(differences) else 1.0
