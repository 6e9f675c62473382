"""Streams the rows of a CSV, JSONL, Parquet or Excel file, each with its location in the file."""

import csv
import io
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO

from repcl.data.encodings import Note, find_encoding
from repcl.errors import InvalidData, listed, shortened

__all__ = [
    "LONGEST_CELL",
    "LONGEST_ROW",
    "MOST_COLUMNS",
    "Row",
    "Wanted",
    "csv_rows",
    "jsonl_rows",
    "open_text",
    "read_rows",
    "require_file",
    "text_lines",
]

# Python's own limit, 131,072 characters, is below a long report; a cell beyond this one is a lost quote.
LONGEST_CELL = 10_000_000
# A row is held in memory; without a limit, a file without line breaks would be one row.
LONGEST_ROW = 2 * LONGEST_CELL
# As many as a spreadsheet has.
MOST_COLUMNS = 16_384
# No label, span or count needs more; reading a number takes quadratic time.
MOST_DIGITS = 400
LONGEST_HEADER = 1 << 20
# before the header
BLANK_LINES = 100

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class Row(NamedTuple):
    """One row's cells by column, and where it stands (both counted from 1, the row without the header).

    Attributes:
        number: of the row.
        line: of the file where the row ends, if the file has lines.
        cells: by column; none for a blank line.
        problem: why there are no cells, beginning with where; None if all is well.
    """

    number: int
    line: int | None
    cells: Mapping[str, object]
    problem: str | None = None

    @property
    def location(self) -> str:
        """Where to look in the file."""
        line = "" if self.line in (None, self.number) else f" (line {self.line})"
        return f"row {self.number}{line}"


@dataclass(frozen=True)
class Wanted:
    """What a reader is asked for.

    Attributes:
        columns: those of interest, the text's first; a row holds at least those of them that the file has.
        note: hears of what is not the usual: another encoding or separator.
        every_column: whether the values of all other columns are needed too.
        blank_rows: whether blank lines between rows count as rows, without cells.
    """

    columns: Sequence[str]
    note: Note
    every_column: bool = False
    blank_rows: bool = False


def read_rows(path: Path, wanted: Wanted) -> Iterator[Row]:
    """Stream the rows of a data file; the file's ending says how to read it.

    Args:
        path: a `.csv`, `.tsv`, `.jsonl`, `.parquet` or `.xlsx` file.
        wanted: what is asked for.
    """
    size = require_file(path)
    if path.suffix.lower() not in _READERS:
        raise InvalidData(
            f"{path} ends in {path.suffix!r}, which is not a kind of data file read here ({_endings()}): "
            "convert the file, or correct its ending."
        )
    if size == 0:
        raise InvalidData(f"{path} is empty: give a file with a text and a label in each row.")
    return _without_read_errors(path, _READERS[path.suffix.lower()](path, wanted))


