"""The report of a folder of runs: its sections, as one page and with their tables and figures as files."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

from repcl.errors import MissingData, ResultMismatch, UnknownName
from repcl.experiments.paper.numbers import load_paper
from repcl.experiments.paper.recipes import Recipe, noted_recipes
from repcl.experiments.paper.verdicts import verdict_table
from repcl.experiments.reports.classes import (
    all_guesses,
    every_class_table,
    most_confused,
    order_table,
    wrong_texts_table,
)
from repcl.experiments.reports.figures import (
    draw_confusions,
    draw_costs,
    draw_curves,
    draw_matrix,
    method_styles,
)
from repcl.experiments.reports.formats import to_csv, to_latex, to_markdown
from repcl.experiments.reports.grouping import BenchmarkRuns, row_names
from repcl.experiments.reports.html import (
    Folded,
    Grid,
    Header,
    Heading,
    Paragraph,
    Part,
    Section,
    explained,
    render_page,
    tables_and_drawings,
)
from repcl.experiments.reports.provenance import (
    costs_table,
    files_table,
    origin_table,
    settings_table,
    total_seconds,
    versions_table,
)
from repcl.experiments.reports.scores import (
    WORST,
    forgotten_table,
    overview_table,
    results_table,
    tasks_table,
)
from repcl.experiments.reports.significance import significance_tables
from repcl.experiments.reports.table import Table
from repcl.experiments.reports.verdict import ranked_methods, report_header
from repcl.files import open_plain, read_plain, write_whole

PAGE = "report.html"
OURS = b'<meta name="generator" content="repcl"/>'  # by which a page is known to be a report
BEGINNING = 1 << 16
LARGEST_PAGE = 1 << 30
MOST_MATRICES = 6  # of methods; those of more methods are folded
LONGEST_TABLE = 15  # rows; longer ones are folded
TABLE_FORMATS = {"md": to_markdown, "tex": to_latex, "csv": to_csv}
_LINK = re.compile(r'href="(tables|figures)/([^"]+\.(?:md|tex|csv|svg|png))"')

Benchmarks = Sequence[BenchmarkRuns]


def write_report(folder: Path, benchmarks: Benchmarks, *, against: str | None = None) -> Path:
    """Write `report.html`, `tables/` and `figures/` of runs.

    Args:
        folder: the `--out` of runs; the recipes noted in it come first on the page.
        benchmarks: the runs in it, from `load_runs`.
        against: the method that others are tested against; RepCL, or else the best, if not given.
    """
    if not benchmarks:
        raise MissingData(f"No finished run in {folder}; `repcl bench --out {folder} ...` makes some.")
    rows = row_names(benchmarks)
    if against is not None and against not in rows:
        raise UnknownName("method in this folder", against, sorted(rows))
    sections = [
        *(_recipe_section(recipe, benchmarks) for recipe in noted_recipes(folder)),
        _results_section(benchmarks, rows),
        _significance_section(benchmarks, against),
        _curves_section(benchmarks, rows),
        _matrices_section(benchmarks),
        _classes_section(benchmarks),
        _confusions_section(benchmarks),
        _every_class_section(benchmarks),
        _costs_section(benchmarks),
        _settings_section(benchmarks),
    ]
    return write_page(folder, report_header(benchmarks), sections)


def write_page(folder: Path, header: Header, sections: Sequence[Section]) -> Path:
    """Write `report.html`, `tables/` and `figures/`; those of an earlier page that are not in it go."""
    _refuse_foreign(folder)
    before = _linked_files(folder, _earlier_page(folder))
    page = render_page(header, sections)
    _write_files(folder, [part for section in sections for part in section.parts])
    # before the page that knows of them is replaced: whoever is stopped here finds them again
    for stale in before - _linked_files(folder, page):
        stale.unlink(missing_ok=True)
    write_whole(folder / PAGE, page)
    return folder / PAGE


def _recipe_section(recipe: Recipe, benchmarks: Benchmarks) -> Section:
    tables = recipe.make_tables(benchmarks, recipe.methods, load_paper())
    explanation = [explained(recipe.explanation)] if recipe.explanation else []
    verdicts = verdict_table([recipe.name], benchmarks, load_paper())
    told = [] if verdicts is None else [verdicts]
    parts = [*explanation, *told, *tables, *recipe.make_figures(benchmarks, recipe.methods)]
    return Section(f"recipe-{recipe.name}", recipe.title, parts)


def _results_section(benchmarks: Benchmarks, rows: Sequence[str]) -> Section:
    """How good is each method in the end, and how much did it forget?"""
    explanation = explained(
        "Accuracy is over all test texts of all classes after the last task; the forgetting rate is "
        "how much the old tasks lost since their best moment, on average. Values are mean ± "
        "standard deviation over rounds (class orders or splits); the 95 % interval (Student's t) shows how "
        "far the mean can be trusted. Bold is the highest mean of its track, or several that read "
        "the same, which says nothing about chance: see the tests below. A method of the strict track keeps "
        "its weights and a few texts of each class; one of the track with statistics also keeps numbers "
        "computed from old data, of the size given."
    )
    parts: list[Part] = [explanation]
    if len(benchmarks) > 1:
        parts.append(overview_table(benchmarks, rows))
    paper = load_paper()
    return _make_section("results", "Results", parts, benchmarks, lambda runs: [results_table(runs, paper)])


def _significance_section(benchmarks: Benchmarks, against: str | None) -> Section:
    """Could a difference be chance?"""
    explanation = explained(
        "A difference in points is positive where the chosen method is better. Both tests compare "
        "the same rounds of both methods; Holm's correction keeps the chance of any false alarm in "
        "a table at 5 %, if that method was chosen beforehand. Rounds differ in class order or split, and "
        "share texts: take p values as a guide. Average accuracy over tasks is tested by itself: it scatters "
        "less from round to round than final accuracy does, so fewer rounds show a difference. Where "
        "predictions are stored, the answers of one round are compared text by text as well."
    )

    def compare(runs: BenchmarkRuns) -> list[Part]:
        return [*significance_tables(runs, against)] or [Paragraph(_why_no_test(runs))]

    return _make_section("significance", "Are the differences real?", [explanation], benchmarks, compare)


def _why_no_test(runs: BenchmarkRuns) -> str:
    if len(runs.methods) < 2:
        return "There is no second method to compare with."
    return (
        "A test needs two rounds that the methods share, or stored predictions of one: run more rounds, for "
        "example with --rounds 5."
    )


def _curves_section(benchmarks: Benchmarks, rows: Sequence[str]) -> Section:
    """How does accuracy fall as classes are added?"""
    explanation = "Over all classes seen so far. A method that is trained only at the end has a single point."
    return _make_section(
        "curves",
        "Accuracy after each task",
        [explained(explanation)],
        benchmarks,
        lambda runs: [draw_curves(runs, method_styles(runs, rows)), tasks_table(runs)],
    )


def _matrices_section(benchmarks: Benchmarks) -> Section:
    """What happened to each task?"""
    explanation = explained(
        "Accuracy in percent on the test texts of each task (column) after each task (row), mean "
        "over rounds: read a column downwards to see a task being forgotten. Darker is worse."
    )
    return _make_section(
        "matrices",
        "Accuracy matrix",
        [explanation],
        benchmarks,
        _draw_matrices,
    )


def _draw_matrices(runs: BenchmarkRuns) -> list[Part]:
    """A matrix of each method that has more than its last row; of many methods, the best come first."""
    late = [method.name for method in runs.methods if method.is_tested_at_the_end_only]
    tested = [method for method in runs.methods if method.name not in late]
    if len(tested) > MOST_MATRICES:
        ranked = [method.name for method in ranked_methods(runs)]
        tested.sort(key=lambda method: ranked.index(method.name) if method.name in ranked else len(ranked))
    drawn: list[Part] = [draw_matrix(runs.name, method) for method in tested]
    shown, more = drawn[:MOST_MATRICES], drawn[MOST_MATRICES:]
    told = f"Tested after the last task only, so without a matrix: {', '.join(late)}."
    return [
        *([Grid(shown)] if shown else []),
        *([Folded(f"The other {len(more)} methods", [Grid(more)])] if more else []),
        *([Paragraph(told)] if late else []),
    ]


def _classes_section(benchmarks: Benchmarks) -> Section:
    """Which classes were forgotten?"""
    explanation = explained(
        f"The {WORST} classes whose accuracy dropped most from its best earlier value, mean over the rounds "
        "in which they were not learned last: the drop in points, the final accuracy, and the class that "
        "their texts are most often confused with."
    )

    def list_classes(runs: BenchmarkRuns) -> list[Part]:
        tables = [forgotten_table(runs.name, method) for method in runs.methods]
        found = [table for table in tables if table is not None]
        return [Grid(found)] if found else [Paragraph("No earlier predictions are stored.")]

    return _make_section("classes", "Forgotten classes", [explanation], benchmarks, list_classes)


def _confusions_section(benchmarks: Benchmarks) -> Section:
    """Which classes are taken for each other?"""
    explanation = explained(
        "The classes that the best method confuses most in the end, over all rounds: a row shows what became "
        "of the texts of one class. Darker is more; a dark cell off the diagonal is a confusion."
    )

    def draw(runs: BenchmarkRuns) -> list[Part]:
        method = (ranked_methods(runs) or list(runs.methods))[0]
        guesses = all_guesses(method)
        names = most_confused(guesses)
        if not names:
            return [Paragraph(f"{method.name} confuses no classes, or its predictions are not stored.")]
        wrong = wrong_texts_table(runs.name, method)
        return [
            draw_confusions(runs.name, method.name, names, guesses),
            *([Folded("Texts with a wrong answer", [wrong])] if wrong is not None else []),
        ]

    return _make_section("confusions", "Confused classes", [explanation], benchmarks, draw)


def _every_class_section(benchmarks: Benchmarks) -> Section:
    """How good is each class, and when was it learned?"""

    def list_classes(runs: BenchmarkRuns) -> list[Part]:
        table = every_class_table(runs)
        return [
            Paragraph("No predictions are stored.") if table is None else _folded_if_long(table),
            Folded("Classes of each task", [order_table(runs)]),
        ]

    return _make_section("every-class", "Every class", [], benchmarks, list_classes)


def _folded_if_long(table: Table) -> Part:
    rows = len(table.rows)
    return Folded(f"All {rows} classes, hardest first", [table]) if rows > LONGEST_TABLE else table


def _costs_section(benchmarks: Benchmarks) -> Section:
    """What does it cost?"""
    return _make_section(
        "costs",
        "Time and memory",
        [],
        benchmarks,
        lambda runs: [draw_costs(runs, *total_seconds(runs)), costs_table(runs)],
    )


def _settings_section(benchmarks: Benchmarks) -> Section:
    """How can it be done again?"""
    results = [result for runs in benchmarks for result in runs.results]
    section = _make_section(
        "settings",
        "Settings, data and versions",
        [],
        benchmarks,
        lambda runs: [
            origin_table(runs),
            settings_table(runs),
            Folded("All settings", [settings_table(runs, everything=True)]),
        ],
    )
    last: list[Part] = [Heading("Software and files"), versions_table(results), files_table(results)]
    return Section(section.name, section.title, [*section.parts, *last])


def _make_section(
    name: str,
    title: str,
    parts: Sequence[Part],
    benchmarks: Benchmarks,
    answer: Callable[[BenchmarkRuns], Sequence[Part]],
) -> Section:
    """A section that answers its question for every benchmark."""
    answers: list[Part] = []
    for runs in benchmarks:
        answers += [Heading(runs.name)] if len(benchmarks) > 1 else []
        answers += answer(runs)
    return Section(name, title, [*parts, *answers])


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


def _refuse_foreign(folder: Path) -> None:
    """Refuse to write over a page that is no report, or through links to other folders."""
    page = folder / PAGE
    for path in (page, folder / "tables", folder / "figures"):
        if path.is_symlink():
            raise ResultMismatch(f"Expected no link in a folder of runs, found {path}: remove it.")
    if os.path.lexists(page) and not _is_ours(page):
        raise ResultMismatch(
            f"{page} is not a report of repcl: move it elsewhere, so that the report can be written there."
        )


def _is_ours(page: Path) -> bool:
    """Whether a page begins as a report does."""
    try:
        with open_plain(page) as file:
            return OURS in file.read(BEGINNING)
    except OSError:
        return False


def _earlier_page(folder: Path) -> str:
    """The page that is there; nothing if there is none."""
    try:
        return read_plain(folder / PAGE, LARGEST_PAGE).decode(errors="replace")
    except (OSError, ValueError):
        return ""


def _linked_files(folder: Path, page: str) -> set[Path]:
    """The tables and figures that belong to a page in a folder; a user's own files are none of them."""
    # by their last part only: nothing outside the two folders is meant, whatever the page says
    return {folder / part / Path(unquote(link)).name for part, link in _LINK.findall(page)}
