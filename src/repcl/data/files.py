"""Reads a user's data file into examples, and says what is wrong with a row that cannot be one."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from repcl.data.examples import Example, InputKind, Span
from repcl.data.rows import Row, read_rows
from repcl.errors import InvalidData, listed, shortened

# A label names a class in tables and messages; what is longer is a text in the wrong column.
LONGEST_LABEL = 1000
COLUMNS_SHOWN = 20


def read_examples(
    path: str | Path, *, text_column: str = "text", label_column: str = "label"
) -> list[Example]:
    """Read a CSV, TSV, JSONL or Parquet file; its columns tell sentences, relations and events apart."""
    examples = list(iterate_examples(Path(path), text_column=text_column, label_column=label_column))
    if not examples:
        raise InvalidData(f"{path} has no data rows: give at least one row with a text and a label.")
    return examples


def iterate_examples(path: Path, *, text_column: str, label_column: str | None) -> Iterator[Example]:
    """Stream a file's examples, its text never held twice; without `label_column` they have none."""
    named = (text_column,) if label_column is None else (text_column, label_column)
    rows = read_rows(path, (*named, "head", "tail", "trigger"))
    labels: dict[str, str] = {}  # one string object per class instead of one per row
    marks: tuple[str, ...] | None = None
    for row in rows:
        if marks is None:
            marks = _marks(path, row.cells)
        text = _text(path, row, text_column)
        label = "" if label_column is None else _label(path, row, label_column)
        spans = {mark: _span(path, row, mark, text) for mark in marks}
        yield Example(text, labels.setdefault(label, label), **spans)


def input_kind(example: Example) -> InputKind:
    """The kind of input that an example's marked spans make it."""
    if example.head and example.tail:
        return "relation"
    return "event" if example.trigger else "sentence"


def _marks(path: Path, cells: Mapping[str, object]) -> tuple[str, ...]:
    """The columns with spans, which tell relations, events and sentences apart."""
    if ("head" in cells) != ("tail" in cells):
        found, lacking = ("head", "tail") if "head" in cells else ("tail", "head")
        raise InvalidData(
            f"{path} has a column {found!r} but no column {lacking!r}: "
            "relations need both, each a pair [start, end] of characters."
        )
    if "head" in cells:
        return "head", "tail"
    return ("trigger",) if "trigger" in cells else ()


def _cell(path: Path, row: Row, column: str) -> object:
    if column not in row.cells:
        found = listed(map(shortened, row.cells), COLUMNS_SHOWN) or "none"
        raise InvalidData(
            f"{path}, {row.location} has no column {shortened(column)} (columns found: {found}): "
            "rename the column, or say which columns hold text and label."
        )
    return row.cells[column]


def _text(path: Path, row: Row, column: str) -> str:
    text = _cell(path, row, column)
    if not isinstance(text, str) or not text.strip():
        raise _bad_cell(path, row, column, "a text that is not empty", "write one, or remove the row")
    if not _is_unicode(text):
        raise _bad_cell(path, row, column, "valid Unicode", "remove the half of a surrogate pair")
    return text


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _label(path: Path, row: Row, column: str) -> str:
    value = _cell(path, row, column)
    is_label = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    label = str(value) if is_label else ""
    if not label.strip() or label.lower() == "nan":
        raise _bad_cell(path, row, column, "a label (text or a number)", "write one, or remove the row")
    if len(label) > LONGEST_LABEL:
        expected = f"a label of at most {LONGEST_LABEL:,} characters"
        raise _bad_cell(path, row, column, expected, "say which column holds the labels, or shorten it")
    if "\0" in label or not _is_unicode(label):
        raise _bad_cell(path, row, column, "valid Unicode", "remove the half of a surrogate pair, or the NUL")
    return label


def _span(path: Path, row: Row, column: str, text: str) -> Span:
    pair = _cell(path, row, column)
    if isinstance(pair, str):
        pair = _parsed(pair)
    if not (isinstance(pair, list) and len(pair) == 2 and all(type(bound) is int for bound in pair)):
        raise _bad_cell(path, row, column, "a pair [start, end] of whole numbers", "write it as [0, 5]")
    start, end = pair
    if not 0 <= start < end <= len(text):
        expected = f"0 <= start < end <= {len(text)}, the length of the text"
        raise _bad_cell(path, row, column, expected, "count in characters from 0, the end not included")
    return Span(start, end)


def _parsed(cell: str) -> object:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return None


def _bad_cell(path: Path, row: Row, column: str, expected: str, remedy: str) -> InvalidData:
    found = shortened(row.cells[column])
    return InvalidData(
        f"{path}, {row.location}, column {shortened(column)}: expected {expected}, found {found}; {remedy}."
    )
