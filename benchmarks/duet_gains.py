"""What duets and the first session add to the learners that were here before them, round by round.

    python benchmarks/duet_gains.py

Printed as in docs/beyond.md, from `results/fifty`. A learner is compared with the best of its rivals in the
same round. McNemar's exact test says what is chance among the texts of the round; its p values are not
corrected for their number, nor for the rival being the best of several.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from repcl.evaluation import compare_answers
from repcl.experiments.reports.formats import to_markdown
from repcl.experiments.reports.grouping import BenchmarkRuns, Run, load_runs
from repcl.experiments.reports.table import Cell, Column, Row, Table, missing, number, probability, word

RESULTS = Path(__file__).parents[1] / "results"
STRICT = ("repcl", "fea", "kdrk", "kcn", "kcn@paired", "sequential")
WITH_STATISTICS = ("crl", "emar", "rp_cre", "crecl", "idbr", "aca", "ncm", "lda", "refit", "instant")


@dataclass(frozen=True)
class Comparison:
    """A learner, the rivals that the best one is taken of, and the points wanted, if any were."""

    learner: str
    title: str
    rivals: Sequence[str]
    wanted: float | None = None


COMPARISONS = (
    Comparison("duet", "the best strict method", STRICT, 3.0),
    Comparison("duet@statistics", "the best earlier learner", (*STRICT, *WITH_STATISTICS), 3.0),
    Comparison("duet@statistics", "instant@vote, its frozen part", ("instant@vote",)),
    Comparison("first_session", "instant", ("instant",), 2.0),
)


@dataclass(frozen=True)
class Gain:
    """By how many points a learner is above its best rival; p is None where answers are not stored."""

    rival: str
    points: float
    p: float | None


def gains_table(runs: BenchmarkRuns) -> Table:
    """A row for each comparison, a column for each round."""
    found = [gains(runs, one) for one in COMPARISONS]
    rounds = sorted({number_of_round for one in found for number_of_round in one})
    rows: list[Row] = [
        [
            word(f"{asked.learner} − {asked.title}"),
            *(_cell(own.get(number_of_round)) for number_of_round in rounds),
            _signed(mean(gain.points for gain in own.values())) if own else missing(),
            number(asked.wanted, digits=0),
        ]
        for asked, own in zip(COMPARISONS, found, strict=True)
    ]
    columns = [Column("points of final accuracy", is_text=True)]
    columns += [Column(f"round {number_of_round}") for number_of_round in rounds]
    columns += [Column("mean"), Column("wanted")]
    return Table(f"{runs.name}-gains", runs.name, columns, [rows])


def gains(runs: BenchmarkRuns, asked: Comparison) -> Mapping[int, Gain]:
    """What a learner gains in each round that it shares with a rival."""
    learner = runs.find(asked.learner)
    if learner is None:
        return {}
    rivals = [method for name in asked.rivals if (method := runs.find(name)) is not None]
    pairs: dict[int, list[tuple[Run, Run]]] = {}
    for rival in rivals:
        for own, its in learner.comparable_runs(rival):
            pairs.setdefault(own.result.round, []).append((own, its))
    return {number_of_round: _gain(of_round) for number_of_round, of_round in sorted(pairs.items())}


def _gain(pairs: Sequence[tuple[Run, Run]]) -> Gain:
    """Of a learner, the first of each pair, over the best of its rivals."""
    own, best = max(pairs, key=lambda pair: pair[1].result.final_accuracy)
    points = 100 * (own.result.final_accuracy - best.result.final_accuracy)
    compared = compare_answers(own.last_answers, best.last_answers)
    return Gain(best.result.row, points, compared.p_value if compared else None)


def _cell(gain: Gain | None) -> Cell:
    if gain is None:
        return missing()
    text = probability(gain.p).text
    chance = text.replace("<", "p < ") if text.startswith("<") else f"p = {text}"
    return Cell(f"{gain.points:+.1f} ({gain.rival}; {chance})", (gain.points,))


def _signed(points: float) -> Cell:
    return Cell(f"{points:+.1f}", (points,))


if __name__ == "__main__":
    for benchmark in load_runs(RESULTS / "fifty"):
        if benchmark.find("first_session"):
            print(to_markdown(gains_table(benchmark)))
