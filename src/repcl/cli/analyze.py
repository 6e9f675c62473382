"""`repcl analyze`: what the representations of finished runs hold, and what passes from task to task."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from repcl.cli.console import make_console
from repcl.cli.failures import end_with, forget_failures, list_failures

if TYPE_CHECKING:
    from repcl.analysis.estimator_settings import EstimatorSettings
    from repcl.experiments.reports.table import Table
    from repcl.experiments.representations.analysis import AnalysisSpec, RunAnalysis
    from repcl.experiments.runs.observers import Event
    from repcl.experiments.runs.pool import Failure
    from repcl.experiments.runs.result import Result
    from repcl.experiments.runs.store import StoredRun


def analyze(
    run: Annotated[
        Path,
        typer.Argument(
            help="The --out folder for all runs, or a folder in it, down to OUT/BENCHMARK/METHOD/round-R."
        ),
    ],
    critics: Annotated[
        int | None, typer.Option(min=1, help="How many fits per estimate; their median counts.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=25, help="Maximum number of steps per fit.")] = None,
    authors: Annotated[
        bool, typer.Option("--authors", help="Use the estimator of the authors' code, which overestimates.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many runs at a time; default: one per core.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Redo finished analyses.")] = False,
) -> None:
    """Measure mutual information, spectrum, drift and transfer in finished runs."""
    from repcl.experiments.reports.analysis_tables import analyses_table, run_tables
    from repcl.experiments.reports.figures import run_drawings
    from repcl.experiments.representations.analysis import AUTHORS_ANALYSIS, AnalysisSpec
    from repcl.experiments.runs.store import ANALYSIS, RunStore

    console = make_console()
    file = AUTHORS_ANALYSIS if authors else ANALYSIS
    specs = [
        AnalysisSpec(one, _estimator(one.result, critics, steps, authors), fresh, file)
        for one in RunStore(run).some_runs("repcl bench --save-representations ...")
    ]
    analyses, failures = perform_analyses(specs, console, workers=workers)
    prefix, figures = Path(file).stem, 0
    for one, analysis in analyses:
        for drawing in run_drawings(one.result.row, analysis, prefix):
            drawing.save(one.folder)
            figures += 1
        _say_what_is_missing(one, analysis, console)
    if len(analyses) == 1:
        [(_, analysis)] = analyses
        print_tables(run_tables(analysis), console)
    elif analyses:
        print_tables([analyses_table([(one.result, analysis) for one, analysis in analyses])], console)
    if analyses:
        written = f"{file} and {prefix}-*.svg, *.png" if figures else file
        console.print(f"Written: {written} beside each result.", highlight=False)
    list_failures(failures, console)
    end_with(failures)


def perform_analyses(
    specs: "Sequence[AnalysisSpec]", console: Console, *, workers: int | None
) -> "tuple[list[tuple[StoredRun, RunAnalysis]], list[Failure]]":
    """Analyze runs, with a line for each as it is done; what was found and what failed, in their order."""
    from repcl.experiments.representations.analysis import RunAnalysis, perform_analysis
    from repcl.experiments.runs.observers import Ended
    from repcl.experiments.runs.pool import Failure, perform_all

    done: list[int] = []

    def hear(index: int, event: "Event") -> None:
        if isinstance(event, Ended):
            done.append(index)
            word = "Could not analyze" if isinstance(event.outcome, Failure) else "Analyzed"
            line = f"{word} {len(done)} of {len(specs)}: {specs[index].run.folder}"
            console.print(line, highlight=False, soft_wrap=True)

    outcomes = perform_all(specs, perform_analysis, workers=workers or os.cpu_count() or 1, listener=hear)
    found = list(zip(specs, outcomes, strict=True))
    forget_failures(found)
    analyses = [(spec.run, outcome) for spec, outcome in found if isinstance(outcome, RunAnalysis)]
    return analyses, [outcome for outcome in outcomes if isinstance(outcome, Failure)]


def print_tables(tables: "Sequence[Table]", console: Console) -> None:
    """Tables as text; empty ones are left out."""
    from repcl.cli.tables import print_table

    for table in tables:
        if table.rows:
            titles = [column.title for column in table.columns]
            print_table(console, table.title, titles, [[cell.text for cell in row] for row in table.rows])
            for note in table.notes:
                console.print(note, highlight=False)


def _estimator(
    result: "Result", critics: int | None, steps: int | None, authors: bool
) -> "EstimatorSettings":
    from repcl.analysis.estimator_settings import AUTHORS, make_estimator
    from repcl.experiments.representations.analysis import estimator_of

    chosen = AUTHORS if authors else estimator_of(result)
    given = {"critics": critics or chosen.critics, "steps": steps or chosen.steps}
    return make_estimator(asdict(chosen) | given)


def _say_what_is_missing(run: "StoredRun", analysis: "RunAnalysis", console: Console) -> None:
    from repcl.experiments.representations.read import how_to_save

    if analysis.representations is not None:
        return
    console.print(
        f"{run.folder} saved no representations: no mutual information, spectrum, drift or transfer; "
        f"{how_to_save(run.result)}",
        style="yellow",
        highlight=False,
        soft_wrap=True,
    )
