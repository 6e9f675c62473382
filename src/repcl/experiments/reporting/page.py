"""The page: sections of text, tables and figures as one HTML file that opens without a network."""

from collections.abc import Sequence
from html import escape
from importlib import resources
from urllib.parse import quote

from repcl.experiments.reporting.figures import Drawing
from repcl.experiments.reporting.section import Folded, Grid, Heading, Listing, Paragraph, Part, Section
from repcl.experiments.reporting.table import Cell, Column, Row, Table


def render_page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole page."""
    style = resources.files("repcl.experiments.reporting").joinpath("style.css").read_text(encoding="utf-8")
    contents = "\n".join(
        f'<li><a href="#{section.name}">{escape(section.title)}</a></li>' for section in sections
    )
    body = "\n".join(_section(section) for section in sections)
    # nothing may be loaded and no script may run, whatever a class in someone's data is called
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="Content-Security-Policy" content="{policy}"/>
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
</header>
<nav aria-label="Contents">
<ol>
{contents}
</ol>
</nav>
<main>
{body}
</main>
</body>
</html>
"""


def _part(part: Part) -> str:
    match part:
        case Heading(text):
            return f"<h3>{escape(text)}</h3>"
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case Listing(lines):
            return f"<pre><code>{escape(chr(10).join(lines))}</code></pre>"
        case Folded(summary, parts):
            return f"<details>\n<summary>{escape(summary)}</summary>\n{_joined(parts)}\n</details>"
        case Grid(parts):
            of_tables = " tables" * any(isinstance(inner, Table) for inner in parts)
            return f'<div class="grid{of_tables}">\n{_joined(parts)}\n</div>'
        case Table():
            return _table(part)
        case Drawing():
            return _figure(part)


def _joined(parts: Sequence[Part]) -> str:
    return "\n".join(map(_part, parts))


def _table(table: Table) -> str:
    head = "".join(_head_cell(column) for column in table.columns)
    bodies = "\n".join(_body(group, table.columns) for group in table.groups)
    notes = "\n".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    return f"""<div class="table">
<p class="title">{escape(table.title)}</p>
<div class="scroll">
<table aria-label="{escape(table.title)}">
<thead><tr>{head}</tr></thead>
{bodies}
</table>
</div>
{notes}
<p class="files">{_links("tables", table.file_name, ("md", "tex", "csv"))}</p>
</div>"""


def _figure(drawing: Drawing) -> str:
    return f"""<figure>
<div role="img" aria-label="{escape(drawing.description)}">{drawing.inline()}</div>
<figcaption>{escape(drawing.description)}. {_links("figures", drawing.name, ("svg", "png"))}</figcaption>
</figure>"""


def _section(section: Section) -> str:
    title = f"<h2>{escape(section.title)}</h2>"
    return f'<section id="{section.name}">\n{title}\n{_joined(section.parts)}\n</section>'


def _head_cell(column: Column) -> str:
    return f'<th scope="col"{_classes(column)}>{escape(column.title)}</th>'


def _body(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    lines = "\n".join(f"<tr>{_cells(row, columns)}</tr>" for row in rows)
    return f"<tbody>\n{lines}\n</tbody>"


def _cells(row: Row, columns: Sequence[Column]) -> str:
    first, *others = map(_cell, row)
    name = f'<th scope="row"{_classes(columns[0])}>{first}</th>'
    return name + "".join(
        f"<td{_classes(column)}>{text}</td>" for text, column in zip(others, columns[1:], strict=True)
    )


def _cell(cell: Cell) -> str:
    text = escape(cell.text).replace("_", "_<wbr/>")  # long names of classes may be broken there
    return f"<strong>{text}</strong>" if cell.is_best else text


def _classes(column: Column) -> str:
    names = ["text"] * column.is_text + ["paper"] * column.title.startswith("paper")
    return f' class="{" ".join(names)}"' if names else ""


def _links(folder: str, name: str, endings: Sequence[str]) -> str:
    links = (f'<a href="{folder}/{quote(name)}.{ending}">{ending}</a>' for ending in endings)
    return " · ".join(links)
