"""`repcl data get` and `repcl data check`: fetch a benchmark's original files, and say what is there."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from repcl.errors import UnknownName

if TYPE_CHECKING:
    from repcl.benchmarks.base import Benchmark
    from repcl.benchmarks.check import CheckResult

data_app = typer.Typer(help="Download and check the benchmarks' original files.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A name from `repcl list benchmarks`.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        help="Folder with one subfolder per benchmark; default: REPCL_DATA, else your cache folder."
    ),
]


@data_app.command("get")
def get_command(name: Name, data_dir: DataDir = None) -> None:
    """Download a benchmark's original files from where they are published."""
    from repcl.benchmarks import BENCHMARKS

    if name not in BENCHMARKS:
        raise UnknownName("benchmark", name, BENCHMARKS)
    benchmark = BENCHMARKS[name]
    console = _console()
    _print_source(console, benchmark)
    folder = _fetch_with_bars(console, benchmark, data_dir)
    console.print(f"{name} is in {folder}")


@data_app.command("check")
def check_command(name: Name, data_dir: DataDir = None) -> None:
    """Show which files are there, and how many examples each class has; exit code 2 if a file is missing."""
    from repcl.benchmarks.check import check

    result = check(name, data_dir)
    console = _console()
    _print_source(console, result.benchmark)
    console.print(_file_table(result))
    if result.classes:
        console.print(_class_table(result))
    for note in result.notes:
        console.print(note, soft_wrap=True)
    console.print("complete: yes" if result.complete else "complete: no")
    if any(file.size is None for file in result.files):
        raise typer.Exit(2)


def _console() -> Console:
    """A console that does not break lines where no one looks at a terminal."""
    width = None if sys.stdout.isatty() else 200
    return Console(width=width, markup=False, emoji=False, highlight=False)


def _print_source(console: Console, benchmark: "Benchmark") -> None:
    console.print(f"citation: {benchmark.citation}")
    console.print(f"source: {benchmark.source}")
    console.print(f"license: {benchmark.license}")


def _fetch_with_bars(console: Console, benchmark: "Benchmark", data_dir: Path | None) -> Path:
    from repcl.benchmarks.download import fetch

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as bars:
        ids = {file.name: bars.add_task(file.name, start=False, visible=False) for file in benchmark.files}

        def show(file_name: str, done: int, total: int | None) -> None:
            bars.start_task(ids[file_name])
            bars.update(ids[file_name], completed=done, total=total, visible=True)

        return fetch(benchmark, data_dir, show)


def _file_table(result: "CheckResult") -> Table:
    table = Table("file", "bytes", "hash of the public file", title=str(result.folder))
    for file in result.files:
        table.add_row(file.name, "missing" if file.size is None else f"{file.size:,}", file.digest)
    return table


def _class_table(result: "CheckResult") -> Table:
    train = sum(count.train for count in result.classes)
    test = sum(count.test for count in result.classes)
    table = Table(title="Round 0", show_footer=True)
    table.add_column("class", footer=f"{len(result.classes)} classes")
    table.add_column("train", footer=f"{train:,}", justify="right")
    table.add_column("test", footer=f"{test:,}", justify="right")
    for count in result.classes:
        table.add_row(count.label, f"{count.train:,}", f"{count.test:,}")
    return table
