"""`repcl report`: a folder of results as one page, with its tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from repcl.cli.console import make_console
from repcl.cli.tables import print_results
from repcl.errors import UnknownName
from repcl.experiments import RunStore
from repcl.experiments.report import write_report


def report(
    folder: Annotated[Path, typer.Argument(help="The --out of `repcl bench` or `repcl reproduce`.")],
    against: Annotated[
        str | None, typer.Option(help="The method to test others against; default: repcl, else the best.")
    ] = None,
) -> None:
    """Write report.html, tables and figures of finished runs."""
    store = RunStore(folder)
    results = [run.result for run in store.some_runs(f"repcl bench --out {folder} ...")]
    if against is not None and against not in {result.row for result in results}:
        raise UnknownName("method in this folder", against, sorted({result.row for result in results}))
    store.verify()
    console = make_console()
    print_results(results, console)
    console.print(f"Report: {write_report(folder, against=against)}", highlight=False, soft_wrap=True)
