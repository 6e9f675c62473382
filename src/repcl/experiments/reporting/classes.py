"""The table of the classes that a method forgot most, and what it takes them for."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from repcl.evaluation import TestedExample, class_forgetting
from repcl.experiments.reporting.runs import MethodRuns
from repcl.experiments.reporting.table import Cell, Column, Row, Table, count, missing, number, word

WORST = 10


def forgotten_table(benchmark: str, method: MethodRuns) -> Table | None:
    """The worst classes, averaged over rounds; None where no predictions or no earlier accuracies exist."""
    drops: dict[str, list[float]] = {}
    guesses: dict[str, Counter[str]] = {}
    for run in method.runs:
        tested = run.tested()
        for label, drop in class_forgetting(tested).items():
            drops.setdefault(label, []).append(100 * drop)
            guesses.setdefault(label, Counter()).update(_last_guesses(label, tested))
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
        [[_row(label, drops[label], guesses[label]) for label in worst]],
    )


def _row(label: str, drops: Sequence[float], guesses: Counter[str]) -> Row:
    known = guesses.total()
    accuracy = 100 * guesses[label] / known
    mistakes = {guess: times for guess, times in guesses.items() if guess != label}
    return [word(label), number(fmean(drops)), number(accuracy), count(len(drops)), _mistake(mistakes, known)]


def _last_guesses(label: str, tested: Sequence[TestedExample]) -> Iterator[str]:
    """What the class's test texts are taken for in the end."""
    for example in tested:
        guess = example.predicted[-1]
        if example.label == label and guess is not None:
            yield guess


def _mistake(mistakes: Mapping[str, int], known: int) -> Cell:
    if not mistakes:
        return missing(2)
    most, times = min(mistakes.items(), key=lambda item: (-item[1], item[0]))
    share = 100 * times / known
    return Cell(f"{most} ({share:.0f}\u00a0%)", (most, share))
