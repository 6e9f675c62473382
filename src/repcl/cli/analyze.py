"""`repcl analyze`: what the representations of finished runs hold, and what passes from task to task."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from repcl.analysis.estimator_settings import AUTHORS, EstimatorSettings, make_estimator
from repcl.cli.console import make_console
from repcl.cli.failures import end_with, forget_failures, list_failures
from repcl.cli.tables import print_table
from repcl.experiments.analyses import AnalysisRequest, analyze_all, estimator_of, run_folders
from repcl.experiments.failure import Failure
from repcl.experiments.kept import keep_again
from repcl.experiments.reporting.analysis_figures import run_drawings
from repcl.experiments.reporting.analysis_overview import overview_table
from repcl.experiments.reporting.analysis_tables import run_tables
from repcl.experiments.reporting.table import Table
from repcl.experiments.result import RESULT, Result, read_result
from repcl.experiments.run_analysis import ANALYSIS, AUTHORS_ANALYSIS, RunAnalysis


def analyze(
    run: Annotated[
        Path, typer.Argument(help="OUT for all runs, or a folder in it down to OUT/BENCHMARK/METHOD/round-R.")
    ],
    critics: Annotated[int | None, typer.Option(min=1, help="Fits of each estimate.")] = None,
    steps: Annotated[int | None, typer.Option(min=25, help="Most steps of a fit.")] = None,
    authors: Annotated[
        bool, typer.Option("--authors", help="The estimator of the authors' code, which over-estimates.")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Runs at a time; default: one a core.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Analyze again what was analyzed.")] = False,
) -> None:
    """Mutual information, spectrum, drift and transfer of finished runs."""
    console = make_console()
    file = AUTHORS_ANALYSIS if authors else ANALYSIS
    results = {folder: read_result(folder / RESULT) for folder in run_folders(run)}
    requests = [
        AnalysisRequest(folder, _estimator(result, critics, steps, authors), fresh, file)
        for folder, result in results.items()
    ]
    analyses, failures = perform_analyses(requests, console, workers=workers)
    prefix, figures = Path(file).stem, 0
    for folder, analysis in analyses.items():
        for drawing in run_drawings(results[folder].row, analysis, prefix):
            drawing.save(folder)
            figures += 1
        _say_what_is_missing(results[folder], analysis, folder, console)
    if len(analyses) == 1:
        [(folder, analysis)] = analyses.items()
        print_tables(run_tables(analysis), console)
    elif analyses:
        print_tables([overview_table([(results[folder], one) for folder, one in analyses.items()])], console)
    if analyses:
        written = f"{file} and {prefix}-*.svg, *.png" if figures else file
        console.print(f"Written: {written} beside each result.", highlight=False)
    list_failures(failures, console)
    end_with(failures)


def perform_analyses(
    requests: Sequence[AnalysisRequest], console: Console, *, workers: int | None
) -> tuple[dict[Path, RunAnalysis], list[Failure]]:
    """Analyze runs, with a line for each as it is done; what was found and what failed, in their order."""
    done: dict[Path, RunAnalysis | Failure] = {}
    for request, outcome in analyze_all(requests, workers=workers or os.cpu_count() or 1):
        done[request.folder] = outcome
        word = "Could not analyze" if isinstance(outcome, Failure) else "Analyzed"
        line = f"{word} {len(done)} of {len(requests)}: {request.folder}"
        console.print(line, highlight=False, soft_wrap=True)
    ordered = [(request, done[request.folder]) for request in requests]
    forget_failures(ordered)
    analyses = {request.folder: found for request, found in ordered if isinstance(found, RunAnalysis)}
    return analyses, [found for _, found in ordered if isinstance(found, Failure)]


def print_tables(tables: Sequence[Table], console: Console) -> None:
    """Tables as text; empty ones are left out."""
    for table in tables:
        if table.rows:
            titles = [column.title for column in table.columns]
            print_table(console, table.title, titles, [[cell.text for cell in row] for row in table.rows])
            for note in table.notes:
                console.print(note, highlight=False)


def _estimator(result: Result, critics: int | None, steps: int | None, authors: bool) -> EstimatorSettings:
    chosen = AUTHORS if authors else estimator_of(result)
    given = {"critics": critics or chosen.critics, "steps": steps or chosen.steps}
    return make_estimator(asdict(chosen) | given)


def _say_what_is_missing(result: Result, analysis: RunAnalysis, folder: Path, console: Console) -> None:
    if analysis.representations is not None:
        return
    console.print(
        f"{folder} kept no representations: no mutual information, spectrum, drift or transfer. "
        f"To keep them: {keep_again(result)}",
        style="yellow",
        highlight=False,
        soft_wrap=True,
    )
