"""The paper's study of representations: mutual information and transfer, as tables and figures."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Literal

from repcl.analysis.mutual_information import MutualInformation
from repcl.analysis.transfer import SHOTS
from repcl.evaluation import summarize
from repcl.experiments.paper.numbers import Paper
from repcl.experiments.reports.analysis_tables import caution_notes
from repcl.experiments.reports.figures import draw_fitting, draw_probes, draw_spectra
from repcl.experiments.reports.grouping import BenchmarkRuns, MethodRuns
from repcl.experiments.reports.html import Folded, Grid, Part
from repcl.experiments.reports.scores import accuracy_cell, mark_notes, mixed_notes
from repcl.experiments.reports.table import (
    Cell,
    Column,
    Table,
    count,
    mean_and_spread,
    number,
    word,
)
from repcl.experiments.representations.analysis import Representations, RunAnalysis

Benchmarks = Sequence[BenchmarkRuns]
Quantity = Literal["I(X1;Z1)", "I(Z;Y)", "I(Z1;Z1+)"]
Question = Callable[[Representations], float | None]
PROBE_SHOTS = 5

READING = (
    "Mutual information in nats, mean ± standard deviation over rounds, by InfoNCE, a lower bound without "
    "outliers. MINE, the paper's bound, stands beside it: the same critics, fitted on one half of the test "
    "texts and read off the other. Its median over fits is taken, as a fit can fall nats below the others "
    "when a single independent pair has a high score. Both measure "
    "the estimator as much as the model: compare rows with each other, not with other papers. I(Z;Y) cannot "
    "exceed ln of the number of classes, nor can it be below the column Fano, which follows from the "
    "accuracy; an estimate below that under-fits. So do the paper's own values (at most 2.45 for FewRel, "
    "where its accuracy implies at least 3.2), of which only the order can be compared."
)

TRANSFER_NOTES = [
    "Forward: accuracy of a probe that learns the next task from so many texts per class, just before that "
    "task, minus the same probe on the untouched encoder; below 0 is representation bias.",
    "Backward: change of old tasks since they were learned, when the task of each text is given.",
    "Drift: 1 - cosine of old centroids before and after a task, mean over tasks.",
]


def bias_tables(benchmarks: Benchmarks, rows: Sequence[str], paper: Paper) -> list[Table]:
    """Does learning one task at a time throw away what is needed? `joint` is the paper's "Supervised"."""
    return [
        table
        for runs in benchmarks
        for table in (_bias_table(runs, rows, paper), *transfer_tables("bias", runs, rows))
    ]


def representation_tables(benchmarks: Benchmarks, rows: Sequence[str], paper: Paper) -> list[Table]:
    """Does more class-relevant information in the representations go with higher accuracy?"""
    return [
        table
        for runs in benchmarks
        for table in (
            _representation_table(runs, rows, paper),
            *transfer_tables("representation", runs, rows),
        )
    ]


def first_task_table(runs: BenchmarkRuns, rows: Sequence[str], paper: Paper) -> Table:
    """What the first task's representations hold, for runs that learned no other task as well."""
    of_inputs = {
        row: values[0]
        for table in (paper.information, paper.representation)
        for row, values in table.get(runs.name, {}).items()
    }
    of_pairs = {row: values[1] for row, values in paper.representation.get(runs.name, {}).items()}
    columns = [
        Column("method", is_text=True),
        Column("rounds"),
        *_information_columns("I(X1;Z1)", has_paper=bool(of_inputs)),
        *_information_columns("I(Z1;Z1+)", has_paper=bool(of_pairs)),
        Column("effective rank", ("effective rank", "effective rank sd")),
    ]
    body = []
    for name in rows:
        known = _known_rounds(runs, name)
        ranks = [one.first.effective_rank for one in known]
        body.append(
            [
                word(name),
                count(len(known)),
                *_information_cells(known, "I(X1;Z1)", of_inputs.get(name), has_paper=bool(of_inputs)),
                *_information_cells(known, "I(Z1;Z1+)", of_pairs.get(name), has_paper=bool(of_pairs)),
                mean_and_spread(summarize(ranks) if ranks else None),
            ]
        )
    notes = _information_notes(runs, rows, ["I(X1;Z1)", "I(Z1;Z1+)"])
    notes += [
        _order_note(runs, rows, "I(X1;Z1)", of_inputs),
        _order_note(runs, rows, "I(Z1;Z1+)", of_pairs),
    ]
    title = f"{runs.name}: information in the representations of the first task, nats"
    return Table(f"{runs.name}-first-task", title, columns, [body], [note for note in notes if note])


