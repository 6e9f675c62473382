"""Reads a user's data file into examples, and says what is wrong with a row that cannot be one."""

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from repcl.data.encodings import Note
from repcl.data.examples import SPANS, Example, InputKind, Span
from repcl.data.rows import Row, Wanted, read_rows
from repcl.errors import BadRows, InvalidData, listed, shortened

# A label names a class in tables and messages; what is longer is a text in the wrong column.
LONGEST_LABEL = 1000
COLUMNS_SHOWN = 20
BAD_ROWS_SHOWN = 20


class Read(NamedTuple):
    """What a row of a file became: its example, and all its cells."""

    example: Example
    cells: Mapping[str, object]


def read_examples(
    path: str | Path, *, text_column: str = "text", label_column: str = "label", note: Note | None = None
) -> list[Example]:
    """Read a CSV, TSV, JSONL, Parquet or Excel file; its columns tell sentences, relations and events apart.

    Args:
        path: of the file.
        text_column: the column with the texts.
        label_column: the column with the labels.
        note: hears of what is not the usual, as another encoding or separator; a warning if not given.
    """
    examples = list(
        iterate_examples(Path(path), text_column=text_column, label_column=label_column, note=note)
    )
    if not examples:
        raise _without_rows(path)
    return examples


def iterate_examples(
    path: Path, *, text_column: str, label_column: str | None, note: Note | None = None
) -> Iterator[Example]:
    """Stream a file's examples, its text never held twice; without `label_column` they have none."""
    wanted = wanted_columns(text_column, label_column, note=note)
    found = examples_of(str(path), read_rows(path, wanted), wanted, has_labels=label_column is not None)
    return (read.example for read in found)


def read_labeled(
    path: Path, *, text_column: str, label_column: str, note: Note | None = None, every_column: bool = False
) -> list[Read]:
    """Read a file as `read_examples` does, each example with the cells of its row."""
    wanted = wanted_columns(text_column, label_column, note=note, every_column=every_column)
    rows = list(examples_of(str(path), read_rows(path, wanted), wanted, has_labels=True))
    if not rows:
        raise _without_rows(path)
    return rows


def wanted_columns(
    text_column: str,
    label_column: str | None = None,
    *,
    note: Note | None = None,
    every_column: bool = False,
    blank_rows: bool = False,
) -> Wanted:
    """What a reader is asked for.

    Args:
        text_column: the column with the texts.
        label_column: the column with the labels, if they are read.
        note: hears of what is not the usual; a warning if not given.
        every_column: whether the values of other columns are needed too.
        blank_rows: whether every row gets an answer: then blank lines and empty texts count.
    """
    named = (text_column,) if label_column is None else (text_column, label_column)
    return Wanted((*named, *SPANS), note or _warn, every_column=every_column, blank_rows=blank_rows)


def examples_of(name: str, rows: Iterator[Row], wanted: Wanted, *, has_labels: bool) -> Iterator[Read]:
    """Turn rows into examples; those that cannot be used are counted to the end, and raised together.

    Args:
        name: of the file, for messages.
        rows: of the file.
        wanted: what its reader was asked for; with `blank_rows`, a text may be empty.
        has_labels: whether the second column wanted holds labels.
    """
    labels: dict[str, str] = {}  # one string object per class instead of one per row
    marks: tuple[str, ...] | None = None
    problems: list[str] = []
    count = 0
    for row in rows:
        if marks is None and row.cells:
            _require_columns(name, row, wanted.columns[: 1 + has_labels])
            marks = _marks(name, row.cells)
        try:
            example = _example(row, wanted, marks or (), labels if has_labels else None)
        except _BadRow as problem:
            count += 1
            if count <= BAD_ROWS_SHOWN:
                problems.append(str(problem))
        else:
            if not count:
                yield Read(example, row.cells)
    if count:
        raise BadRows(name, problems, count)


def _without_rows(path: str | Path) -> InvalidData:
    return InvalidData(f"{path} has no data rows: give at least one row with a text and a label.")


class _BadRow(Exception):
    """What is wrong with a row, beginning with where it stands."""


def _example(row: Row, wanted: Wanted, marks: Sequence[str], labels: dict[str, str] | None) -> Example:
    """The example of a row; equal labels, if they are read, are one object, which `labels` holds."""
    if row.problem is not None:
        raise _BadRow(row.problem)
    text = _text(row, wanted.columns[0], may_be_empty=wanted.blank_rows) if row.cells else ""
    label = _label(row, wanted.columns[1]) if labels is not None else ""
    for mark in SPANS:
        if row.cells.get(mark) is not None and mark not in marks:
            raise _BadRow(
                f"{row.location} has {mark!r}, the first row does not: write it in every row, or in none."
            )
    spans = {mark: _span(row, mark, text) for mark in marks} if text else {}
    return Example(text, labels.setdefault(label, label) if labels is not None else "", **spans)


