"""Cells with several labels, as `a|b`: of files, and of columns that come from files."""

from collections.abc import Iterable

SEPARATOR = "|"


def labels_of_cell(cell: str) -> list[str]:
    """The labels in a cell, without blanks around them; empty ones do not count."""
    return [label.strip() for label in cell.split(SEPARATOR) if label.strip()]


def cell_of_labels(labels: Iterable[object]) -> str:
    """A cell with these labels."""
    return SEPARATOR.join(map(str, labels))
