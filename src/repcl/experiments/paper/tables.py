"""The paper's own tables, our values beside its values; data that it does not have get no paper column."""

from collections.abc import Container, Sequence

from repcl.experiments.paper.numbers import Paper, Published
from repcl.experiments.reports.grouping import BenchmarkRuns, MethodRuns
from repcl.experiments.reports.scores import (
    accuracy_cell,
    mark_notes,
    mixed_notes,
    paper_notes,
    rounds_notes,
)
from repcl.experiments.reports.table import (
    Cell,
    Column,
    Row,
    Table,
    mean_and_spread,
    mean_only,
    missing,
    number,
    padded,
    word,
)

MEMORY_SIZES = (5, 10, 20)


def main_tables(benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str], paper: Paper) -> list[Table]:
    """Accuracy and forgetting rate of every method on every benchmark."""
    columns = [Column("method", is_text=True)]
    for runs in benchmarks:
        columns += _with_paper(f"{runs.name} Acc", runs.name in paper.main)
        columns += _with_paper(f"{runs.name} FR", runs.name in paper.main)
    body = [
        [word(name), *(cell for runs in benchmarks for cell in _main_cells(runs, name, paper))]
        for name in rows
    ]
    title = "Accuracy (Acc) and forgetting rate (FR) after the last task, percent"
    return [Table("paper-main", title, columns, [body], _notes(benchmarks, rows, paper, paper.main))]


def ablation_tables(benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str], paper: Paper) -> list[Table]:
    """Final accuracy of the whole method and without each of its parts."""
    columns = [Column("method", is_text=True)]
    for runs in benchmarks:
        columns += _with_paper(f"{runs.name} Acc", runs.name in paper.ablation)
    body = [
        [word(name), *(cell for runs in benchmarks for cell in _accuracy_cells(runs, name, paper))]
        for name in rows
    ]
    title = "Final accuracy of the whole method and of its ablations, percent"
    return [Table("paper-ablation", title, columns, [body], _notes(benchmarks, rows, paper, paper.ablation))]


def full_tables(benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str], paper: Paper) -> list[Table]:
    """Accuracy after each task and forgetting rate, a table for each benchmark."""
    return [_full_table(runs, rows, paper) for runs in benchmarks]


def memory_tables(benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str], paper: Paper) -> list[Table]:
    """Final accuracy for several sizes of the memory, a table for each benchmark."""
    return [_memory_table(runs, rows, paper) for runs in benchmarks]


def _full_table(runs: BenchmarkRuns, rows: Sequence[str], paper: Paper) -> Table:
    tasks = max(runs.tasks, paper.tasks) if runs.name in paper.full else runs.tasks
    columns = [Column("method", is_text=True)]
    columns += [Column(f"T{task}", (f"T{task}", f"T{task} sd")) for task in range(1, tasks + 1)]
    columns.append(Column("FR", ("FR", "FR sd")))
    groups = [_full_rows(runs, name, tasks, paper) for name in rows]
    title = f"{runs.name}: accuracy after each task and forgetting rate (FR), percent"
    return Table(f"paper-full-{runs.name}", title, columns, groups, _notes([runs], rows, paper, paper.full))


def _full_rows(runs: BenchmarkRuns, name: str, tasks: int, paper: Paper) -> list[Row]:
    """Our row, and below it the paper's if it has one."""
    ours = runs.find(name)
    after = [mean_only(one) for one in ours.accuracies_after_task()] if ours is not None else []
    shown = Cell(name + (ours.mark if ours is not None else ""), (name,))
    body = [[shown, *padded(after, tasks), _forgetting_cell(ours)]]
    if name in paper.full.get(runs.name, {}):
        *printed, forgetting = map(_printed, paper.full[runs.name][name])
        body.append([word(f"{name}, paper"), *padded(printed, tasks), forgetting])
    return body


def _memory_table(runs: BenchmarkRuns, rows: Sequence[str], paper: Paper) -> Table:
    has_paper = runs.name in paper.memory
    columns = [Column("method", is_text=True)]
    for size in MEMORY_SIZES:
        columns += _with_paper(f"M = {size}", has_paper)
    methods = dict.fromkeys(name.partition("@")[0] for name in rows)
    body = [
        [
            word(method),
            *(
                cell
                for size in MEMORY_SIZES
                for cell in _accuracy_cells(runs, _memory_row(method, size), paper, has_paper=has_paper)
            ),
        ]
        for method in methods
    ]
    title = f"{runs.name}: final accuracy with M exemplars kept of each class, percent"
    notes = _notes([runs], rows, paper, paper.memory)
    if not has_paper and runs.name in paper.main:
        notes += [_published_memory(name, list(methods), paper) for name in paper.memory]
    return Table(f"paper-memory-{runs.name}", title, columns, [body], notes)


def _published_memory(benchmark: str, methods: Sequence[str], paper: Paper) -> str:
    """The paper's values on a benchmark that is not ours, in a sentence."""
    values = [
        f"{method} {', '.join(f'{published.accuracy:.1f}' for published in found)}"
        for method in methods
        if (found := _published_sizes(benchmark, method, paper))
    ]
    return f"The paper has this table for {benchmark} only: {'; '.join(values)}."


def _published_sizes(benchmark: str, method: str, paper: Paper) -> list[Published]:
    found = (paper.published(benchmark, _memory_row(method, size)) for size in MEMORY_SIZES)
    return [one for one in found if one is not None]


def _memory_row(method: str, size: int) -> str:
    return method if size == 10 else f"{method}@memory-{size}"


def _main_cells(runs: BenchmarkRuns, name: str, paper: Paper) -> list[Cell]:
    ours = runs.find(name)
    cells = [accuracy_cell(ours), _forgetting_cell(ours)]
    if runs.name not in paper.main:
        return cells
    published = paper.published(runs.name, name)
    accuracy = None if published is None else published.accuracy
    forgetting = None if published is None else published.forgetting
    return [cells[0], number(accuracy), cells[1], number(forgetting)]


def _accuracy_cells(
    runs: BenchmarkRuns, name: str, paper: Paper, *, has_paper: bool | None = None
) -> list[Cell]:
    ours = accuracy_cell(runs.find(name))
    if not (runs.name in paper.main if has_paper is None else has_paper):
        return [ours]
    published = paper.published(runs.name, name)
    return [ours, number(None if published is None else published.accuracy)]


def _with_paper(title: str, has_paper: bool) -> list[Column]:
    ours = Column(title, (title, f"{title} sd"))
    return [ours, Column("paper", (f"{title} paper",))] if has_paper else [ours]


def _forgetting_cell(method: MethodRuns | None) -> Cell:
    return missing(2) if method is None else mean_and_spread(method.summary("forgetting_rate"))


def _printed(value: float) -> Cell:
    """A value of the paper in a column that also has room for a standard deviation."""
    return Cell(f"{value:.1f}", (value, None))


def _notes(
    benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str], paper: Paper, covered: Container[str]
) -> list[str]:
    """What the signs mean, and how far the paper's values can be compared with ours."""
    shown = [method for runs in benchmarks for name in rows if (method := runs.find(name))]
    notes = mark_notes(shown)
    for runs in benchmarks:
        own = [method for name in rows if (method := runs.find(name))]
        notes += [f"{runs.name}: {note}" for note in (*mixed_notes(own), *rounds_notes(own))]
        if runs.name in covered:
            notes += [f"{runs.name}: {note}" for note in paper_notes(runs, rows, paper)]
    return notes
