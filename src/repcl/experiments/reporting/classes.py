"""The table of the classes that a method forgot most, and what it takes them for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from repcl.evaluation import TestedExample, class_forgetting
from repcl.experiments.reporting.runs import MethodRuns
from repcl.experiments.reporting.table import Cell, Column, Row, Table, count, missing, number, word

WORST = 10


def forgotten_table(benchmark: str, method: MethodRuns) -> Table | None:
    """The worst classes, averaged over rounds; None where no predictions or no earlier accuracies exist."""
    rounds = [run.tested() for run in method.runs]
    drops: dict[str, list[float]] = {}
    for tested in rounds:
        for label, drop in class_forgetting(tested).items():
            drops.setdefault(label, []).append(100 * drop)
    if not drops:
        return None
    worst = sorted(drops, key=lambda label: (-fmean(drops[label]), label))[:WORST]
    columns = [
        Column("class", is_text=True),
        Column("lost", ("points forgotten",)),
        Column("now", ("accuracy now",)),
        Column("rounds"),
        Column("taken for", ("taken for", "share of its texts in percent"), is_text=True),
    ]
    return Table(
        f"{benchmark}-{method.name}-classes",
        f"{method.name} on {benchmark}: the classes that lost most, in points",
        columns,
        [[_row(label, drops[label], rounds) for label in worst]],
    )


def _row(label: str, drops: Sequence[float], rounds: Iterable[Sequence[TestedExample]]) -> Row:
    guesses = Counter(_last_guesses(label, rounds))
    known = sum(guesses.values())
    accuracy = 100 * guesses.pop(label, 0) / known
    return [word(label), number(fmean(drops)), number(accuracy), count(len(drops)), _mistake(guesses, known)]


def _last_guesses(label: str, rounds: Iterable[Sequence[TestedExample]]) -> Iterator[str]:
    """What the class's test texts are taken for in the end."""
    for tested in rounds:
        for example in tested:
            guess = example.predicted[-1]
            if example.label == label and guess is not None:
                yield guess


def _mistake(guesses: Counter[str], known: int) -> Cell:
    if not guesses:
        return missing(2)
    most, times = min(guesses.items(), key=lambda item: (-item[1], item[0]))
    share = 100 * times / known
    return Cell(f"{most} ({share:.0f}\u00a0%)", (most, share))
