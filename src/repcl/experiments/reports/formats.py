"""A table as Markdown, as LaTeX (booktabs) and as CSV."""

import csv
import io
import re

from repcl.experiments.reports.table import Cell, Table, Value

_MARKDOWN = re.compile(r"[\\|<>&*\[\]`]|(?<![^\W_])_|_(?![^\W_])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "_": r"\_",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after the end of a row a bracket or a star would be taken for an option
    "*": "{*}",
    "]": "{]}",
    "–": "--",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "…": r"\dots{}",
}


def to_markdown(table: Table) -> str:
    """A Markdown table with its title and notes."""
    lines = [
        f"**{_markdown(table.title)}**",
        "",
        _markdown_line([_markdown(column.title) for column in table.columns]),
        _markdown_line(["---" if column.is_text else "---:" for column in table.columns]),
        *(_markdown_line([_markdown_cell(cell) for cell in row]) for row in table.rows),
    ]
    for note in table.notes:
        lines += ["", _markdown(note)]
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """A LaTeX table; needs the package booktabs."""
    columns = "".join("l" if column.is_text else "r" for column in table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(' '.join([table.title + '.', *table.notes]))}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_line([_latex(column.title) for column in table.columns]),
    ]
    for group in table.groups:
        lines += [r"\midrule", *(_latex_line([_latex_cell(cell) for cell in row]) for row in group)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def to_csv(table: Table) -> str:
    """The values of a table; a column of means has a second one with standard deviations."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([name for column in table.columns for name in column.names])
    for row in table.rows:
        writer.writerow([_csv_value(value) for cell in row for value in cell.values])
    return text.getvalue()


def _markdown_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    return f"**{_markdown(cell.text)}**" if cell.is_best else _markdown(cell.text)


def _markdown(text: str) -> str:
    """Text whose signs mean nothing to Markdown or HTML."""
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    one_line = " ".join(text.split())
    return _MARKDOWN.sub(lambda sign: entities.get(sign[0], "\\" + sign[0]), one_line)


def _latex_line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: Cell) -> str:
    return rf"\textbf{{{_latex(cell.text)}}}" if cell.is_best else _latex(cell.text)


def _latex(text: str) -> str:
    """Text whose signs mean nothing to LaTeX."""
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))


def _csv_value(value: Value) -> str:
    """A value as a spreadsheet reads it; a text that it would take for a formula gets a quote in front."""
    if isinstance(value, str):
        return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    if isinstance(value, float):
        return repr(float(value)).removesuffix(".0")
    return "" if value is None else str(value)
