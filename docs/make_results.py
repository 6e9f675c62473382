"""Makes the documentation's page of results from result files, so that no number in it is typed by hand.

    python docs/make_results.py

The words come from `docs/results.template.md`, where `{{ results hwu64 }}` stands for a table, and
`{{ accuracy hwu64 repcl }}` for a number within a sentence; `PLACEHOLDERS` lists all. Results of a folder of
their own, which no other table may mix with, are named by it: `{{ first-task/first_task fewrel }}`. The
figures that `{{ figure hwu64 }}` and `{{ first-task/representations fewrel }}` stand for are written beside
the page.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from repcl.benchmarks import BENCHMARKS
from repcl.errors import InvalidSetting, MissingData, UnknownName
from repcl.experiments.paper.information import (
    analyzed_rows,
    bias_tables,
    first_task_table,
    representation_figures,
    transfer_tables,
)
from repcl.experiments.paper.numbers import Paper, load_paper
from repcl.experiments.paper.recipes import find_recipe
from repcl.experiments.paper.verdicts import CLAIMS, NOTES, judge_in_brief, verdict_table
from repcl.experiments.reports.figures import Drawing, draw_costs, final_means
from repcl.experiments.reports.formats import to_markdown
from repcl.experiments.reports.grouping import BenchmarkRuns, MethodRuns, load_runs, row_names
from repcl.experiments.reports.provenance import (
    SEVERAL,
    costs_table,
    origin_table,
    processor_notes,
    total_seconds,
    versions_table,
)
from repcl.experiments.reports.scores import (
    overview_table,
    results_table,
    tasks_table,
)
from repcl.experiments.reports.significance import compare_methods, significance_tables
from repcl.experiments.reports.table import Cell, Column, Row, Table, mean_and_spread, missing, number, word
from repcl.experiments.reports.verdict import verdict
from repcl.files import write_whole
from repcl.methods import METHODS
from repcl.methods.variants import split_variant, variant_settings

Benchmarks = Sequence[BenchmarkRuns]
Answer = Callable[[Benchmarks, Sequence[str]], str]
NOTHING_YET = "*No results yet.*"
LOWER, UPPER = "sequential", "joint"
STRICT = "strict"  # the track
ABOVE_LOWER, ABOVE_UPPER = 20.0, 1.5
FIGURED = "hwu64"  # the benchmark that the page opens with
FAR = 30.0  # points
REPRESENTED = "first-task", "fewrel"  # the folder and benchmark whose representations are drawn
_PLACEHOLDER = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")


def render_results(template: str, results: Path) -> str:
    """Fill every placeholder of a template from the result files below a folder."""

    @cache
    def runs_of(folder: str) -> Benchmarks:
        return load_runs(results / folder)

    def fill(found: re.Match[str]) -> str:
        what, *words = found[1].split()
        folder, _, name = what.rpartition("/")
        if name not in PLACEHOLDERS:
            raise UnknownName("placeholder", name, PLACEHOLDERS)
        for one in words:
            _require_known(one)
        if not (results / folder).is_dir():
            raise MissingData(f"Expected the folder {results / folder} for {found[0]}, found none.")
        return PLACEHOLDERS[name](runs_of(folder), words).strip()

    return _PLACEHOLDER.sub(fill, template)


def _require_known(word: str) -> None:
    """Refuse a word that names nothing; what it names need not have been run."""
    name, variant = split_variant(word)
    if name in METHODS:
        variant_settings(name, variant)
    elif word not in (*BENCHMARKS, *CLAIMS, STRICT):
        raise UnknownName("benchmark, method or recipe", word, [*BENCHMARKS, *METHODS, *CLAIMS, STRICT])


def write_results_page(results: Path, page: Path) -> None:
    """Write the page from its template, which stands beside it."""
    template = page.with_suffix(f".template{page.suffix}")
    if not template.is_file():
        raise MissingData(f"Expected the words of the page in {template}, found no such file.")
    write_whole(page, render_results(template.read_text(encoding="utf-8"), results))
    for name, svg in draw_figures(results).items():
        path = page.parent / name
        path.parent.mkdir(exist_ok=True)
        write_whole(path, svg)


def draw_figures(results: Path) -> dict[str, str]:
    """The page's figures, by their paths beside the page."""
    drawn = [_costs_drawing(runs) for runs in load_runs(results) if runs.name == FIGURED]
    folder, benchmark = REPRESENTED
    drawn += _representation_drawings(load_runs(results / folder), benchmark)
    return {_figure_path(drawing): drawing.svg for drawing in drawn}


