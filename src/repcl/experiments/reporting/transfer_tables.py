"""The table of knowledge transfer: what learning tasks does for later ones and to earlier ones."""

from collections.abc import Callable, Sequence
from statistics import fmean

from repcl.analysis.transfer import SHOTS
from repcl.evaluation import summarize
from repcl.experiments.reporting.information_cells import known_rounds, spread_cell
from repcl.experiments.reporting.runs import BenchmarkRuns
from repcl.experiments.reporting.scores import mixed_notes
from repcl.experiments.reporting.table import Cell, Column, Table, word
from repcl.experiments.representations.analysis import Representations

Question = Callable[[Representations], float | None]


def transfer_tables(recipe: str, runs: BenchmarkRuns, rows: Sequence[str]) -> list[Table]:
    """Means over rounds of every row that was analyzed; no table without any."""
    # a method that is trained only at the end has nothing between tasks
    known = {
        name: found for name in rows if (found := [one for one in known_rounds(runs, name) if one.movements])
    }
    if not known:
        return []
    questions = _questions()
    columns = [
        Column("method", is_text=True),
        *(Column(title, (title, f"{title} sd")) for title in questions),
    ]
    body = [
        [word(name), *(_cell(rounds, question, digits) for question, digits in questions.values())]
        for name, rounds in known.items()
    ]
    title = f"{runs.name}: transfer between tasks, points, and drift"
    notes = [*_NOTES, *mixed_notes([method for name in known if (method := runs.find(name))])]
    return [Table(f"paper-{recipe}-transfer-{runs.name}", title, columns, [body], notes)]


_NOTES = [
    "Forward: accuracy of a probe that learns the next task from so many texts a class, just before that "
    "task, minus the same probe on the untouched encoder; below 0 is representation bias.",
    "Backward: change of old tasks since they were learned, when the task of each text is given.",
    "Drift: 1 - cosine of old centroids before and after a task, mean over tasks.",
]


def _questions() -> dict[str, tuple[Question, int]]:
    """Titles, with what is asked and how many digits are shown."""
    return {
        **{f"forward, {shots}-shot": (_forward(shots), 1) for shots in SHOTS},
        "backward, task given": (_backward, 1),
        "drift": (_drift, 3),
    }


def _cell(rounds: Sequence[Representations], question: Question, digits: int) -> Cell:
    values = [value for one in rounds if (value := question(one)) is not None]
    return spread_cell(summarize(values) if values else None, digits)


def _forward(shots: int) -> Question:
    return lambda known: _points(known.forward_transfer.get(shots))


def _backward(known: Representations) -> float | None:
    return _points(known.masked_backward_transfer)


def _drift(known: Representations) -> float | None:
    return fmean(one.turned for one in known.movements) if known.movements else None


def _points(value: float | None) -> float | None:
    return None if value is None else 100 * value
