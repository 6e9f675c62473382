"""The report of a folder of results: one page, and its tables and figures as files."""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from repcl.errors import MissingData
from repcl.experiments.paper import load_paper
from repcl.experiments.recipes import Recipe, noted_recipes
from repcl.experiments.reporting.formats import to_csv, to_latex, to_markdown
from repcl.experiments.reporting.page import render_page
from repcl.experiments.reporting.runs import BenchmarkRuns, load_runs
from repcl.experiments.reporting.section import Paragraph, Part, Section, tables_and_drawings
from repcl.experiments.reporting.sections import report_sections
from repcl.experiments.reporting.table import Table
from repcl.files import write_whole

PAGE = "report.html"
TABLE_FORMATS = {"md": to_markdown, "tex": to_latex, "csv": to_csv}
_LINK = re.compile(r'href="(tables|figures)/([^"]+\.(?:md|tex|csv|svg|png))"')


def write_report(folder: Path, *, against: str | None = None) -> Path:
    """Write `report.html`, `tables/` and `figures/` for all results below a folder.

    Args:
        folder: the `--out` of runs; the recipes noted in it come first on the page.
        against: the method that others are tested against; RepCL, or else the best, if not given.
    """
    benchmarks = load_runs(folder)
    if not benchmarks:
        raise MissingData(f"No finished run in {folder}; `repcl bench --out {folder} ...` makes some.")
    recipes = [_recipe_section(recipe, benchmarks) for recipe in noted_recipes(folder)]
    sections = [*recipes, *report_sections(benchmarks, against)]
    before = _linked_files(folder)
    _write_files(folder, [part for section in sections for part in section.parts])
    write_whole(folder / PAGE, render_page("Continual learning results", _lead(benchmarks), sections))
    for stale in before - _linked_files(folder):
        stale.unlink(missing_ok=True)
    return folder / PAGE


def _recipe_section(recipe: Recipe, benchmarks: Sequence[BenchmarkRuns]) -> Section:
    tables = recipe.make_tables(benchmarks, recipe.methods, load_paper())
    explanation = [Paragraph(recipe.explanation)] if recipe.explanation else []
    parts = [*explanation, *tables, *recipe.make_figures(benchmarks, recipe.methods)]
    return Section(f"recipe-{recipe.name}", recipe.title, parts)


def _write_files(folder: Path, parts: Sequence[Part]) -> None:
    tables, figures = folder / "tables", folder / "figures"
    for needed in (tables, figures):
        needed.mkdir(exist_ok=True)
    for part in tables_and_drawings(parts):
        if isinstance(part, Table):
            for ending, write in TABLE_FORMATS.items():
                write_whole(tables / f"{part.file_name}.{ending}", write(part))
        else:
            part.save(figures)


def _linked_files(folder: Path) -> set[Path]:
    """The tables and figures that the page in a folder belongs to; a user's own files are none of them."""
    page = folder / PAGE
    text = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""
    # by their last part only: nothing outside the two folders is meant, whatever the page says
    return {folder / place / Path(unquote(link)).name for place, link in _LINK.findall(text)}


def _lead(benchmarks: Sequence[BenchmarkRuns]) -> str:
    """What the page is about, in a sentence."""
    results = [result for runs in benchmarks for result in runs.results]
    methods = _counted(len({result.row for result in results}), "method")
    encoders = ", ".join(sorted({result.encoder for result in results}))
    return (
        f"{_counted(len(results), 'run')} of {methods} on {', '.join(runs.name for runs in benchmarks)} "
        f"with encoder {encoders}. "
        "All numbers come from the result files in this folder."
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