def transfer_tables(recipe: str, runs: BenchmarkRuns, rows: Sequence[str]) -> list[Table]:
    """Means over rounds of every row that was analyzed; no table without any."""
    # a method that is trained only at the end has nothing between tasks
    known = {
        name: found for name in rows if (found := [one for one in _known_rounds(runs, name) if one.movements])
    }
    if not known:
        return []
    questions = _questions()
    columns = [
        Column("method", is_text=True),
        *(Column(title, (title, f"{title} sd")) for title in questions),
    ]
    body = [
        [word(name), *(_cell(rounds, question, digits) for question, digits in questions.values())]
        for name, rounds in known.items()
    ]
    title = f"{runs.name}: transfer between tasks, points, and drift"
    notes = [*TRANSFER_NOTES, *mixed_notes([method for name in known if (method := runs.find(name))])]
    return [Table(f"paper-{recipe}-transfer-{runs.name}", title, columns, [body], notes)]


def bias_figures(benchmarks: Benchmarks, rows: Sequence[str]) -> list[Part]:
    """Probes of future tasks, for every benchmark."""
    return [part for runs in benchmarks for part in _bias_parts(runs, rows)]


def representation_figures(benchmarks: Benchmarks, rows: Sequence[str]) -> list[Part]:
    """Fitting curves and spectra, for every benchmark."""
    return [part for runs in benchmarks for part in _representation_parts(runs, rows)]


def analyzed_rows(runs: BenchmarkRuns) -> list[str]:
    """The rows with at least one analyzed round."""
    return [method.name for method in runs.methods if _known_rounds(runs, method.name)]


def _bias_table(runs: BenchmarkRuns, rows: Sequence[str], paper: Paper) -> Table:
    printed = paper.information.get(runs.name, {})
    columns = [
        Column("method", is_text=True),
        *_information_columns("I(X1;Z1)", has_paper=bool(printed)),
        *_information_columns("I(Z;Y)", has_paper=bool(printed)),
        Column("Fano"),
        Column("Acc", ("Acc", "Acc sd")),
    ]
    body = []
    for name in rows:
        known, published = _known_rounds(runs, name), printed.get(name, (None, None))
        fano = [one.fano for one in known if one.fano is not None]
        body.append(
            [
                word(name),
                *_information_cells(known, "I(X1;Z1)", published[0], has_paper=bool(printed)),
                *_information_cells(known, "I(Z;Y)", published[1], has_paper=bool(printed)),
                mean_and_spread(summarize(fano) if fano else None, digits=2),
                accuracy_cell(runs.find(name)),
            ]
        )
    title = f"{runs.name}: information about the inputs after task 1, and about all classes at the end"
    notes = _information_notes(runs, rows, ["I(X1;Z1)", "I(Z;Y)"])
    order = {row: values[1] for row, values in printed.items()}
    notes.append(_order_note(runs, rows, "I(Z;Y)", order))
    return Table(f"paper-bias-{runs.name}", title, columns, [body], [note for note in notes if note])


def _representation_table(runs: BenchmarkRuns, rows: Sequence[str], paper: Paper) -> Table:
    printed = paper.representation.get(runs.name, {})
    has_paper = bool(printed)
    columns = [
        Column("method", is_text=True),
        *_information_columns("I(X1;Z1)", has_paper=has_paper),
        *_information_columns("I(Z1;Z1+)", has_paper=has_paper),
        Column("Acc", ("Acc", "Acc sd")),
        *([Column("paper", ("Acc paper",))] if has_paper else []),
        Column("effective rank", ("effective rank", "effective rank sd")),
    ]
    body = []
    for name in rows:
        known, published = _known_rounds(runs, name), printed.get(name, (None, None, None))
        ranks = [one.first.effective_rank for one in known]
        body.append(
            [
                word(name),
                *_information_cells(known, "I(X1;Z1)", published[0], has_paper=has_paper),
                *_information_cells(known, "I(Z1;Z1+)", published[1], has_paper=has_paper),
                accuracy_cell(runs.find(name)),
                *([number(published[2])] if has_paper else []),
                mean_and_spread(summarize(ranks) if ranks else None),
            ]
        )
    title = f"{runs.name}: information in the representations of the first task, and final accuracy"
    notes = _information_notes(runs, rows, ["I(X1;Z1)", "I(Z1;Z1+)"])
    return Table(f"paper-representation-{runs.name}", title, columns, [body], notes)


