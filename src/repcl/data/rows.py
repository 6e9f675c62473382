"""Streams the rows of a CSV, JSONL or Parquet file, one at a time, each with its location in the file."""

import codecs
import csv
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, TextIO

from repcl.errors import InvalidData, listed, shortened

# Python's own limit, 131,072 characters, is below a long report; a cell beyond this one is a lost quote.
LONGEST_CELL = 10_000_000
# A row is held in memory; without a limit, a file without line breaks would be one row.
LONGEST_ROW = 2 * LONGEST_CELL
# As many as a spreadsheet has.
MOST_COLUMNS = 16_384
# No label, span or count needs more; reading a number takes quadratic time.
MOST_DIGITS = 400


class Row(NamedTuple):
    """One row's cells by column, and where it stands (both counted from 1, the row without the header)."""

    number: int
    line: int | None
    cells: Mapping[str, object]

    @property
    def location(self) -> str:
        """Where to look in the file."""
        line = "" if self.line in (None, self.number) else f" (line {self.line})"
        return f"row {self.number}{line}"


def read_rows(path: Path, wanted: Sequence[str]) -> Iterator[Row]:
    """Stream the rows of a data file; the file's ending says how to read it.

    Args:
        path: a `.csv`, `.tsv`, `.jsonl` or `.parquet` file.
        wanted: the columns of interest; a row holds at least those of them that the file has.
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


def open_text(path: Path) -> TextIO:
    """A text file as all readers open it: UTF-8 with or without a mark, line breaks untouched."""
    return path.open(encoding="utf-8-sig", newline="")


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

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path = path
        self.file = file
        self.number = 0
        self._length = 0

    def __iter__(self) -> Iterator[str]:
        while line := self.file.readline(LONGEST_ROW + 1):
            self.number += 1
            self._length += len(line)
            if self._length > LONGEST_ROW:
                raise InvalidData(
                    f"{self.path}, line {self.number}: a row has over {LONGEST_ROW:,} characters, with "
                    f"{shortened(line)} in it: look for a quote that is never closed, or missing line breaks."
                )
            yield line

    def end_row(self) -> None:
        """Count the next row anew."""
        self._length = 0


def _csv_rows(path: Path, _: Sequence[str], *, delimiter: str = ",") -> Iterator[Row]:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    with open_text(path) as file:
        lines = Lines(path, file)
        # strict, or a quote that is never closed would silently swallow all following rows
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        number = 0
        try:
            columns = next((cells for cells in reader if cells), [])
            check_columns(path, columns)
            for number, cells in enumerate(filter(None, reader), start=1):
                lines.end_row()
                yield Row(number, reader.line_num, _named(path, columns, cells, number))
        except UnicodeDecodeError as error:
            raise _not_utf8(path) from error
        except csv.Error as error:
            raise InvalidData(
                f"{path}, row {number + 1} (line {reader.line_num}) is not well-formed CSV ({error}): "
                "put texts with quotes or line breaks in quotes, and double the quotes inside."
            ) from error


def check_columns(path: Path, columns: Sequence[str]) -> None:
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


def _named(path: Path, columns: list[str], cells: list[str], number: int) -> dict[str, object]:
    if len(cells) > len(columns):
        raise InvalidData(
            f"{path}, row {number} has {len(cells)} cells where the header names {len(columns)} columns "
            f"(the last is {shortened(cells[-1])}): put texts that hold the separator in quotes."
        )
    return dict(zip_longest(columns, cells, fillvalue=""))


def _tsv_rows(path: Path, wanted: Sequence[str]) -> Iterator[Row]:
    return _csv_rows(path, wanted, delimiter="\t")


def _jsonl_rows(path: Path, _: Sequence[str]) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as file:
        lines = Lines(path, file)
        number = 0
        try:
            for line in lines:
                lines.end_row()
                if line.strip():
                    number += 1
                    yield Row(number, lines.number, _json_object(path, line, lines.number))
        except UnicodeDecodeError as error:
            raise _not_utf8(path) from error


def _json_object(path: Path, line: str, line_number: int) -> dict[str, object]:
    try:
        value = _DECODER.decode(line.strip())
    except (ValueError, RecursionError) as error:
        raise InvalidData(
            f"{path}, line {line_number} is not valid JSON ({error}; found {shortened(line.strip())}): "
            "write one JSON object per line."
        ) from error
    if not isinstance(value, dict):
        raise InvalidData(
            f"{path}, line {line_number} holds {shortened(value)} where a JSON object was expected: "
            'write lines such as {"text": "...", "label": "..."}.'
        )
    return value


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


def _parquet_rows(path: Path, wanted: Sequence[str]) -> Iterator[Row]:
    try:
        from repcl.data.parquet_rows import parquet_rows  # with pyarrow, an extra
    except ImportError as error:
        raise InvalidData(f"Reading {path} needs pyarrow: pip install 'repcl[parquet]'.") from error
    return parquet_rows(path, wanted)


def _not_utf8(path: Path) -> InvalidData:
    """Say which line is wrong; decoding runs ahead of the rows, so only a second look can tell."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    number = 1
    with path.open("rb") as file:
        while piece := file.readline(1 << 16):
            try:
                decoder.decode(piece)
            except UnicodeDecodeError as error:
                found = f"byte 0x{error.object[error.start]:02x} in {shortened(_beginning(error.object))}"
                return InvalidData(f"{path}, line {number} is not UTF-8 ({found}): save the file as UTF-8.")
            number += piece.endswith(b"\n")
    return InvalidData(f"{path} is not UTF-8: save the file as UTF-8.")


def _beginning(data: bytes) -> str:
    return data.decode("latin-1").strip()


def _endings() -> str:
    return ", ".join(_READERS)


_READERS: dict[str, Callable[[Path, Sequence[str]], Iterator[Row]]] = {
    ".csv": _csv_rows,
    ".tsv": _tsv_rows,
    ".jsonl": _jsonl_rows,
    ".parquet": _parquet_rows,
}
