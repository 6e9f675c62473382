"""Streams the rows of a Parquet file in batches that stay small, whatever the file unpacks to."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet, types

from repcl.data.allowance import Allowance
from repcl.data.parquet_pages import Page, pages_of
from repcl.data.rows import LONGEST_CELL, Row, Wanted, check_columns
from repcl.errors import InvalidData, shortened

MOST_ROWS_IN_A_BATCH = 1024
LARGEST_BATCH = 64 << 20
LARGEST_PAGE = 256 << 20
VALUES_OF_A_SPAN = 2


def parquet_rows(path: Path, wanted: Wanted) -> Iterator[Row]:
    """The rows of a Parquet file; columns that are not wanted are there without their values."""
    allowance = Allowance(path, path.stat().st_size)
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            names = file.schema_arrow.names
            check_columns(path, names)
            chosen = [name for name in dict.fromkeys(wanted.columns) if name in names]
            _check_types(path, file.schema_arrow, chosen)
            if wanted.every_column:
                chosen += [name for name in names if name not in chosen]
            batch = _rows_in_a_batch(file, chosen, allowance)
            yield from _rows(file, chosen, batch, allowance)
    except MemoryError as error:
        raise allowance.refusal("more than there is memory for") from error
    # pyarrow lets errors of Python through: names that are not UTF-8, sizes out of range
    except (pyarrow.ArrowException, ValueError, OverflowError, LookupError, TypeError, OSError) as error:
        raise InvalidData(f"{path} cannot be read as Parquet ({error}): write the file again.") from error


def _check_types(path: Path, schema: Any, chosen: Sequence[str]) -> None:
    """Refuse all but texts, numbers and lists of them: others may be deep or out of Python's range."""
    for name in chosen:
        kind = schema.field(name).type
        inner = kind.value_type if _is_list(kind) or types.is_dictionary(kind) else kind
        if not _is_plain(inner):
            raise InvalidData(
                f"{path}, column {name!r}: expected text or numbers, found values of the type "
                f"{shortened(str(kind))}; convert the column to text."
            )


def _as_written(path: Path, batch: Any) -> Any:
    """A batch whose times and decimals, which may be out of Python's range, have become texts."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type
        inner = kind.value_type if _is_list(kind) or types.is_dictionary(kind) else kind
        if _is_plain(inner):
            columns.append(column)
        elif types.is_temporal(kind) or types.is_decimal(kind):
            columns.append(column.cast(pyarrow.string()))
        else:
            raise InvalidData(
                f"{path}, column {name!r}: values of the type {shortened(str(kind))} cannot be kept; convert "
                "the column to text, or leave it out of the file."
            )
    return pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _is_plain(kind: Any) -> bool:
    return _is_text(kind) or bool(types.is_integer(kind) or types.is_floating(kind)) or _is_flag(kind)


def _is_list(kind: Any) -> bool:
    is_pair = types.is_fixed_size_list(kind) and kind.list_size == VALUES_OF_A_SPAN
    return bool(types.is_list(kind) or types.is_large_list(kind) or is_pair)


def _is_text(kind: Any) -> bool:
    is_view = hasattr(types, "is_string_view") and types.is_string_view(kind)  # since pyarrow 16
    return bool(types.is_string(kind) or types.is_large_string(kind) or is_view)


def _is_flag(kind: Any) -> bool:
    return bool(types.is_boolean(kind) or types.is_null(kind))


def _rows_in_a_batch(file: Any, chosen: Sequence[str], allowance: Allowance) -> int:
    """So many rows that even the longest value that can be repeated in each of them fits into memory."""
    rows = file.metadata.num_rows
    if not 0 <= rows <= allowance.rows:
        raise allowance.refusal(f"{rows:,} rows")
    unpacked, values, longest = 0, 0, 1
    for page in _pages(file, allowance.path, chosen):
        unpacked, values = unpacked + page.size, values + page.values
        if page.size > LARGEST_PAGE or unpacked > allowance.unpacked:
            raise allowance.refusal(f"over {max(page.size, unpacked):,} bytes")
        if values > max(1, len(chosen)) * (1 + VALUES_OF_A_SPAN) * allowance.rows:
            raise allowance.refusal(f"over {values:,} values")
        if page.repeats:
            longest = max(longest, page.size)
    return max(1, min(MOST_ROWS_IN_A_BATCH, LARGEST_BATCH // longest))


def _pages(file: Any, path: Path, chosen: Sequence[str]) -> Iterator[Page]:
    """Every page of the chosen columns and of what is inside them."""
    beginnings = tuple(f"{name}." for name in chosen)
    names = [file.schema.column(number).path for number in range(len(file.schema))]
    numbers = {number for number, name in enumerate(names) if f"{name}.".startswith(beginnings)}
    with path.open("rb") as data:
        yield from pages_of(data, numbers)


def _rows(file: Any, chosen: Sequence[str], batch_size: int, allowance: Allowance) -> Iterator[Row]:
    unread = dict.fromkeys(file.schema_arrow.names)
    if not chosen:
        yield from (Row(1, None, unread) for _ in range(min(1, file.metadata.num_rows)))
        return
    number = held = 0
    for batch in file.iter_batches(batch_size=batch_size, columns=chosen, use_threads=False):
        for cells in _as_written(allowance.path, batch).to_pylist():
            number += 1
            held += sum(sys.getsizeof(cell) for cell in cells.values() if isinstance(cell, str))
            if held > allowance.unpacked:
                raise allowance.refusal(f"over {held:,} bytes of text")
            _check_lengths(allowance.path, cells, number)
            yield Row(number, None, unread | cells)


def _check_lengths(path: Path, cells: dict[str, Any], number: int) -> None:
    for name, cell in cells.items():
        if isinstance(cell, str) and len(cell) > LONGEST_CELL:
            raise InvalidData(
                f"{path}, row {number}, column {name!r} has {len(cell):,} characters where at most "
                f"{LONGEST_CELL:,} are read: shorten it, or remove the row."
            )