def _information_columns(title: str, *, has_paper: bool) -> list[Column]:
    """Ours by InfoNCE, then by MINE and, where there is one, the paper's."""
    ours = [Column(title, (title, f"{title} sd")), Column("MINE", (f"{title} MINE",))]
    return [*ours, Column("paper", (f"{title} paper",))] if has_paper else ours


def _information_cells(
    known: Sequence[Representations], quantity: Quantity, published: float | None, *, has_paper: bool
) -> list[Cell]:
    """The cells under `_information_columns`."""
    found = [_estimate(one, quantity) for one in known]
    values = [one.value for one in found if one.value is not None]
    second = [one.info_nce for one in found if one.info_nce is not None]
    cells = [mean_and_spread(summarize(second) if second else None, digits=2)]
    cells.append(number(summarize(values).mean if values else None, 2))
    return [*cells, number(published, 2)] if has_paper else cells


def _information_notes(runs: BenchmarkRuns, rows: Sequence[str], quantities: Sequence[Quantity]) -> list[str]:
    """Ceilings, what could not be estimated and why, what cannot be compared, marks of incomplete data."""
    known = [one for name in rows for one in _known_rounds(runs, name)]
    notes = []
    for quantity in quantities:
        found = [_estimate(one, quantity) for one in known]
        reasons = sorted({one.note for one in found if one.note})
        if reasons:
            notes.append(f"{quantity}: {'; '.join(reasons)}.")
        estimated = [one for one in found if one.value is not None]
        if estimated:
            notes.append(f"{quantity}: {_ceilings(estimated)}.")
    absent = [name for name in rows if runs.find(name) and not _known_rounds(runs, name)]
    if absent:
        notes.append(
            f"Not analyzed: {', '.join(absent)}; `repcl analyze` does it for runs that saved representations."
        )
    settings = {name: [one.settings for one in _analyzed_rounds(runs, name)] for name in rows}
    rounds = {name: len(analyzed) for name, analyzed in settings.items() if analyzed}
    if len(set(rounds.values())) > 1:
        notes.append(f"Rounds analyzed: {', '.join(f'{name} {number}' for name, number in rounds.items())}.")
    methods = [method for name in rows if (method := runs.find(name))]
    return [*notes, *caution_notes(settings), *mixed_notes(methods), *mark_notes(methods)]


def _ceilings(found: Sequence[MutualInformation]) -> str:
    fewest = min(found, key=lambda one: one.texts)
    about = f"read off {fewest.texts} texts, no value above their ln {fewest.text_ceiling:.2f} can be trusted"
    ceilings = sorted({one.class_ceiling for one in found if one.class_ceiling is not None})
    if not ceilings:
        return about
    classes = " to ".join(dict.fromkeys(f"{one:.2f}" for one in (ceilings[0], ceilings[-1])))
    return f"at most ln of the classes, {classes}; {about}"


def _order_note(
    runs: BenchmarkRuns, rows: Sequence[str], quantity: Quantity, printed: Mapping[str, float]
) -> str:
    """Our orders of rows by both bounds of a quantity, beside the paper's where it has them."""
    found = {name: [_estimate(one, quantity) for one in _known_rounds(runs, name)] for name in rows}
    ours = _means(found, lambda one: one.value)
    if len(ours) < 2:
        return ""
    second = _means(found, lambda one: one.info_nce)
    paper = {name: printed[name] for name in ours if name in printed}
    beside = f"; the paper's: {_falling(paper)}" if len(paper) > 1 else ""
    return f"Order by {quantity}: {_falling(second)}; by MINE: {_falling(ours)}{beside}."


def _means(
    found: Mapping[str, Sequence[MutualInformation]], bound: Callable[[MutualInformation], float | None]
) -> dict[str, float]:
    """The mean over rounds of one bound, for the rows that have it."""
    known = {
        name: [value for one in rounds if (value := bound(one)) is not None] for name, rounds in found.items()
    }
    return {name: summarize(values).mean for name, values in known.items() if values}


def _falling(values: Mapping[str, float]) -> str:
    """Names from the highest value to the lowest; equal ones, as printed with two digits, are tied."""
    ranked = sorted(values, key=lambda name: -values[name])
    signs = ["=" if f"{values[a]:.2f}" == f"{values[b]:.2f}" else ">" for a, b in pairwise(ranked)]
    return ranked[0] + "".join(f" {sign} {name}" for sign, name in zip(signs, ranked[1:], strict=True))


