"""The sections of a report, each answering one question about the runs of a folder."""

from collections.abc import Callable, Sequence

from repcl.experiments.paper import load_paper
from repcl.experiments.reporting.classes import WORST, forgotten_table
from repcl.experiments.reporting.costs import costs_table
from repcl.experiments.reporting.figures import draw_curves, draw_matrix, line_styles
from repcl.experiments.reporting.runs import BenchmarkRuns, row_names
from repcl.experiments.reporting.scores import overview_table, results_table, tasks_table
from repcl.experiments.reporting.section import Folded, Grid, Heading, Listing, Paragraph, Part, Section
from repcl.experiments.reporting.settings import (
    commands,
    files_table,
    origin_table,
    settings_table,
    versions_table,
)
from repcl.experiments.reporting.significance import significance_table

Benchmarks = Sequence[BenchmarkRuns]


def results_section(benchmarks: Benchmarks, rows: Sequence[str]) -> Section:
    """How good is each method in the end, and how much did it forget?"""
    explanation = Paragraph(
        "Accuracy is over all test texts of all classes after the last task; the forgetting rate is "
        "how much the old tasks lost since their best moment, on average. Values are mean ± "
        "standard deviation over rounds (class orders or splits); the 95 % interval (Student's t) shows how "
        "far the mean can be trusted. Bold is the highest mean of its track, which says nothing "
        "about chance: see the tests below. A method of the strict track keeps its weights and a few "
        "texts of each class; one of the track with statistics also keeps numbers computed from old "
        "data, of the size given."
    )
    parts: list[Part] = [explanation]
    if len(benchmarks) > 1:
        parts.append(overview_table(benchmarks, rows))
    paper = load_paper()
    return _section("results", "Results", parts, benchmarks, lambda runs: [results_table(runs, rows, paper)])


def significance_section(benchmarks: Benchmarks, against: str | None) -> Section:
    """Could a difference be chance?"""
    explanation = Paragraph(
        "A difference in points is positive where the chosen method is better. Both tests compare "
        "the same rounds of both methods; Holm's correction keeps the chance of any false alarm in "
        "a table at 5 %, if that method was chosen beforehand. Rounds differ in class order or split, and "
        "share texts: take p values as a guide."
    )

    def compare(runs: BenchmarkRuns) -> list[Part]:
        table = significance_table(runs, against)
        return [table] if table is not None else [Paragraph("There is no second method to compare with.")]

    return _section("significance", "Are the differences real?", [explanation], benchmarks, compare)


def curves_section(benchmarks: Benchmarks, rows: Sequence[str]) -> Section:
    """How does accuracy fall as classes are added?"""
    styles = line_styles(rows)
    explanation = "Over all classes seen so far. A method that is trained only at the end has a single point."
    return _section(
        "curves",
        "Accuracy after each task",
        [Paragraph(explanation)],
        benchmarks,
        lambda runs: [draw_curves(runs, styles), tasks_table(runs)],
    )


def matrices_section(benchmarks: Benchmarks) -> Section:
    """What happened to each task?"""
    explanation = Paragraph(
        "Accuracy in percent on the test texts of each task (column) after each task (row), mean "
        "over rounds: read a column downwards to see a task being forgotten. Darker is worse."
    )
    return _section(
        "matrices",
        "Every task after every task",
        [explanation],
        benchmarks,
        lambda runs: [Grid([draw_matrix(runs.name, method) for method in runs.methods])],
    )


def classes_section(benchmarks: Benchmarks) -> Section:
    """Which classes were forgotten?"""
    explanation = Paragraph(
        f"The {WORST} classes that fell most from their best earlier accuracy, mean over the rounds "
        "in which they were not learned last: points lost, accuracy now, and the class that their "
        "texts are most often taken for."
    )

    def list_classes(runs: BenchmarkRuns) -> list[Part]:
        tables = [forgotten_table(runs.name, method) for method in runs.methods]
        found = [table for table in tables if table is not None]
        return [Grid(found)] if found else [Paragraph("No earlier predictions are stored.")]

    return _section("classes", "Forgotten classes", [explanation], benchmarks, list_classes)


def costs_section(benchmarks: Benchmarks) -> Section:
    """What does it cost?"""
    return _section("costs", "Time and memory", [], benchmarks, lambda runs: [costs_table(runs)])


def settings_section(benchmarks: Benchmarks) -> Section:
    """How can it be done again?"""
    results = [result for runs in benchmarks for result in runs.results]
    section = _section(
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
    typed = commands(results)
    last: list[Part] = [Heading("Commands"), Listing(typed)] if typed else []
    last += [Heading("Software and files"), versions_table(results), files_table(results)]
    return Section(section.name, section.title, [*section.parts, *last])


def report_sections(benchmarks: Benchmarks, against: str | None) -> list[Section]:
    """All sections, in the order of the page."""
    rows = row_names(benchmarks)
    return [
        results_section(benchmarks, rows),
        significance_section(benchmarks, against),
        curves_section(benchmarks, rows),
        matrices_section(benchmarks),
        classes_section(benchmarks),
        costs_section(benchmarks),
        settings_section(benchmarks),
    ]


def _section(
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
