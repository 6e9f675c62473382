"""The page: sections of text, tables and figures as one HTML file that opens without a network."""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from repcl.experiments.reports.figures import Drawing
from repcl.experiments.reports.table import Column, Table

OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*")


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
    """A part of the page with a title and a line in the table of contents."""

    name: str
    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Header:
    """What stands on top of the page.

    Attributes:
        lead: what the page is about.
        verdicts: what it comes to, in sentences.
        facts: how it was made.
    """

    title: str
    lead: str
    verdicts: Sequence[str] = ()
    facts: Sequence[Part] = ()


def explained(text: str) -> Folded:
    """An explanation for those who ask for it."""
    return Folded("How to read this", [Paragraph(text)])


def tables_and_drawings(parts: Sequence[Part]) -> Iterator[Table | Drawing]:
    """Everything that is also written to files of its own."""
    for part in parts:
        if isinstance(part, Table | Drawing):
            yield part
        elif isinstance(part, Grid | Folded):
            yield from tables_and_drawings(part.parts)


def render_page(header: Header, sections: Sequence[Section]) -> str:
    """The whole page."""
    # escaped by default: a class in someone's data may be called <script>
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        kind=lambda part: type(part).__name__, css_classes=_css_classes, whole_options=_whole_options
    )
    files = resources.files("repcl.experiments.reports")
    template = environment.from_string(files.joinpath("page.html.jinja").read_text(encoding="utf-8"))
    style, script = (files.joinpath(name).read_text(encoding="utf-8") for name in ("style.css", "sort.js"))
    # a browser runs the script of this hash and no other
    script_hash = b64encode(sha256(script.encode()).digest()).decode()
    found = template.render(
        header=header, sections=sections, style=style, script=script, script_hash=script_hash
    )
    return found + "\n"


def _whole_options(text: str) -> Markup:
    """A text whose options, such as --rounds, are not broken behind a hyphen."""
    return Markup(OPTION.sub(r'<span class="option">\g<0></span>', str(escape(text))))


def _css_classes(column: Column) -> str:
    names = {
        "text": column.is_text,
        "paper": column.title.startswith("paper"),
        "detail": column.is_detail,
    }
    return " ".join(name for name, holds in names.items() if holds)
