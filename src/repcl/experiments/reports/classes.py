"""What became of the classes: which are taken for which, the accuracy of each, and when each was learned."""

from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from statistics import fmean

from repcl.experiments.reports.grouping import BenchmarkRuns, MethodRuns
from repcl.experiments.reports.table import Column, Row, Table, count, number, word
from repcl.experiments.runs.wrong_texts import LONGEST, MOST_TEXTS

MOST_CONFUSED = 10

Guesses = Mapping[str, Counter[str]]
"""For each class, what its test texts were taken for in the end."""


def all_guesses(method: MethodRuns) -> Guesses:
    """The answers in the end, of all rounds together."""
    guesses: dict[str, Counter[str]] = {}
    for run in method.runs:
        for label, found in run.last_guesses.items():
            guesses.setdefault(label, Counter()).update(found)
    return guesses


def most_confused(guesses: Guesses) -> list[str]:
    """Classes of the pairs that are confused most often, for their size; none where nothing is wrong."""
    pairs = sorted(
        (-times / found.total(), label, guess)
        for label, found in guesses.items()
        for guess, times in found.items()
        if guess != label
    )
    names = dict.fromkeys(name for _, *pair in pairs for name in pair)
    return list(names)[:MOST_CONFUSED]


def every_class_table(runs: BenchmarkRuns) -> Table | None:
    """The final accuracy of each class with each method, hardest classes first; None without predictions."""
    guesses = {method.name: all_guesses(method) for method in runs.methods}
    known = {name: found for name, found in guesses.items() if found}
    if not known:
        return None
    labels = sorted({label for found in known.values() for label in found})
    rows = {label: [_percent(found, label) for found in known.values()] for label in labels}
    ranked = sorted(labels, key=lambda label: (fmean(one for one in rows[label] if one is not None), label))
    return Table(
        f"{runs.name}-every-class",
        f"{runs.name}: final accuracy of every class, percent, hardest first",
        [Column("class", is_text=True), *map(Column, known)],
        [[[word(label), *map(number, rows[label])] for label in ranked]],
        ["Over the test texts of all rounds. Hardest is the lowest mean over methods."],
        is_sortable=True,
    )


def order_table(runs: BenchmarkRuns) -> Table:
    """The classes of each task, round by round."""
    orders = {result.round: result.class_order for result in runs.results}
    groups: list[list[Row]] = [
        [
            [count(round), count(task), word(", ".join(labels))]
            for task, labels in enumerate(orders[round], start=1)
        ]
        for round in sorted(orders)
    ]
    columns = [Column("round"), Column("task"), Column("classes", is_text=True)]
    notes = (
        [f"Methods had other orders in {_listed(mixed)}; one is shown."] if (mixed := _mixed(runs)) else []
    )
    return Table(f"{runs.name}-class-order", f"{runs.name}: classes of each task", columns, groups, notes)


def wrong_texts_table(benchmark: str, method: MethodRuns) -> Table | None:
    """Texts that a method's first round answers wrong in the end; None where none are kept."""
    run = method.runs[0]
    if not run.wrong_texts:
        return None
    rows = [
        [word(one.label), word(one.answer), count(one.task + 1), word(one.text)] for one in run.wrong_texts
    ]
    columns = [Column("class", is_text=True), Column("answer", is_text=True), Column("task")]
    return Table(
        f"{benchmark}-{method.name}-wrong-texts",
        f"{method.name} on {benchmark}, round {run.result.round}: texts with a wrong answer in the end",
        [*columns, Column("text", is_text=True)],
        [rows],
        [f"Those of the last task come first; at most {MOST_TEXTS} are kept, and {LONGEST} letters of each."],
    )


def _mixed(runs: BenchmarkRuns) -> list[int]:
    """The rounds in which methods learned different classes."""
    results = sorted(runs.results, key=lambda result: result.round)
    return [
        round
        for round, same in groupby(results, key=lambda result: result.round)
        if len({str(result.class_order) for result in same}) > 1
    ]


def _listed(rounds: list[int]) -> str:
    return f"round{'s' * (len(rounds) > 1)} {', '.join(map(str, rounds))}"


def _percent(guesses: Guesses, label: str) -> float | None:
    found = guesses.get(label)
    return 100 * found[label] / found.total() if found else None