def info_nce_by_round(method: MethodRuns, quantity: Quantity) -> dict[int, float]:
    """InfoNCE's bound of a quantity in the rounds that were analyzed."""
    found = {
        run.result.round: _estimate(run.analysis.representations, quantity).info_nce
        for run in method.runs
        if run.analysis is not None and run.analysis.representations is not None
    }
    return {round: value for round, value in found.items() if value is not None}


def estimated_by_round(method: MethodRuns) -> dict[int, tuple[object, ...]]:
    """How each round was encoded and estimated; values are compared only where that is alike."""
    return {
        run.result.round: (
            run.analysis.settings,
            run.result.encoder,
            run.result.precision,
            run.result.settings.get("precision", "full"),
        )
        for run in method.runs
        if run.analysis is not None
    }


def variance_by_round(method: MethodRuns) -> dict[int, float]:
    """The sum of the first eigenvalues after task 1, of vectors of length 1, in the rounds analyzed."""
    return {
        run.result.round: sum(run.analysis.representations.first.unit)
        for run in method.runs
        if run.analysis is not None and run.analysis.representations is not None
    }


def _analyzed_rounds(runs: BenchmarkRuns, name: str) -> list[RunAnalysis]:
    """The rounds of a row whose representations were analyzed."""
    method = runs.find(name)
    analyses = [run.analysis for run in method.runs] if method is not None else []
    return [one for one in analyses if one is not None and one.representations is not None]


def _known_rounds(runs: BenchmarkRuns, name: str) -> list[Representations]:
    """What is known about the representations of a row, round by round."""
    return [one.representations for one in _analyzed_rounds(runs, name) if one.representations is not None]


def _estimate(known: Representations, quantity: Quantity) -> MutualInformation:
    return {"I(X1;Z1)": known.inputs, "I(Z;Y)": known.classes, "I(Z1;Z1+)": known.same_class}[quantity]


def _questions() -> dict[str, tuple[Question, int]]:
    """Titles, with what is asked and how many digits are shown."""
    return {
        **{f"forward, {shots}-shot": (_forward(shots), 1) for shots in SHOTS},
        "backward, task given": (_backward, 1),
        "drift": (_drift, 3),
    }


def _cell(rounds: Sequence[Representations], question: Question, digits: int) -> Cell:
    values = [value for one in rounds if (value := question(one)) is not None]
    return mean_and_spread(summarize(values) if values else None, digits=digits)


def _forward(shots: int) -> Question:
    return lambda known: _points(known.forward_transfer.get(shots))


def _backward(known: Representations) -> float | None:
    return _points(known.masked_backward_transfer)


def _drift(known: Representations) -> float | None:
    return fmean(one.turned for one in known.movements) if known.movements else None


def _points(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _representation_parts(runs: BenchmarkRuns, rows: Sequence[str]) -> list[Part]:
    """Fitting curves of both estimates and the spectra of the first task."""
    known = {name: found for name in rows if (found := _known_rounds(runs, name))}
    is_held_out = any(one.settings.is_held_out for name in known for one in _analyzed_rounds(runs, name))
    parts: list[Part] = []
    drawn: list[tuple[str, Quantity]] = [("same-class", "I(Z1;Z1+)"), ("inputs", "I(X1;Z1)")]
    for file, quantity in drawn:
        of_rows = {name: [_estimate(one, quantity) for one in rounds] for name, rounds in known.items()}
        estimates = {
            name: estimated
            for name, rounds in of_rows.items()
            if (estimated := [one for one in rounds if one.value is not None])
        }
        if estimates:
            name, about = f"{runs.name}-fitting-{file}", f"{runs.name}: {quantity}"
            parts.append(draw_fitting(name, about, estimates, is_held_out=is_held_out))
    if known:
        spectra = {name: [one.first for one in rounds] for name, rounds in known.items()}
        untouched = [one.untouched for one in next(iter(known.values()))]
        parts.append(draw_spectra(f"{runs.name}-spectra", {"untouched": untouched, **spectra}))
    return parts


def _bias_parts(runs: BenchmarkRuns, rows: Sequence[str]) -> list[Part]:
    """Probes of future tasks: the direct test of representation bias."""
    matrices = {
        name: [one.probes[PROBE_SHOTS] for one in known if one.movements]
        for name in rows
        if (known := _known_rounds(runs, name))
    }
    drawings = [
        draw_probes(f"{runs.name}-{name}-probes", name, found, shots=PROBE_SHOTS)
        for name, found in matrices.items()
        if found
    ]
    if not drawings:
        return []
    return [Folded(f"{runs.name}: probes of tasks that were not learned yet", [Grid(drawings)])]
