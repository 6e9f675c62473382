"""`repcl report`: a folder of results as one page, with its tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from repcl.cli.console import make_console
from repcl.cli.tables import print_results
from repcl.errors import MissingData, UnknownName
from repcl.experiments import find_results, verify_results, write_report


def report(
    folder: Annotated[Path, typer.Argument(help="The --out of `repcl bench` or `repcl reproduce`.")],
    against: Annotated[
        str | None, typer.Option(help="The method to test others against; default: repcl, else the best.")
    ] = None,
) -> None:
    """Write report.html, tables and figures of finished runs."""
    results = find_results(folder)
    if not results:
        raise MissingData(f"No finished run in {folder}; `repcl bench --out {folder} ...` makes some.")
    if against is not None and against not in {result.row for result in results}:
        raise UnknownName("method in this folder", against, sorted({result.row for result in results}))
    verify_results(folder)
    console = make_console()
    print_results(results, console)
    console.print(f"Report: {write_report(folder, against=against)}", highlight=False, soft_wrap=True)