def _representation_drawings(benchmarks: Benchmarks, benchmark: str) -> list[Drawing]:
    """Both panels of the paper's figure: fitting curves of I(Z1;Z1+), and eigenvalues."""
    chosen = _named(benchmarks, [benchmark])
    parts = representation_figures(chosen, find_recipe("representation").methods)
    wanted = (f"{benchmark}-fitting-same-class", f"{benchmark}-spectra")
    return [part for part in parts if isinstance(part, Drawing) and part.name in wanted]


def _costs_drawing(runs: BenchmarkRuns) -> Drawing:
    """Accuracy against time; those far below would press the others together, and are named in words."""
    far, runs = _far_below(runs), _whole_methods(runs)
    shown = replace(runs, methods=tuple(method for method in runs.methods if method.name not in far))
    return draw_costs(shown, *total_seconds(runs))


def _whole_methods(runs: BenchmarkRuns) -> BenchmarkRuns:
    """Without the rows of ablations and other sizes of memory, which have tables of their own."""
    ablated = {row for row in find_recipe("ablation").methods if "@" in row}
    kept = [one for one in runs.methods if one.name not in ablated and "@memory-" not in one.name]
    return replace(runs, methods=tuple(kept))


def _far_below(runs: BenchmarkRuns) -> dict[str, float]:
    """The methods that end far below the best one, with their accuracy."""
    means = final_means(runs)
    return {name: mean for name, mean in means.items() if mean < max(means.values()) - FAR}


def _figure_path(drawing: Drawing) -> str:
    return f"images/{drawing.name}.svg"


def bounds_table(runs: BenchmarkRuns, paper: Paper) -> Table | None:
    """The first round that both bounds have; none without them.

    A method that learns at all lies well above fine-tuning without memory, and by more than chance above
    training on everything only if something is wrong.
    """
    lower, upper = (_accuracies(runs.find(name)) for name in (LOWER, UPPER))
    rounds = sorted(lower.keys() & upper.keys())
    if not rounds:
        return None
    chosen = rounds[0]
    lowest, highest = lower[chosen] + ABOVE_LOWER, upper[chosen] + ABOVE_UPPER
    reached = {
        method.name: accuracies[chosen]
        for method in runs.methods
        if chosen in (accuracies := _accuracies(method)) and method.name not in (LOWER, UPPER)
    }
    published = {row: accuracy for row, (accuracy, _) in paper.main.get(runs.name, {}).items()}
    common = [row for row in reached if row in published]
    ours, theirs = _ranks(reached, common), _ranks(published, common)

    def row(name: str) -> Row:
        accuracy = reached[name]
        return [
            word(name),
            number(accuracy),
            word("yes" if lowest <= accuracy <= highest else "no"),
            _rank_cell(ours, name),
            _rank_cell(theirs, name),
            number(published.get(name)),
        ]

    return Table(
        f"{runs.name}-bounds",
        f"{runs.name}: between the bounds, round {chosen}",
        [
            Column("method", is_text=True),
            Column("accuracy"),
            Column("within bounds", is_text=True),
            Column("rank"),
            Column("paper's rank"),
            Column("paper Acc"),
        ],
        [[row(name) for name in sorted(reached, key=lambda name: -reached[name])]],
        [
            f"In this round {LOWER} reached {lower[chosen]:.1f} and {UPPER} {upper[chosen]:.1f}.",
            f"Within bounds means from {lowest:.1f} ({LOWER} + {ABOVE_LOWER:.0f}) to {highest:.1f} "
            f"({UPPER} + {ABOVE_UPPER}).",
            "Ranks are among the methods that both sides have.",
        ],
    )


def _accuracies(method: MethodRuns | None) -> dict[int, float]:
    return {} if method is None else method.percents("final_accuracy")


def _ranks(accuracies: Mapping[str, float], rows: Sequence[str]) -> dict[str, int]:
    ordered = sorted(rows, key=lambda row: -accuracies[row])
    return {row: rank for rank, row in enumerate(ordered, start=1)}


