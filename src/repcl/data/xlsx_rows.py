"""Streams the rows of an Excel workbook's first sheet, after a look at what its parts unpack to.

A workbook is a ZIP archive of XML. Its parts are measured as they are unpacked, and markup is counted, before
openpyxl sees any of them: what is read in full there (texts, styles, names) stays in proportion to the file.
"""

import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, BinaryIO, TypeVar
from xml.etree.ElementTree import ParseError

from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from repcl.data.allowance import Allowance
from repcl.data.rows import LONGEST_CELL, Row, Wanted, check_columns
from repcl.errors import InvalidData, shortened

PIECE = 1 << 20
MOST_PARTS = 10_000
TAGS_IN_ANY_CASE = 500_000
MOST_TAGS_A_BYTE = 4
CELLS_IN_ANY_CASE = 5_000_000
MOST_CELLS_A_BYTE = 10
ROWS_AT_A_TIME = 100
MARKUP = (b"<", b" ", b"\t", b"\r", b"\n", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
"""How parts begin that an XML parser would take."""
ENCODING = re.compile(rb"""^[^>]*\sencoding\s*=\s*["']([^"']*)""")
LONGEST_MARK = len(b"<!DOCTYPE")

Values = tuple[object, ...]
Made = TypeVar("Made")


def xlsx_rows(path: Path, wanted: Wanted) -> Iterator[Row]:
    """The rows of a workbook's first sheet; cells are texts, as in CSV."""
    allowance = Allowance(path, path.stat().st_size)
    try:
        _measure(allowance)
        with path.open("rb") as file:
            yield from _rows(file, wanted, allowance)
    except MemoryError as error:
        raise allowance.refusal("more than there is memory for") from error
    except _UNREADABLE as error:
        raise InvalidData(
            f"{path} cannot be read as an Excel workbook ({_reason(error)}): save it again, or as CSV."
        ) from error


_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    InvalidFileException,
    ParseError,
    EOFError,
    # from inside openpyxl, where a part has not what it takes for granted
    ArithmeticError,
    AttributeError,
    AssertionError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    return shortened(lines[0] if lines else type(error).__name__)


def _measure(allowance: Allowance) -> None:
    """Refuse an archive whose parts unpack to more than the file can need, or are no plain XML."""
    with zipfile.ZipFile(allowance.path) as archive:
        parts = archive.infolist()
        if len(parts) > MOST_PARTS:
            raise allowance.refusal(f"{len(parts):,} parts")
        if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
            raise zipfile.BadZipFile("a part is packed in an unusual way")
        size = sum(part.file_size for part in parts)  # no part gives more bytes than that when it is read
        if size > allowance.unpacked:
            raise allowance.refusal(f"{size:,} bytes")
        most = max(TAGS_IN_ANY_CASE, MOST_TAGS_A_BYTE * allowance.size)
        tags = 0
        for part in parts:
            with archive.open(part) as file:
                for count in _tags(file):
                    tags += count
                    if tags > most:
                        raise allowance.refusal(f"over {most:,} pieces of markup")


def _tags(part: IO[bytes]) -> Iterator[int]:
    """How many tags begin in each piece of a part; `ValueError` for XML with signs or codes of its own."""
    piece = part.read(PIECE)
    is_markup = piece.startswith(MARKUP)
    declared = ENCODING.match(piece[:1000])
    if is_markup and declared and declared.group(1).lower() not in (b"utf-8", b"us-ascii", b"ascii"):
        raise ValueError("a part is not in UTF-8")
    before = b""
    while piece:
        if is_markup and b"\0" in piece:
            raise ValueError("a part is not in UTF-8")
        if is_markup and b"<!DOCTYPE" in before + piece:
            raise ValueError("a part has a document type, which workbooks do not have")
        yield piece.count(b"<")
        before, piece = piece[-LONGEST_MARK:], part.read(PIECE)


def _rows(file: BinaryIO, wanted: Wanted, allowance: Allowance) -> Iterator[Row]:
    book = _quietly(lambda: load_workbook(file, read_only=True, data_only=True, keep_links=False))
    if not book.worksheets:
        raise ValueError("it has no sheet with cells")
    sheet = book.worksheets[0]
    if len(book.worksheets) > 1:
        count = len(book.worksheets)
        wanted.note(f"{allowance.path} has {count} sheets, of which the first, {sheet.title!r}, is read.")
    sheet.reset_dimensions()  # what a workbook says about its size may be anything
    columns: list[str] | None = None
    number, blank = 0, 0
    for line, values in enumerate(_counted(sheet.iter_rows(values_only=True), allowance), start=1):
        cells = [_as_text(value) for value in values]
        if not any(cell.strip() for cell in cells):
            blank += columns is not None
        elif columns is None:
            columns = _header(cells)
            check_columns(allowance.path, columns)
        else:
            if wanted.blank_rows:  # those at the end, which a spreadsheet may have in thousands, are no rows
                yield from (Row(number + 1 + index, None, {}) for index in range(blank))
                number += blank
            number, blank = number + 1, 0
            yield _row(number, line, columns, cells)


def _counted(rows: Iterator[Values], allowance: Allowance) -> Iterator[Values]:
    """The rows, as long as there are not more cells, rows and characters than the file can need."""
    held = cells = number = 0
    while some := _quietly(lambda: list(islice(rows, ROWS_AT_A_TIME))):
        for values in some:
            number += 1
            cells += len(values)
            held += sum(len(value) for value in values if isinstance(value, str))
            if number > allowance.rows or cells > max(CELLS_IN_ANY_CASE, MOST_CELLS_A_BYTE * allowance.size):
                raise allowance.refusal(f"over {number - 1:,} rows with {cells:,} cells")
            if held > allowance.unpacked:
                raise allowance.refusal(f"over {held:,} characters of text")
            yield values


def _quietly(make: Callable[[], Made]) -> Made:
    """What openpyxl makes, without its warnings about styles and dates, of which nothing is read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def _header(cells: Sequence[str]) -> list[str]:
    """Names of columns, without the empty cells behind the last one."""
    used = max(index for index, cell in enumerate(cells) if cell.strip()) + 1
    return list(cells[:used])


def _row(number: int, line: int, columns: list[str], cells: list[str]) -> Row:
    where = f"row {number} (line {line})"
    longest = max(cells, key=len)
    if len(longest) > LONGEST_CELL:
        return Row(number, line, {}, f"{where} has a cell of over {LONGEST_CELL:,} characters: shorten it.")
    beyond = [cell for cell in cells[len(columns) :] if cell.strip()]
    if beyond:
        problem = f"{where} has the cell {shortened(beyond[0])} in a column without a name: name the column."
        return Row(number, line, dict(zip(columns, cells, strict=False)), problem)
    return Row(number, line, dict(zip_longest(columns, cells[: len(columns)], fillvalue="")))


def _as_text(value: object) -> str:
    """A cell as CSV would have it: an empty one is an empty text, a date is written as ISO 8601 has it."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        whole_day = value.time() == time()
        return value.date().isoformat() if whole_day else value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)
