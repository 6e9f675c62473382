"""Streams the rows of a CSV, JSONL or Parquet file, one at a time, each with its location in the file."""

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from repcl.errors import InvalidData

# Python's own limit, 131,072 characters, is below a long report; a cell beyond this one is a lost quote.
LONGEST_CELL = 10_000_000


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
    if not path.exists():
        raise InvalidData(f"There is no file {path}: check the spelling, or give the full path.")
    if path.is_dir():
        raise InvalidData(f"{path} is a folder: give the path of one data file ({_endings()}).")
    if not os.access(path, os.R_OK):
        raise InvalidData(f"{path} may not be read: change its permissions.")
    if path.suffix.lower() not in _READERS:
        raise InvalidData(
            f"{path} ends in {path.suffix!r}, which is not a kind of data file read here ({_endings()}): "
            "convert the file, or correct its ending."
        )
    if path.stat().st_size == 0:
        raise InvalidData(f"{path} is empty: give a file with a text and a label in each row.")
    return _READERS[path.suffix.lower()](path, wanted)


def _csv_rows(path: Path, _: Sequence[str], *, delimiter: str = ",") -> Iterator[Row]:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    with path.open(encoding="utf-8-sig", newline="") as file:
        # strict, or a quote that is never closed would silently swallow all following rows
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        number = 0
        try:
            columns = next((cells for cells in reader if cells), [])
            for number, cells in enumerate(filter(None, reader), start=1):
                yield Row(number, reader.line_num, _named(path, columns, cells, number))
        except UnicodeDecodeError as error:
            raise _not_utf8(path) from error
        except csv.Error as error:
            raise InvalidData(
                f"{path}, row {number + 1} (line {reader.line_num}) is not well-formed CSV ({error}): "
                "put texts with quotes or line breaks in quotes, and double the quotes inside."
            ) from error


def _named(path: Path, columns: list[str], cells: list[str], number: int) -> dict[str, object]:
    if len(cells) > len(columns):
        raise InvalidData(
            f"{path}, row {number} has {len(cells)} cells where the header names {len(columns)} columns "
            f"(the last is {cells[-1]!r}): put texts that hold the separator in quotes."
        )
    return dict(zip_longest(columns, cells, fillvalue=""))


def _tsv_rows(path: Path, wanted: Sequence[str]) -> Iterator[Row]:
    return _csv_rows(path, wanted, delimiter="\t")


def _jsonl_rows(path: Path, _: Sequence[str]) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as file:
        number = 0
        try:
            for line_number, line in enumerate(file, start=1):
                if line.strip():
                    number += 1
                    yield Row(number, line_number, _json_object(path, line, line_number))
        except UnicodeDecodeError as error:
            raise _not_utf8(path) from error


def _json_object(path: Path, line: str, line_number: int) -> dict[str, object]:
    try:
        value = json.loads(line)
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


def _parquet_rows(path: Path, wanted: Sequence[str]) -> Iterator[Row]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InvalidData(f"Reading {path} needs pyarrow: pip install 'repcl[parquet]'.") from error
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name in wanted]
            # without any wanted column, read them all: the error will name what the file has
            for batch in file.iter_batches(batch_size=4096, columns=columns or None):
                for cells in batch.to_pylist():
                    number += 1
                    yield Row(number, None, cells)
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidData(f"{path} cannot be read as Parquet ({error}): write the file again.") from error


def _not_utf8(path: Path) -> InvalidData:
    """Say which line is wrong; decoding runs ahead of the rows, so only a second look can tell."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                found = f"byte 0x{line[error.start]:02x} in {shortened(line.decode('latin-1').strip())}"
                return InvalidData(f"{path}, line {number} is not UTF-8 ({found}): save the file as UTF-8.")
    return InvalidData(f"{path} is not UTF-8: save the file as UTF-8.")


def shortened(value: object, longest: int = 80) -> str:
    """A value as a message shows it: quoted, and cut when it is long."""
    shown = repr(value)
    return shown if len(shown) <= longest else f"{shown[:longest]}…"


def _endings() -> str:
    return ", ".join(_READERS)


_READERS: dict[str, Callable[[Path, Sequence[str]], Iterator[Row]]] = {
    ".csv": _csv_rows,
    ".tsv": _tsv_rows,
    ".jsonl": _jsonl_rows,
    ".parquet": _parquet_rows,
}