def _rank_cell(ranks: Mapping[str, int], name: str) -> Cell:
    return Cell(str(ranks[name]), (ranks[name],)) if name in ranks else missing()


def _named(benchmarks: Benchmarks, names: Sequence[str]) -> list[BenchmarkRuns]:
    """The named benchmarks, or all if none is named."""
    return [runs for runs in benchmarks if not names or runs.name in names]


def _of_each(make: Callable[[BenchmarkRuns], Table | None]) -> Answer:
    """A table of the named benchmark, or of each of them."""

    def answer(benchmarks: Benchmarks, words: Sequence[str]) -> str:
        tables = [make(runs) for runs in _named(benchmarks, words)]
        return _markdown([table for table in tables if table is not None])

    return answer


def _results(runs: BenchmarkRuns) -> Table:
    return results_table(_whole_methods(runs), load_paper())


def _bounds(runs: BenchmarkRuns) -> Table | None:
    return bounds_table(runs, load_paper())


def _first_task(runs: BenchmarkRuns) -> Table | None:
    rows = analyzed_rows(runs)
    return first_task_table(runs, rows, load_paper()) if rows else None


def _overview(benchmarks: Benchmarks, _: Sequence[str]) -> str:
    return _markdown([overview_table(benchmarks, row_names(benchmarks))] if benchmarks else [])


