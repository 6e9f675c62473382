"""The table that sets each method between the two bounds in one round, its place in the paper beside it."""

from collections.abc import Mapping, Sequence

from repcl.experiments.paper import Paper
from repcl.experiments.reporting.runs import BenchmarkRuns, MethodRuns
from repcl.experiments.reporting.table import Cell, Column, Row, Table, missing, number, word

LOWER, UPPER = "sequential", "joint"
ABOVE_LOWER, ABOVE_UPPER = 20.0, 1.5


def bounds_table(runs: BenchmarkRuns, paper: Paper) -> Table | None:
    """The first round that both bounds have; none without them.

    A method that learns at all lies well above fine-tuning without memory, and by more than chance above
    training on everything only if something is wrong.
    """
    lower, upper = (_accuracies(runs.find(name)) for name in (LOWER, UPPER))
    rounds = sorted(lower.keys() & upper.keys())
    if not rounds:
        return None
    chosen = rounds[0]
    lowest, highest = lower[chosen] + ABOVE_LOWER, upper[chosen] + ABOVE_UPPER
    reached = {
        method.name: accuracies[chosen]
        for method in runs.methods
        if chosen in (accuracies := _accuracies(method)) and method.name not in (LOWER, UPPER)
    }
    published = {row: accuracy for row, (accuracy, _) in paper.main.get(runs.name, {}).items()}
    common = [row for row in reached if row in published]
    ours, theirs = _places(reached, common), _places(published, common)

    def row(name: str) -> Row:
        accuracy = reached[name]
        return [
            word(name),
            number(accuracy),
            word("yes" if lowest <= accuracy <= highest else "no"),
            _place(ours, name),
            _place(theirs, name),
            number(published.get(name)),
        ]

    return Table(
        f"{runs.name}-bounds",
        f"{runs.name}: between the bounds, round {chosen}",
        [
            Column("method", is_text=True),
            Column("accuracy"),
            Column("within", is_text=True),
            Column("place"),
            Column("paper's place"),
            Column("paper Acc"),
        ],
        [[row(name) for name in sorted(reached, key=lambda name: -reached[name])]],
        [
            f"In this round {LOWER} reached {lower[chosen]:.1f} and {UPPER} {upper[chosen]:.1f}.",
            f"Within means from {lowest:.1f} ({LOWER} + {ABOVE_LOWER:.0f}) to {highest:.1f} "
            f"({UPPER} + {ABOVE_UPPER}).",
            "Places are among the methods that both sides have.",
        ],
    )


def _accuracies(method: MethodRuns | None) -> dict[int, float]:
    return {} if method is None else method.percents(lambda result: result.final_accuracy)


def _places(accuracies: Mapping[str, float], rows: Sequence[str]) -> dict[str, int]:
    ordered = sorted(rows, key=lambda row: -accuracies[row])
    return {row: place for place, row in enumerate(ordered, start=1)}


def _place(places: Mapping[str, int], name: str) -> Cell:
    return Cell(str(places[name]), (places[name],)) if name in places else missing()
