"""Rows with the answers beside them, as a file that a user names: all their other columns are kept."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from repcl.cli.outputs import require_writable, write_named
from repcl.errors import InvalidData, shortened

SEPARATORS = {".csv": ",", ".tsv": "\t"}
JSONL = ".jsonl"
MOST_COLUMNS = 16_384

Cells = Mapping[str, object]


def require_table(path: Path, option: str, *, force: bool, sources: tuple[Path | None, ...]) -> None:
    """Refuse a file that could not be written, or is of no kind that is written here, before any work."""
    if path.suffix.lower() not in (*SEPARATORS, JSONL):
        endings = ", ".join([*SEPARATORS, JSONL])
        raise InvalidData(f"Expected {option} to end in {endings}, found {shortened(str(path))}.")
    require_writable(path, option, force=force, sources=sources)


def require_room(rows: Iterable[Cells], added: Sequence[str], option: str) -> None:
    """Refuse rows that have a column of the name of an answer: one of both would be lost."""
    names = set(added)
    for cells in rows:
        taken = names & cells.keys()
        if taken:
            raise InvalidData(
                f"There is a column {min(taken)!r} in the data already, which {option} adds: rename it first."
            )


def write_table(
    path: Path, rows: Sequence[Cells], option: str, *, force: bool, columns: Sequence[str] | None = None
) -> None:
    """Write rows as CSV, TSV or JSONL, in UTF-8; which, the file's ending says.

    Args:
        path: of the file.
        rows: cells by column.
        option: that the file was named with.
        force: whether a file that exists may be replaced.
        columns: of a table; those that the rows have if not given.
    """
    ending = path.suffix.lower()
    if ending == JSONL:
        text = _jsonl(rows)
    else:
        named = columns or list(dict.fromkeys(name for cells in rows for name in cells))
        text = _csv(rows, named, SEPARATORS[ending])
    write_named(path, text, option, force=force)


def _jsonl(rows: Sequence[Cells]) -> str:
    return "".join(f"{json.dumps(dict(cells), ensure_ascii=False, default=str)}\n" for cells in rows)


def _csv(rows: Sequence[Cells], columns: Sequence[str], separator: str) -> str:
    if len(columns) > MOST_COLUMNS:
        raise InvalidData(
            f"The rows have {len(columns):,} columns together, where a table has at most {MOST_COLUMNS:,}: "
            f"write a {JSONL} file."
        )
    text = io.StringIO(newline="")
    table = csv.writer(text, delimiter=separator)
    table.writerow(columns)
    table.writerows([_cell(cells.get(name)) for name in columns] for cells in rows)
    return text.getvalue()


def _cell(value: object) -> str:
    """A value as a cell of CSV has it: lists and objects as JSON, nothing as an empty cell."""
    if value is None:
        return ""
    if isinstance(value, list | dict | bool):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