def _significance(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    """Every table of tests of the named benchmarks, or of all."""
    tables = [table for runs in _named(benchmarks, words) for table in significance_tables(runs)]
    return _markdown(tables)


def _figure(benchmarks: Benchmarks, _: Sequence[str]) -> str:
    """The link to the figure, with its description for those who cannot see it."""
    for runs in benchmarks:
        if runs.name == FIGURED:
            far = "".join(f" Not shown: {name}, {mean:.1f}." for name, mean in _far_below(runs).items())
            return _shown(_costs_drawing(runs), far + _timed_elsewhere(runs))
    return NOTHING_YET


def _timed_elsewhere(runs: BenchmarkRuns) -> str:
    """The warning that not all times are of one processor, where they are not."""
    shown = _whole_methods(runs)
    return "".join(f" {note}" for note in processor_notes(shown) if note.startswith(SEVERAL))


def _shown(drawing: Drawing, more: str = "") -> str:
    """The link to a figure, with its description as a caption, too."""
    return f"![{drawing.description}]({_figure_path(drawing)})\n\n*{drawing.description}.{more}*"


def _representations(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    """The figures about representations of the named benchmark."""
    drawn = [drawing for name in words for drawing in _representation_drawings(benchmarks, name)]
    return "\n\n".join(map(_shown, drawn)) or NOTHING_YET


def _published_information(_benchmarks: Benchmarks, _: Sequence[str]) -> str:
    """The paper's table of mutual information, of which our runs have other parts."""
    paper = load_paper().information
    columns = [Column("method", is_text=True)]
    columns += [Column(f"{name} {quantity}") for name in paper for quantity in ("I(X1;Z1)", "I(Z;Y)")]
    rows = [
        [word(row), *(number(value, digits=2) for name in paper for value in paper[name][row])]
        for row in paper[REPRESENTED[1]]
    ]
    return _markdown([Table("published-information", "The paper's values, nats", columns, [rows])])


def _verdict(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    """Who ends best on the named benchmarks, and whether that could be chance; `strict`: of that track."""
    named = [runs for runs in benchmarks if runs.name in words]
    if STRICT in words:
        named = [
            replace(runs, methods=tuple(method for method in runs.methods if method.track == STRICT))
            for runs in named
        ]
    told = [verdict(_whole_methods(runs)) for runs in named]
    return " ".join(told).replace("\u00a0", " ") or NOTHING_YET


def _claim(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    """The first claim behind a recipe and its verdict on a benchmark, as a sentence."""
    if len(words) != 2:
        raise InvalidSetting(f"Expected a recipe and a benchmark in the placeholder, found {list(words)}.")
    recipe, benchmark = words
    runs = next((runs for runs in benchmarks if runs.name == benchmark), None)
    told = None if runs is None else judge_in_brief(CLAIMS[recipe][0], runs, load_paper())
    return told or NOTHING_YET


def _verdicts(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    """Verdicts on the claims behind the named recipes, on the named benchmarks or on all; without notes."""
    recipes = [word for word in words if word in CLAIMS]
    chosen = _named(benchmarks, [word for word in words if word not in CLAIMS])
    table = verdict_table(recipes, chosen, load_paper())
    return _markdown([replace(table, notes=[])] if table is not None else [])


def _verdict_notes(_benchmarks: Benchmarks, _: Sequence[str]) -> str:
    """What a verdict means, once for all tables of them."""
    return "\n\n".join(NOTES)


def _recipe(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    """The table of a recipe, on the named benchmarks only if there are any."""
    recipe = find_recipe(words[0] if words else "")
    chosen = _named(benchmarks, words[1:])
    run = [runs for runs in chosen if any(runs.find(row) for row in recipe.methods)]
    return _markdown(recipe.make_tables(run, recipe.methods, load_paper()) if run else [])


def _information(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    """What is known about inputs and classes, and transfer: every analyzed row, not only the paper's."""
    made = (bias_tables([runs], rows, load_paper()) for runs, rows in _analyzed(benchmarks, words))
    return _markdown([table for tables in made for table in tables])


def _transfer(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    """What passes from task to task: every analyzed row."""
    made = (transfer_tables("bias", runs, rows) for runs, rows in _analyzed(benchmarks, words))
    return _markdown([table for tables in made for table in tables])


def _analyzed(benchmarks: Benchmarks, words: Sequence[str]) -> list[tuple[BenchmarkRuns, list[str]]]:
    """The named benchmarks, or all, that have analyzed rows, with these rows."""
    chosen = _named(benchmarks, words)
    return [(runs, rows) for runs in chosen if (rows := analyzed_rows(runs))]


def _versions(benchmarks: Benchmarks, _: Sequence[str]) -> str:
    results = [result for runs in benchmarks for result in runs.results]
    return _markdown([versions_table(results)] if results else [])


def _accuracy(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    method = _find(benchmarks, words)
    return "–" if method is None else mean_and_spread(method.summary("final_accuracy"), method.mark).text


def _forgetting(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    method = _find(benchmarks, words)
    return "–" if method is None else mean_and_spread(method.summary("forgetting_rate")).text


def _rounds(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    method = _find(benchmarks, words)
    return "0" if method is None else str(len(method.results))


def _difference(benchmarks: Benchmarks, words: Sequence[str]) -> str:
    """Points by which the first method is better than the second over shared rounds."""
    first, second = _find(benchmarks, words[:2]), _find(benchmarks, [*words[:1], *words[2:]])
    if first is None or second is None:
        return "–"
    difference = compare_methods(first, second).difference
    return "–" if difference is None else f"{difference:+.1f}"


def _find(benchmarks: Benchmarks, words: Sequence[str]) -> MethodRuns | None:
    if len(words) != 2:
        raise InvalidSetting(f"Expected a benchmark and a method in the placeholder, found {list(words)}.")
    runs = next((runs for runs in benchmarks if runs.name == words[0]), None)
    return None if runs is None else runs.find(words[1])


def _markdown(tables: Sequence[Table]) -> str:
    return "\n".join(map(to_markdown, tables)) if tables else NOTHING_YET


PLACEHOLDERS: Mapping[str, Answer] = {
    "overview": _overview,
    "results": _of_each(_results),
    "figure": _figure,
    "representations": _representations,
    "published_information": _published_information,
    "verdict": _verdict,
    "verdicts": _verdicts,
    "verdict_notes": _verdict_notes,
    "claim": _claim,
    "significance": _significance,
    "tasks": _of_each(tasks_table),
    "bounds": _of_each(_bounds),
    "costs": _of_each(costs_table),
    "origin": _of_each(origin_table),
    "recipe": _recipe,
    "information": _information,
    "transfer": _transfer,
    "first_task": _of_each(_first_task),
    "versions": _versions,
    "accuracy": _accuracy,
    "forgetting": _forgetting,
    "rounds": _rounds,
    "difference": _difference,
}


if __name__ == "__main__":
    docs = Path(__file__).parent
    write_results_page(docs.parent / "results", docs / "results.md")
