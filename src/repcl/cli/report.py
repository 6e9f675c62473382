"""`repcl report`: a folder of results as one page, with its tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from repcl.cli.tables import make_console, print_results
from repcl.errors import MissingData
from repcl.experiments import find_results, write_report


def report(folder: Annotated[Path, typer.Argument(help="The --out of `repcl bench`.")]) -> None:
    """Write report.html, tables and figures of finished runs."""
    results = find_results(folder)
    if not results:
        raise MissingData(f"No finished run in {folder}; `repcl bench --out {folder} ...` makes some.")
    console = make_console()
    print_results(results, console)
    console.print(f"Report: {write_report(folder)}", highlight=False, soft_wrap=True)