def require_file(path: Path) -> int:
    """The size of a file that can be read, in bytes; a sentence about anything else a path may lead to."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidData(f"There is no file {path}: check the spelling, or give the full path.") from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if stat.S_ISDIR(found.st_mode):
        raise InvalidData(f"{path} is a folder: give the path of one data file ({_endings()}).")
    if not stat.S_ISREG(found.st_mode):
        raise InvalidData(f"{path} is a pipe or a device: save what it gives as a file first.")
    if not os.access(path, os.R_OK):
        raise InvalidData(f"{path} may not be read: change its permissions.")
    return found.st_size


def _without_read_errors(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    try:
        yield from rows
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InvalidData:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return InvalidData(f"{path} cannot be read ({reason}): check the path, or give another file.")


class Lines:
    """The lines of a file, refused as soon as one row takes more of them than any text needs."""

    def __init__(self, name: str, file: TextIO) -> None:
        self.name = name
        self.file = file
        self.number = 0
        self._length = 0

    def __iter__(self) -> Iterator[str]:
        while line := self.file.readline(LONGEST_ROW + 1):
            self.number += 1
            self._length += len(line)
            if self._length > LONGEST_ROW:
                raise InvalidData(
                    f"{self.name}, line {self.number}: a row has over {LONGEST_ROW:,} characters, with "
                    f"{shortened(line)} in it: look for a quote that is never closed, or missing line breaks."
                )
            yield line

    def end_row(self) -> None:
        """Count the next row anew."""
        self._length = 0


def csv_rows(data: BinaryIO, name: str, wanted: Wanted, *, usual: str = ",") -> Iterator[Row]:
    """Rows of CSV; the header tells which separator it has.

    Args:
        data: in bytes, to be read more than once; closed at the end.
        name: of the file, for messages.
        wanted: what is asked for.
        usual: the separator that is not worth a note.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    with open_text(data, name, wanted.note) as file, _decoding(name):
        separator = _separator(file, wanted.columns, usual)
        if separator != usual:
            wanted.note(f"{name} is read with {SEPARATORS[separator]} between its columns.")
        file.seek(0)
        lines = Lines(name, file)
        # strict, or a quote that is never closed would silently swallow all following rows
        reader = csv.reader(lines, delimiter=separator, strict=True)
        number = 0
        try:
            columns = next((cells for cells in reader if cells), [])
            check_columns(name, columns)
            for cells in reader:
                lines.end_row()
                # of one column, a blank line is a row whose only cell is empty
                if cells or (wanted.blank_rows and len(columns) == 1):
                    number += 1
                    yield _csv_row(number, reader.line_num, columns, cells)
        except csv.Error as error:
            yield Row(
                number + 1,
                reader.line_num,
                {},
                f"row {number + 1} (line {reader.line_num}) is not well-formed CSV ({error}): "
                "put texts with quotes or line breaks in quotes, and double the quotes inside.",
            )


def csv_columns(header: str, separator: str) -> list[str]:
    """The columns that a header names, if that is its separator; none if it cannot be read."""
    try:
        return next(csv.reader([header], delimiter=separator, strict=True), [])
    except csv.Error:
        return []


def open_text(data: BinaryIO, name: str, note: Note) -> TextIO:
    """A file's text from its start, in the encoding that it has, line breaks untouched."""
    encoding = find_encoding(data, name, note)
    data.seek(0)
    return io.TextIOWrapper(data, encoding=encoding, newline="")


@contextmanager
def _decoding(name: str) -> Iterator[None]:
    """UTF-16 is known by its mark only, and may turn out to be none."""
    try:
        yield
    except UnicodeError as error:
        raise InvalidData(f"{name} begins like UTF-16 but is not: save the file as UTF-8.") from error


def _separator(file: TextIO, wanted: Sequence[str], usual: str) -> str:
    """The separator under which the header has the columns wanted; else the one that finds most columns."""
    beginning = (file.readline(LONGEST_HEADER).strip("\r\n") for _ in range(BLANK_LINES))
    header = next(filter(None, beginning), "")
    found = {separator: csv_columns(header, separator) for separator in SEPARATORS}
    present = {separator: len(set(wanted[:2]) & set(names)) for separator, names in found.items()}

    def rank(separator: str) -> tuple[int, bool, int, bool]:
        is_usual = separator == usual
        return present[separator], is_usual and present[separator] > 0, len(found[separator]), is_usual

    return max(SEPARATORS, key=rank)


def check_columns(path: Path | str, columns: Sequence[str]) -> None:
    """Refuse columns of one name, for nobody can say which is meant, and more of them than make sense.

    Columns without a name may be many: spreadsheets write them at the end.
    """
    if len(columns) > MOST_COLUMNS:
        raise InvalidData(
            f"{path} has {len(columns):,} columns where at most {MOST_COLUMNS:,} are read: "
            "keep those with text and label."
        )
    twice = _repeated(columns)
    if twice:
        raise InvalidData(
            f"{path} has more than one column named {listed(map(shortened, twice), 5)}: "
            "rename or remove all but one."
        )


def _repeated(names: Sequence[str]) -> list[str]:
    """Names that stand more than once, in their order."""
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for name in names:
        if name and name in seen:
            repeated[name] = None
        seen.add(name)
    return list(repeated)


