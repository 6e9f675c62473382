"""A table: what people read in its cells, and the bare values behind them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from repcl.evaluation import Summary

Value = float | int | str | None
LONGEST_NAME = 200  # in bytes; file systems take 255, and endings are added


@dataclass(frozen=True)
class Column:
    """A column; its cells hold one value for each name in `parts` (by default one, named as the title).

    Attributes:
        title: what people read.
        parts: names of its columns in a CSV file.
        is_text: whether its cells are words.
        is_detail: whether a page leaves it out on a phone.
    """

    title: str
    parts: tuple[str, ...] = ()
    is_text: bool = False
    is_detail: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its values."""
        return self.parts or (self.title,)


@dataclass(frozen=True)
class Cell:
    """What people read in a cell, and its values without rounding."""

    text: str
    values: tuple[Value, ...]
    is_best: bool = False


Row = list[Cell]


@dataclass(frozen=True)
class Table:
    """Rows in groups, which are set apart by a line.

    Attributes:
        name: of its files.
        title: what it shows.
        notes: sentences below it.
        is_sortable: whether readers of the page may sort its rows by a column.
    """

    name: str
    title: str
    columns: Sequence[Column]
    groups: Sequence[Sequence[Row]]
    notes: Sequence[str] = ()
    is_sortable: bool = False

    @property
    def file_name(self) -> str:
        """The name of its files, without ending."""
        return file_name(self.name)

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [row for group in self.groups for row in group]


def file_name(text: str) -> str:
    """A text, perhaps with the name of a user's data in it, as the name of a file; different texts differ."""
    name = re.sub(r"[^\w@.-]", lambda sign: f"%{ord(sign[0]):02x}", text)
    if len(name.encode()) <= LONGEST_NAME:
        return name
    digest = sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return f"{name.encode()[: LONGEST_NAME - len(digest) - 1].decode(errors='ignore')}-{digest}"


def word(text: str) -> Cell:
    """A cell with a text."""
    return Cell(text, (text,))


def count(number: int) -> Cell:
    """A cell with a whole number."""
    return Cell(f"{number:,}", (number,))


def number(value: float | None, digits: int = 1) -> Cell:
    """A cell with a number, or a dash."""
    return Cell("–", (None,)) if value is None else Cell(f"{value:.{digits}f}", (value,))


def mean_and_spread(summary: Summary | None, mark: str = "", *, digits: int = 1) -> Cell:
    """Mean ± standard deviation; its values are both."""
    if summary is None:
        return missing(2)
    spread = "" if summary.sd is None else f" ± {summary.sd:.{digits}f}"
    return Cell(f"{summary.mean:.{digits}f}{spread}{mark}", (summary.mean, summary.sd))


def mean_only(summary: Summary | None) -> Cell:
    """The mean; its values are mean and standard deviation."""
    return missing(2) if summary is None else Cell(f"{summary.mean:.1f}", (summary.mean, summary.sd))


def interval(summary: Summary | None) -> Cell:
    """The 95 % interval of a percentage; its values are both ends. None where rounds are copies of one."""
    if summary is None or summary.low is None or summary.high is None or not summary.sd:
        return missing(2)
    low, high = max(summary.low, 0.0), min(summary.high, 100.0)
    return Cell(f"[{low:.1f}, {high:.1f}]", (low, high))


def probability(p: float | None) -> Cell:
    """A p value."""
    if p is None:
        return missing()
    return Cell("<0.001" if p < 0.001 else f"{p:.4f}" if p < 0.1 else f"{p:.3f}", (p,))


def seconds(spent: float | None) -> Cell:
    """A duration."""
    return missing() if spent is None else Cell(duration(spent), (spent,))


def size(number_of_bytes: float) -> Cell:
    """An amount of memory."""
    return Cell(bytes_text(number_of_bytes), (number_of_bytes,))


def missing(values: int = 1) -> Cell:
    """A dash."""
    return Cell("–", (None,) * values)


def padded(cells: Row, length: int) -> Row:
    """The cells with dashes behind them; each holds a mean and a standard deviation."""
    return cells + [missing(2)] * (length - len(cells))


def mark_best(rows: Iterable[Row], column: int) -> list[Row]:
    """The same rows, with the highest first value of a column marked; values that read the same are equal."""
    marked = list(rows)
    values = [_as_read(row[column].values[0]) for row in marked]
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return marked
    best = max(known)
    return [
        [
            replace(cell, is_best=True) if index == column and value == best else cell
            for index, cell in enumerate(row)
        ]
        for row, value in zip(marked, values, strict=True)
    ]


def _as_read(value: Value) -> float | None:
    """A number with the one digit that people see."""
    return round(value, 1) if isinstance(value, float) else None


def duration(spent: float) -> str:
    """Seconds in the unit that people would use."""
    for unit, length in (("h", 3600), ("min", 60)):
        if spent >= 2 * length:
            return f"{spent / length:.1f} {unit}"
    return f"{spent:.1f} s" if spent < 10 else f"{spent:.0f} s"


def bytes_text(number_of_bytes: float) -> str:
    """Bytes in the unit that people would use."""
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number_of_bytes >= length:
            return f"{number_of_bytes / length:.1f} {unit}"
    return f"{number_of_bytes:.0f} B"
