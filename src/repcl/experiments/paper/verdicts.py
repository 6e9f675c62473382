"""What the paper claims about its tables and figures, and whether our runs bear it out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from repcl.evaluation import Comparison, TextComparison, holm, paired_comparison
from repcl.evaluation.statistics import ALPHA, MOST_ROUNDS
from repcl.experiments.paper.information import (
    Quantity,
    estimated_by_round,
    info_nce_by_round,
    variance_by_round,
)
from repcl.experiments.paper.numbers import Paper
from repcl.experiments.reports.grouping import BenchmarkRuns, MethodRuns
from repcl.experiments.reports.significance import compare_methods, compare_texts
from repcl.experiments.reports.table import Column, Row, Table, word

Pair = tuple[str, str]
Compare = Callable[[MethodRuns, MethodRuns], Comparison]

OPEN = "cannot be told"
LESS = "points of forgetting avoided"
FEWEST_ROUNDS = 3  # of a t test
DIGITS = {"points": 1, LESS: 1, "nats": 2, "in all": 3}
_OTHER_FORM = "kcn@paired"  # the paper has one row for KCN, and does not say in which form
_BASELINES = ("idbr", "kcn", _OTHER_FORM, "kdrk", "emar", "rp_cre", "crl", "crecl", "fea", "aca")
NOTES = [
    "Holds: every pair of rows that the claim names differs as claimed, in paired t tests over the rounds "
    "that both have, at 5 %, corrected by Holm's rule for the number of pairs of the claim that were run. "
    "Does not hold: a pair differs the other way. Otherwise it cannot be told. Where a number of rounds "
    "is given, that many would show a difference of the size seen in 80 of 100 cases, at 5 % divided by "
    "the number of tests.",
    "Two rows that share fewer than three rounds are compared text by text in the first of them, by "
    "McNemar's exact test: a t test over two rounds shows next to nothing. McNemar's test speaks for the "
    "class order and the random seed of that round alone, and so does a verdict that rests on it.",
]


@dataclass(frozen=True)
class Claim:
    """Something that the paper says about one of its tables or figures.

    Attributes:
        source: the table or figure.
        text: the claim.
        pairs: rows of which the first is to be above the second.
        compare: how far above it is, over rounds; more than zero speaks for the claim.
        unit: of the difference.
    """

    source: str
    text: str
    pairs: tuple[Pair, ...]
    compare: Compare
    unit: str = "points"

    @property
    def is_about_ends(self) -> bool:
        """Whether it is about what all tasks lead to, of which a row that stopped earlier says nothing."""
        return self.compare in (_accuracy, _average, _forgetting)

    @property
    def is_accuracy(self) -> bool:
        """Whether it is about final accuracy, of which single texts can tell."""
        return self.compare is _accuracy


@dataclass(frozen=True)
class _Tested:
    """A pair of rows with their comparison and its p value, corrected for the number of pairs.

    Attributes:
        texts: a round and how their answers differ in it; None where rounds are compared.
    """

    pair: Pair
    found: Comparison
    texts: tuple[int, TextComparison] | None
    p: float | None

    @property
    def is_shown(self) -> bool:
        """Whether the two differ beyond chance."""
        return self.p is not None and self.p < ALPHA

    @property
    def difference(self) -> float:
        """How far the first is above the second."""
        return (self.found.difference if self.texts is None else self.texts[1].difference) or 0.0


class _Missing(NamedTuple):
    """The rows of a claim that are not compared.

    Attributes:
        needed: not run, although the paper has them on this benchmark.
        optional: not run, on data that the paper does not have.
        unlike: run, but in no round that another row has, on other data, or on fewer tasks.
    """

    needed: list[str]
    optional: list[str]
    unlike: list[str]

    @property
    def leaves_open(self) -> bool:
        """Whether a claim cannot hold without them."""
        return bool(self.needed or self.unlike)


def verdict_table(recipes: Sequence[str], benchmarks: Sequence[BenchmarkRuns], paper: Paper) -> Table | None:
    """A verdict on each claim behind recipes, for each benchmark that can say anything; None without any."""
    claims = [claim for recipe in recipes for claim in CLAIMS[recipe]]
    judged = [judge(claim, runs, paper) for claim in claims for runs in benchmarks]
    rows = [row for row in judged if row is not None]
    if not rows:
        return None
    titles = ("in the paper", "claim", "benchmark", "verdict", "why")
    columns = [Column(title, is_text=True) for title in titles]
    return Table(
        f"paper-{'-'.join(recipes)}-verdicts",
        "What the paper claims, and what our runs say",
        columns,
        [rows],
        NOTES,
    )


def judge(claim: Claim, runs: BenchmarkRuns, paper: Paper) -> Row | None:
    """The verdict on a claim on one benchmark; None where no pair of its rows was run."""
    tested, missing = _test(claim, runs, paper)
    if not tested:
        return None
    verdict, why = _verdict(tested, missing, claim.unit)
    return [word(claim.source), word(claim.text), word(runs.name), word(verdict), word(why)]


def judge_in_brief(claim: Claim, runs: BenchmarkRuns, paper: Paper) -> str | None:
    """The same as a sentence; of a claim that stays open it counts the comparisons that speak for it."""
    tested, missing = _test(claim, runs, paper)
    if not tested:
        return None
    verdict, why = _verdict(tested, missing, claim.unit)
    if verdict == OPEN:
        agreeing = [one for one in tested if one.difference > 0]
        shown = [f"{one.pair[1]}{_in_round([one])}" for one in agreeing if one.is_shown]
        named = f" ({', '.join(shown)})" if shown else ""
        why = (
            f"The difference is as claimed in {len(agreeing)} of {len(tested)} comparisons, "
            f"beyond chance in {len(shown)}{named}."
        )
    return f"\u201c{claim.text.removesuffix('.')}\u201d **{verdict}** here. {why}"


def _test(claim: Claim, runs: BenchmarkRuns, paper: Paper) -> tuple[list[_Tested], _Missing]:
    """The pairs that were run, compared, and the rows that were not."""
    pairs = [pair for pair in claim.pairs if all(_is_meant(row, runs, paper) for row in pair)]
    compared = [
        _compare(claim, first, second)
        for high, low in pairs
        if (first := runs.find(high)) is not None
        and (second := runs.find(low)) is not None
        and (first.tasks == second.tasks == runs.tasks or not claim.is_about_ends)
    ]
    known = [one for one in compared if one.found.rounds]
    corrected = holm([one.p for one in known])
    tested = [replace(one, p=p) for one, p in zip(known, corrected, strict=True)]
    seen = {row for one in known for row in one.pair}
    not_run = [row for row in dict.fromkeys(row for pair in pairs for row in pair) if runs.find(row) is None]
    run = [pair for pair in pairs if not set(pair) & set(not_run)]
    unlike = [row for row in dict.fromkeys(row for pair in run for row in pair) if row not in seen]
    if runs.name in paper.main:
        return tested, _Missing(not_run, [], unlike)
    return tested, _Missing([], not_run, unlike)


def _compare(claim: Claim, first: MethodRuns, second: MethodRuns) -> _Tested:
    """Two rows over their rounds, or where these are few over the texts of the first."""
    found = claim.compare(first, second)
    is_few = found.rounds < FEWEST_ROUNDS
    texts = compare_texts(first, second) if claim.is_accuracy and is_few else None
    p = found.t_p if texts is None else texts[1].p_value
    return _Tested((first.name, second.name), found, texts, p)


def _is_meant(row: str, runs: BenchmarkRuns, paper: Paper) -> bool:
    """Whether the paper has a row on a benchmark, variants aside; on other data every row is meant."""
    if row == _OTHER_FORM:
        return runs.find(row) is not None
    if runs.name not in paper.main:
        return True
    return row.partition("@")[0] in (*paper.main[runs.name], "joint")


def _verdict(tested: Sequence[_Tested], missing: _Missing, unit: str) -> tuple[str, str]:
    """What the tests say, and why. A verdict that rests on the texts of one round says which."""
    against = [one for one in tested if one.is_shown and one.difference < 0]
    if against:
        # what holds over rounds weighs more than what is seen in one
        worst = min(against, key=lambda one: (one.texts is not None, one.difference))
        return f"does not hold{_in_round([worst])}", f"{_told(worst, unit)}."
    if not missing.leaves_open and all(one.is_shown for one in tested):
        closest = min(tested, key=lambda one: one.difference)
        why = f"{'' if len(tested) == 1 else 'Smallest difference: '}{_told(closest, unit)}."
        if not missing.optional:
            return f"holds{_in_round(tested)}", why
        return f"holds for the rows run{_in_round(tested)}", f"{why} {_not_compared(missing)}"
    return OPEN, _open(tested, missing._replace(optional=[]), unit)


def _in_round(tested: Sequence[_Tested]) -> str:
    rounds = sorted({one.texts[0] for one in tested if one.texts is not None})
    return f" in round {' and '.join(map(str, rounds))}" if rounds else ""


def _open(tested: Sequence[_Tested], missing: _Missing, unit: str) -> str:
    """What is missing: tests that show nothing, with the rounds that would, single rounds, rows not run."""
    sentences = []
    known = [one for one in tested if one.p is not None]
    undecided = [one for one in known if not one.is_shown]
    if undecided:
        told = [f"{_told(one, unit)}{_needed(one, len(known))}" for one in undecided]
        sentences.append(f"{'; '.join(told)}.")
    single = [one for one in tested if one.p is None]
    for high in dict.fromkeys(one.pair[0] for one in single):
        against = [
            (f"{one.difference:+.{DIGITS[unit]}f}", f"against {one.pair[1]}")
            for one in single
            if one.pair[0] == high
        ]
        (first, low), *others = against
        listed = ", ".join([f"{first} {unit} {low}", *map(" ".join, others)])
        sentences.append(f"No test is possible: {high} {listed}.")
    return " ".join([*sentences, _not_compared(missing)]).strip()


def _not_compared(missing: _Missing) -> str:
    not_run = [*missing.needed, *missing.optional]
    told = [f"Not run: {', '.join(not_run)}."] if not_run else []
    told += [f"No round in common, or not alike: {', '.join(missing.unlike)}."] if missing.unlike else []
    return " ".join(told)


def _told(one: _Tested, unit: str) -> str:
    high, low = one.pair
    p = "" if one.p is None else ", p < 0.001" if one.p < 0.001 else f", p = {one.p:.3f}"
    digits = DIGITS[unit]
    over = f"{one.found.rounds} rounds"
    if one.texts is not None:
        round, found = one.texts
        over = f"the {found.texts:,} texts of round {round}"
    return f"{high} {one.difference:+.{digits}f} {unit} against {low} over {over}{p}"


def _needed(one: _Tested, tests: int) -> str:
    """How many rounds would show the difference in one of so many tests.

    Texts of one round do not tell how rounds scatter.
    """
    if one.texts is not None:
        return ""
    needed = one.found.rounds_needed(tests)
    return f", {needed} rounds needed" if needed is not None else f", over {MOST_ROUNDS} rounds needed"


def _accuracy(first: MethodRuns, second: MethodRuns) -> Comparison:
    return compare_methods(first, second)


def _average(first: MethodRuns, second: MethodRuns) -> Comparison:
    return compare_methods(first, second, "average_incremental_accuracy")


def _forgetting(first: MethodRuns, second: MethodRuns) -> Comparison:
    """Less is better, so the second comes first."""
    return compare_methods(second, first, "forgetting_rate")


def _information(quantity: Quantity) -> Compare:
    """By InfoNCE, which has no outliers, where both were estimated in the same way."""

    def compare(first: MethodRuns, second: MethodRuns) -> Comparison:
        ours, theirs = info_nce_by_round(first, quantity), info_nce_by_round(second, quantity)
        ways, others = estimated_by_round(first), estimated_by_round(second)
        ours = {round: value for round, value in ours.items() if ways[round] == others.get(round)}
        if quantity == "I(Z;Y)":  # of eighty classes there is more to know than of eight
            alike = {run.result.round for run, _ in first.comparable_runs(second)}
            ours = {round: value for round, value in ours.items() if round in alike}
        return paired_comparison(ours, theirs)

    return compare


def _variance(first: MethodRuns, second: MethodRuns) -> Comparison:
    return paired_comparison(variance_by_round(first), variance_by_round(second))


def _above(high: str, *lows: str) -> tuple[Pair, ...]:
    return tuple((high, low) for low in lows)


CLAIMS: Mapping[str, Sequence[Claim]] = {
    "main": (
        Claim("main table", "RepCL ends above every baseline.", _above("repcl", *_BASELINES), _accuracy),
        Claim(
            "main table",
            "RepCL forgets less than every baseline.",
            _above("repcl", *_BASELINES),
            _forgetting,
            LESS,
        ),
    ),
    "full": (
        Claim(
            "table of all tasks",
            "RepCL is above every baseline on average over the tasks.",
            _above("repcl", *_BASELINES),
            _average,
        ),
    ),
    "ablation": (
        Claim(
            "ablation table",
            "Each of RepCL's three parts helps.",
            _above("repcl", "repcl@no-con", "repcl@no-xmlm", "repcl@no-adv"),
            _accuracy,
        ),
        Claim(
            "ablation table",
            "The generative part helps more than the contrastive one.",
            _above("repcl@no-con", "repcl@no-xmlm"),
            _accuracy,
        ),
        Claim("ablation table", "XMLM is better than plain MLM.", _above("repcl", "repcl@mlm"), _accuracy),
    ),
    "memory": (
        Claim(
            "table of memory sizes",
            "RepCL is above FEA and ACA with 5, 10 and 20 exemplars.",
            tuple(
                (f"repcl{size}", f"{other}{size}")
                for size in ("@memory-5", "", "@memory-20")
                for other in ("fea", "aca")
            ),
            _accuracy,
        ),
        Claim(
            "table of memory sizes",
            "RepCL with 10 exemplars is above FEA and ACA with 20.",
            _above("repcl", "fea@memory-20", "aca@memory-20"),
            _accuracy,
        ),
    ),
    "bias": tuple(
        Claim(
            "table of mutual information",
            f"Supervised learning has more {quantity} than CRL, CRECL and FEA.",
            _above("joint", "crl", "crecl", "fea"),
            _information(quantity),
            "nats",
        )
        for quantity in ("I(X1;Z1)", "I(Z;Y)")
    ),
    "representation": (
        Claim(
            "table of representations",
            "RepCL and FEA with InfoMax keep more of the input than FEA.",
            (("repcl", "fea"), ("fea@infomax", "fea")),
            _information("I(X1;Z1)"),
            "nats",
        ),
        Claim(
            "table of representations and its fitting curves",
            "Texts of a class share more in RepCL than in FEA, with or without InfoMax.",
            _above("repcl", "fea", "fea@infomax"),
            _information("I(Z1;Z1+)"),
            "nats",
        ),
        Claim(
            "table of representations",
            "RepCL ends above FEA, with or without InfoMax.",
            _above("repcl", "fea", "fea@infomax"),
            _accuracy,
        ),
        Claim(
            "figure of eigenvalues",
            "The first 100 eigenvalues are higher in RepCL than in FEA, with or without InfoMax.",
            _above("repcl", "fea", "fea@infomax"),
            _variance,
            "in all",
        ),
    ),
}