def _csv_row(number: int, line: int, columns: list[str], cells: list[str]) -> Row:
    if len(cells) > len(columns):
        problem = (
            f"row {number} has {len(cells)} cells where the header names {len(columns)} columns "
            f"(the last is {shortened(cells[-1])}): put texts that hold the separator in quotes."
        )
        return Row(number, line, dict(zip(columns, cells, strict=False)), problem)
    return Row(number, line, dict(zip_longest(columns, cells, fillvalue="")))


def jsonl_rows(data: BinaryIO, name: str, wanted: Wanted) -> Iterator[Row]:
    """Rows of JSONL: one object in each line.

    Args:
        data: in bytes, to be read more than once; closed at the end.
        name: of the file, for messages.
        wanted: what is asked for.
    """
    with open_text(data, name, wanted.note) as file, _decoding(name):
        lines = Lines(name, file)
        number = 0
        for line in lines:
            lines.end_row()
            if line.strip():
                number += 1
                yield _json_row(number, lines.number, line)
            elif wanted.blank_rows:
                number += 1
                yield Row(number, lines.number, {})


def text_lines(data: BinaryIO, name: str, note: Note) -> Iterator[str]:
    """The lines of a text file without their ends, blank ones too.

    Args:
        data: in bytes, to be read more than once; closed at the end.
        name: of the file, for messages.
        note: hears of another encoding than UTF-8.
    """
    with open_text(data, name, note) as file, _decoding(name):
        lines = Lines(name, file)
        for line in lines:
            lines.end_row()
            yield line.rstrip("\r\n")


def _json_row(number: int, line_number: int, line: str) -> Row:
    try:
        value = _DECODER.decode(line.strip())
    except (ValueError, RecursionError) as error:
        problem = (
            f"line {line_number} is not valid JSON ({error}; found {shortened(line.strip())}): "
            "write one JSON object per line."
        )
        return Row(number, line_number, {}, problem)
    if not isinstance(value, dict):
        problem = (
            f"line {line_number} holds {shortened(value)} where a JSON object was expected: "
            'write lines such as {"text": "...", "label": "..."}.'
        )
        return Row(number, line_number, {}, problem)
    return Row(number, line_number, value)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = _repeated([key for key, _ in pairs])
        raise ValueError(f"more than one entry named {listed(map(shortened, twice or ['']), 5)}")
    return found


def _whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole_number)


def _csv_file(path: Path, wanted: Wanted) -> Iterator[Row]:
    with path.open("rb") as data:
        yield from csv_rows(data, str(path), wanted)


def _tsv_file(path: Path, wanted: Wanted) -> Iterator[Row]:
    with path.open("rb") as data:
        yield from csv_rows(data, str(path), wanted, usual="\t")


def _jsonl_file(path: Path, wanted: Wanted) -> Iterator[Row]:
    with path.open("rb") as data:
        yield from jsonl_rows(data, str(path), wanted)


def _parquet_file(path: Path, wanted: Wanted) -> Iterator[Row]:
    try:
        from repcl.data.parquet_rows import parquet_rows  # with pyarrow, an extra
    except ImportError as error:
        raise InvalidData(f"Reading {path} needs pyarrow: pip install 'repcl[parquet]'.") from error
    return parquet_rows(path, wanted)


def _xlsx_file(path: Path, wanted: Wanted) -> Iterator[Row]:
    try:
        from repcl.data.xlsx_rows import xlsx_rows  # with openpyxl, an extra
    except ImportError as error:
        raise InvalidData(
            f"Reading {path} needs openpyxl: pip install 'repcl[xlsx]', or save the sheet as CSV."
        ) from error
    return xlsx_rows(path, wanted)


def _endings() -> str:
    return ", ".join(_READERS)


_READERS: dict[str, Callable[[Path, Wanted], Iterator[Row]]] = {
    ".csv": _csv_file,
    ".tsv": _tsv_file,
    ".jsonl": _jsonl_file,
    ".parquet": _parquet_file,
    ".xlsx": _xlsx_file,
}
