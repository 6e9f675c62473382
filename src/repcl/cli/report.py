"""`repcl report`: a folder of results as one page, with its tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from repcl.cli.console import make_console


def report(
    folder: Annotated[Path, typer.Argument(help="The --out folder of `repcl bench` or `repcl reproduce`.")],
    against: Annotated[
        str | None,
        typer.Option(help="Method to test the others against; default: repcl, else the best."),
    ] = None,
) -> None:
    """Write report.html, tables and figures for finished runs."""
    from repcl.cli.tables import print_results
    from repcl.experiments.reports.grouping import load_runs
    from repcl.experiments.reports.write import write_report
    from repcl.experiments.runs.store import RunStore

    store = RunStore(folder)
    benchmarks = load_runs(store)
    page = write_report(folder, benchmarks, against=against)
    console = make_console()
    print_results([result for runs in benchmarks for result in runs.results], console)
    for note in store.notes():
        console.print(note, style="yellow", highlight=False)
    console.print(f"Report: {page}", highlight=False, soft_wrap=True)
