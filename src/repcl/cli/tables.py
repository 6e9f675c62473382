"""Tables for people: fitted to a terminal, full width where the output is a file or a pipe."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from repcl.errors import counted as counted
from repcl.errors import printable

if TYPE_CHECKING:
    from repcl.experiments.runs.result import Result


WIDE_ENOUGH = 110
"""Columns of a terminal that shows the accuracy after each task."""
WIDEST_NAME = 30
"""Names longer than that are broken where a terminal is too narrow for them."""

Cell = str | tuple[str, ...]
"""A line, or several of them below each other."""


def print_table(console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """A plain table; columns of numbers stand at the right, columns of words at the left.

    Cells are shown as they are: what looks like markup in them is someone's text, and so are line breaks and
    characters that would steer the terminal, which are escaped.
    """
    lines = [list(row) for row in rows]
    table = Table(title=Text(printable(title), style="bold"), title_justify="left")
    widths = [max((_width(line[index]) for line in lines), default=0) for index in range(len(columns))]
    wanted = sum(max(len(column), width) + 3 for column, width in zip(columns, widths, strict=True)) + 1
    for index, (column, widest) in enumerate(zip(columns, widths, strict=True)):
        are_numbers = index > 0 and all(_is_number(line[index]) for line in lines)
        is_narrow = are_numbers or (index == 0 and widest <= WIDEST_NAME)
        is_tight = are_numbers and wanted > console.width and len(column) > widest
        heading = column.replace(" ", "\n") if is_tight else column
        table.add_column(
            Text("\n".join(map(printable, heading.split("\n")))),
            justify="right" if are_numbers else "left",
            no_wrap=is_narrow,
            # a number that is cut is another number
            min_width=max(widest, *map(len, heading.split())) if are_numbers and column else None,
            overflow="fold",
        )
    for line in lines:
        table.add_row(*map(_shown, line))
    console.print(table)


def print_results(
    results: "Sequence[Result]", console: Console, skipped: Sequence[tuple[str, str]] = ()
) -> None:
    """Per benchmark: accuracy of each method after each task, at the end, and forgetting, in percent.

    A narrow terminal has no room for the tasks.

    Args:
        results: of the runs.
        console: where to print.
        skipped: benchmarks and rows without a run, for the method does not take the input.
    """
    reached: dict[str, list[Result]] = {benchmark: [] for benchmark, _ in skipped}
    for result in results:
        reached.setdefault(result.benchmark, []).append(result)
    for benchmark, of_benchmark in sorted(reached.items()):
        tasks = max((len(result.accuracy_after_task) for result in of_benchmark), default=0)
        is_wide = console.width >= WIDE_ENOUGH
        after_tasks = [f"T{task + 1}" for task in range(tasks)] if is_wide else []
        columns = ["method", "rounds", *after_tasks, "accuracy", "forgetting"]
        title = f"{benchmark}, percent" + _marks(of_benchmark)
        rows = [
            [row, *_cells([result for result in of_benchmark if result.row == row], len(after_tasks))]
            for row in dict.fromkeys(result.row for result in of_benchmark)
        ]
        without = dict.fromkeys(row for name, row in skipped if name == benchmark)
        rows += [[row, *["–"] * (len(columns) - 1)] for row in without]
        print_table(console, title, columns, rows)


def percent(values: Sequence[float | None]) -> str:
    """Mean over rounds in percent, with the standard deviation where there are several."""
    from repcl.evaluation import summarize_percents

    summary = summarize_percents(values)
    if summary is None:
        return "–"
    spread = f" ± {summary.sd:.1f}" if summary.sd is not None else ""
    return f"{summary.mean:.1f}{spread}"


def _shown(cell: Cell) -> Text:
    return Text("\n".join(map(printable, _lines(cell))))


def _width(cell: Cell) -> int:
    return max(map(len, _lines(cell)), default=0)


def _lines(cell: Cell) -> tuple[str, ...]:
    return (cell,) if isinstance(cell, str) else cell


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, str) and (cell[:1].isdigit() or cell[:1] in ("+", "-", "–", "−", ""))


def _cells(results: "Sequence[Result]", tasks: int) -> list[str]:
    """Cells of a row; rounds with fewer tasks than others count where they have a value."""
    from repcl.evaluation import summarize_tasks

    after = summarize_tasks([result.accuracy_after_task for result in results])[:tasks]
    means = ["–" if summary is None else f"{summary.mean:.1f}" for summary in after]
    means += ["–"] * (tasks - len(after))
    final = percent([result.final_accuracy for result in results])
    return [str(len(results)), *means, final, percent([result.forgetting_rate for result in results])]


def _marks(results: "Sequence[Result]") -> str:
    incomplete = any(not result.data.complete for result in results)
    capped = any(result.data.capped for result in results)
    return " (incomplete data)" * incomplete + " (capped: not comparable)" * capped
