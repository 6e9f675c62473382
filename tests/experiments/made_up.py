"""Made-up runs on disk: predictions invented here, everything else computed by the real code."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from repcl.evaluation import TestedExample, score_predictions
from repcl.experiments.reports.grouping import BenchmarkRuns, load_runs
from repcl.experiments.reports.table import Table
from repcl.experiments.runs.result import DataSummary, MemorySummary, Result, Seconds
from repcl.experiments.runs.store import PREDICTIONS, RunStore
from repcl.experiments.runs.wrong_texts import WrongText
from repcl.methods import METHODS


def invent_predictions(
    classes: Sequence[Sequence[str]], *, round: int, keeps: float, texts: int = 5, only_last: bool = False
) -> list[TestedExample]:
    """Predictions that start right and go wrong with time; `keeps` is the share still right after a task."""
    draw = Random(f"{round} {keeps}")
    tested = []
    for task, labels in enumerate(classes):
        for label in labels:
            for number in range(texts):
                predicted: list[str | None] = []
                guess = label
                for after in range(task, len(classes)):
                    if draw.random() > keeps:
                        guess = draw.choice(classes[after])
                    predicted.append(None if only_last and after + 1 < len(classes) else guess)
                name = f"{task}-{label}-{number}"
                tested.append(TestedExample(name, task, label, tuple(predicted)))
    return tested


def write_run(
    out: Path,
    row: str,
    tested: Sequence[TestedExample],
    *,
    classes: Sequence[Sequence[str]],
    benchmark: str = "demo",
    round: int = 0,
    encoder: str = "minilm-l6",
    complete: bool = True,
    capped: bool = False,
    statistics_bytes: int = 0,
    settings: dict[str, object] | None = None,
    preset: str = "cpu",
    seconds: Seconds | None = None,
    processor: str | None = None,
    file_hash: str = "0" * 64,
    wrong: Sequence[WrongText] = (),
) -> Result:
    """A result with its predictions, laid out as `run_experiment` does."""
    method, _, variant = row.partition("@")
    scores = score_predictions(tested, len(classes))
    known = METHODS[method].Settings().model_dump() if method in METHODS else {}
    result = Result(
        method=method,
        variant=variant or None,
        benchmark=benchmark,
        encoder=encoder,
        round=round,
        preset=preset,
        settings=known | (settings or {}),
        fingerprint=f"{benchmark}-{row}-{round}",
        command=f"repcl bench --benchmark {benchmark} --method {row}",
        versions={"python": "3.11.9", "repcl": "0.1.0", "torch": "2.13.0"},
        threads=1,
        processor=processor,
        data=DataSummary(
            files={"train.csv": file_hash},
            train=20 * sum(map(len, classes)),
            test=len(tested),
            classes=sum(map(len, classes)),
            complete=complete,
            capped=capped,
            notes=[],
        ),
        class_order=[list(task) for task in classes],
        accuracy_matrix=scores.accuracy_matrix.as_lists(),
        accuracy_after_task=list(scores.accuracy_after_task),
        final_accuracy=scores.final_accuracy,
        forgetting_rate=scores.forgetting_rate,
        average_incremental_accuracy=scores.average_incremental_accuracy,
        backward_transfer=scores.backward_transfer,
        forgetting_rate_f1=scores.forgetting_rate_f1,
        predictions=PREDICTIONS,
        seconds=seconds
        or Seconds(
            tasks=[{"initial learning": 30.0, "memory update": 2.0, "evaluation": 1.0} for _ in classes],
            all=33.0 * len(classes),
        ),
        memory=MemorySummary(
            exemplars_per_class={label: 10 for task in classes for label in task},
            text_bytes=4_000,
            statistics_bytes=statistics_bytes,
        ),
    )
    RunStore(out).folder(benchmark, row, round).finish(result, tested, wrong)
    return result


def class_names(tasks: int, each: int) -> list[list[str]]:
    return [[f"class_{task}_{number}" for number in range(each)] for task in range(tasks)]


def write_grid(
    out: Path,
    rows: dict[str, float],
    *,
    benchmark: str = "demo",
    tasks: int = 3,
    each: int = 2,
    rounds: int = 2,
) -> None:
    """Several methods with how much each keeps; `joint` is evaluated at the end only."""
    classes = class_names(tasks, each)
    for row, keeps in rows.items():
        for round in range(rounds):
            tested = invent_predictions(classes, round=round, keeps=keeps, only_last=row == "joint")
            write_run(out, row, tested, classes=classes, benchmark=benchmark, round=round)


def two_tasks(*right: list[bool]) -> list[TestedExample]:
    """Two tasks of one class; for each text of the first task whether it was right after both tasks."""
    first = [
        TestedExample(f"a{n}", 0, "old", tuple("old" if one else "new" for one in texts))
        for n, texts in enumerate(right)
    ]
    return [*first, *(TestedExample(f"b{n}", 1, "new", ("new",)) for n in range(len(right)))]


def only(folder: Path) -> BenchmarkRuns:
    """The runs of a folder with a single benchmark."""
    (runs,) = load_runs(folder)
    return runs


def cells(table: Table, row: str) -> dict[str, str]:
    """What people read in a row, by the title of the column."""
    (found,) = (line for line in table.rows if line[0].text == row)
    return {column.title: cell.text for column, cell in zip(table.columns, found, strict=True)}
