"""What duets and the first session add to the learners that were here before them, round by round.

    python benchmarks/duet_gains.py

Printed as in docs/beyond.md, from `results/fifty`. A learner is compared with the best of its rivals in the
same round. McNemar's exact test says what is chance among the texts of the round.
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
    """A learner, the rivals that the best one is taken of, and the points wanted."""

    learner: str
    title: str
    rivals: Sequence[str]
    wanted: float


COMPARISONS = (
    Comparison("duet", "the best strict method", STRICT, 3.0),
    Comparison("duet@statistics", "the best earlier learner", (*STRICT, *WITH_STATISTICS), 3.0),
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
            number(asked.wanted, 0),
        ]
        for asked, own in zip(COMPARISONS, found, strict=True)
    ]
    columns = [Column("points of final accuracy", is_text=True)]
    columns += [Column(f"round {number_of_round}") for number_of_round in rounds]
    columns += [Column("mean"), Column("wanted")]
    return Table(f"{runs.name}-gains", runs.name, columns, [rows])


def gains(runs: BenchmarkRuns, asked: Comparison) -> Mapping[int, Gain]:
    """What a learner gains in each round that it shares with a rival."""
    found: dict[int, Gain] = {}
    for number_of_round, own in _by_round(runs, asked.learner).items():
        rivals = {name: _by_round(runs, name).get(number_of_round) for name in asked.rivals}
        known = {name: run for name, run in rivals.items() if run is not None}
        if known:
            best = max(known, key=lambda name: known[name].result.final_accuracy)
            points = 100 * (own.result.final_accuracy - known[best].result.final_accuracy)
            compared = compare_answers(own.last_answers, known[best].last_answers)
            found[number_of_round] = Gain(best, points, compared.p_value if compared else None)
    return found


def _by_round(runs: BenchmarkRuns, name: str) -> dict[int, Run]:
    method = runs.find(name)
    return {} if method is None else {run.result.round: run for run in method.runs}


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