def input_kind(example: Example) -> InputKind:
    """The kind of input that an example's marked spans make it."""
    if example.head and example.tail:
        return "relation"
    return "event" if example.trigger else "sentence"


def _marks(name: str, cells: Mapping[str, object]) -> tuple[str, ...]:
    """The columns with spans, which tell relations, events and sentences apart."""
    found = [mark for mark in SPANS if mark in cells]
    if "trigger" in found and len(found) > 1:
        raise InvalidData(
            f"{name} has the columns {listed(found, 3)}: relations have head and tail, events a trigger; "
            "remove or rename the others."
        )
    if ("head" in cells) != ("tail" in cells):
        there, lacking = ("head", "tail") if "head" in cells else ("tail", "head")
        raise InvalidData(
            f"{name} has a column {there!r} but no column {lacking!r}: "
            "relations need both, each a pair [start, end] of characters."
        )
    if "head" in cells:
        return "head", "tail"
    return ("trigger",) if "trigger" in cells else ()


def _require_columns(name: str, row: Row, columns: Sequence[str]) -> None:
    """Refuse a file whose first row lacks a column: then the column has another name."""
    options = dict(zip(("--text-column", "--label-column"), columns, strict=False))
    lacking = {option: column for option, column in options.items() if column not in row.cells}
    if lacking:
        in_python = " and ".join(f"{option[2:].replace('-', '_')}=" for option in lacking)
        raise InvalidData(
            f"{name}, {_lacking(row, *lacking.values())}: name the right column with "
            f"{' and '.join(lacking)} (in Python {in_python}), or rename it in the file."
        )


def _lacking(row: Row, *columns: str) -> str:
    found = listed(map(shortened, row.cells), COLUMNS_SHOWN) or "none"
    names = " and no column ".join(map(shortened, columns))
    return f"{row.location} has no column {names} (columns found: {found})"


def _cell(row: Row, column: str) -> object:
    if column not in row.cells:
        raise _BadRow(f"{_lacking(row, column)}: write it in every row, or in none.")
    return row.cells[column]


def _text(row: Row, column: str, *, may_be_empty: bool) -> str:
    text = _cell(row, column)
    if may_be_empty and (text is None or (isinstance(text, str) and not text.strip())):
        return ""
    if not isinstance(text, str) or not text.strip():
        raise _bad_cell(row, column, "a text that is not empty", "write one, or remove the row")
    if not _is_unicode(text):
        raise _bad_cell(row, column, "valid Unicode", "remove the half of a surrogate pair")
    return text


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _label(row: Row, column: str) -> str:
    value = _cell(row, column)
    is_label = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    label = str(value) if is_label else ""
    if not label.strip() or label.lower() == "nan":
        raise _bad_cell(row, column, "a label (text or a number)", "write one, or remove the row")
    if len(label) > LONGEST_LABEL:
        expected = f"a label of at most {LONGEST_LABEL:,} characters"
        raise _bad_cell(row, column, expected, "say which column holds the labels, or shorten it")
    if "\0" in label or not _is_unicode(label):
        raise _bad_cell(row, column, "valid Unicode", "remove the half of a surrogate pair, or the NUL")
    return label


def _span(row: Row, column: str, text: str) -> Span:
    pair = _cell(row, column)
    if isinstance(pair, str):
        pair = _parsed(pair)
    if not (isinstance(pair, list) and len(pair) == 2 and all(type(bound) is int for bound in pair)):
        raise _bad_cell(row, column, "a pair [start, end] of whole numbers", "write it as [0, 5]")
    start, end = pair
    if not 0 <= start < end <= len(text):
        expected = f"0 <= start < end <= {len(text)}, the length of the text"
        raise _bad_cell(row, column, expected, "count in characters from 0, the end not included")
    return Span(start, end)


def _parsed(cell: str) -> object:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return None


def _bad_cell(row: Row, column: str, expected: str, remedy: str) -> _BadRow:
    found = shortened(row.cells[column])
    return _BadRow(
        f"{row.location}, column {shortened(column)}: expected {expected}, found {found}; {remedy}."
    )


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=2)
