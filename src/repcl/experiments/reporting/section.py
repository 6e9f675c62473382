"""What a page is made of: sections of headings, paragraphs, tables and figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from repcl.experiments.reporting.figures import Drawing
from repcl.experiments.reporting.table import Table


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class Listing:
    """Lines as they were typed."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Grid:
    """Parts side by side where there is room."""

    parts: Sequence["Part"]


@dataclass(frozen=True)
class Folded:
    """Parts that are shown on a click."""

    summary: str
    parts: Sequence["Part"]


Part = Heading | Paragraph | Listing | Grid | Folded | Table | Drawing


@dataclass(frozen=True)
class Section:
    """A part of the page with a title and a place in the table of contents."""

    name: str
    title: str
    parts: Sequence[Part]


def tables_and_drawings(parts: Sequence[Part]) -> Iterator[Table | Drawing]:
    """Everything that is also written to files of its own."""
    for part in parts:
        if isinstance(part, Table | Drawing):
            yield part
        elif isinstance(part, Grid | Folded):
            yield from tables_and_drawings(part.parts)
