"""The tables of analyses: one run question by question, many runs, one line each, how they were estimated."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from statistics import fmean

from repcl.analysis.estimator_settings import EstimatorSettings
from repcl.analysis.mutual_information import MutualInformation
from repcl.analysis.spectrum import Spectrum
from repcl.analysis.transfer import SHOTS
from repcl.experiments.reports.scores import WORST
from repcl.experiments.reports.table import Cell, Column, Row, Table, count, missing, number, word
from repcl.experiments.representations.analysis import Representations, RunAnalysis
from repcl.experiments.runs.result import Result

QUANTITIES = {
    "I(X1;Z1)": "what is kept of the inputs of task 1",
    "I(Z;Y)": "what is known about all classes at the end",
    "I(Z1;Z1+)": "what two texts of a class of task 1 share",
}

BySettings = Mapping[str, Sequence[EstimatorSettings]]
"""The settings that the analyzed rounds of each row were estimated with."""


def run_tables(analysis: RunAnalysis) -> list[Table]:
    """Everything that is known about a run, question by question."""
    tables = []
    if (known := analysis.representations) is not None:
        tables += [_information(known, analysis.settings), _spectra(known), _transfer(known), _tasks(known)]
    return [*tables, _confusions(analysis), _forgotten(analysis)]


def analyses_table(runs: Sequence[tuple[Result, RunAnalysis]]) -> Table:
    """The main numbers of many runs, one line each."""
    columns = [
        Column("run", is_text=True),
        Column("round"),
        Column("accuracy, percent"),
        *(Column(name) for name in QUANTITIES),
        Column("effective rank, task 1"),
        *(Column(f"forward, {shots}-shot") for shots in SHOTS),
        Column("backward, task given"),
    ]
    rows = [_analysis_row(result, analysis.representations) for result, analysis in runs]
    notes = ["Information in nats, by MINE; transfer in points. A dash: not saved, or too few texts."]
    settings: dict[str, list[EstimatorSettings]] = {}
    for result, analysis in runs:
        if analysis.representations is not None:
            settings.setdefault(_name(result), []).append(analysis.settings)
    return Table("analysis", "Analysis of all runs", columns, [rows], [*notes, *_estimator_notes(settings)])


def _estimator_notes(rows: BySettings) -> list[str]:
    """How the values were estimated, where that is the same for all; else how they differ."""
    used = _distinct(rows)
    return [f"Estimated with {_estimator_text(used[0])}."] if len(used) == 1 else caution_notes(rows)


def caution_notes(rows: BySettings) -> list[str]:
    """Where values cannot be compared with each other, or with what is read off unseen texts."""
    used = _distinct(rows)
    notes = []
    if len(used) > 1:
        ways = "; ".join(f"{_differing(one, used)} ({', '.join(_rows_with(one, rows))})" for one in used)
        notes.append(
            f"Not estimated alike, which alone makes values differ: {ways}. "
            "`repcl analyze OUT` with one set of options makes them alike."
        )
    in_sample = [name for name, settings in rows.items() if not all(one.is_held_out for one in settings)]
    if in_sample:
        notes.append(f"Judged by the texts that were fitted on, so too high: {', '.join(in_sample)}.")
    return notes


def _estimator_text(settings: EstimatorSettings) -> str:
    """Critics, steps, and which texts they are judged by."""
    critics = f"{settings.critics} critic{'s' * (settings.critics > 1)}"
    steps = f"{'at most ' * (settings.patience is not None)}{settings.steps:,} steps"
    if settings.is_held_out:
        return f"{critics}, {steps}, fitted on one half of the texts and read off the other"
    return f"{critics}, {steps}, in-sample: read off the texts that were fitted on, so too high"


def _nats(value: float | None) -> Cell:
    """A cell with an amount of information."""
    return number(value, 2)


def _points(value: float | None) -> Cell:
    """A cell with a difference of accuracies, in points with its sign."""
    return missing() if value is None else Cell(f"{100 * value:+.1f}", (100 * value,))


def _information(known: Representations, settings: EstimatorSettings) -> Table:
    columns = [
        Column("quantity", is_text=True),
        Column("MINE"),
        Column("± critics"),
        Column("InfoNCE"),
        Column("InfoNCE ceiling"),
        Column("class ceiling"),
        Column("texts"),
        Column("text ceiling"),
        Column("meaning", is_text=True),
    ]
    values = dict(zip(QUANTITIES, (known.inputs, known.classes, known.same_class), strict=True))
    rows = [_estimate(name, value) for name, value in values.items()]
    notes = [f"Estimated with {_estimator_text(settings)}."]
    if known.fano is not None:
        notes.append(f"Fano: the final accuracy implies I(Z;Y) ≥ {known.fano:.2f}.")
    return Table("information", "Mutual information, nats", columns, [rows], notes)


def _estimate(name: str, value: MutualInformation) -> Row:
    return [
        word(name),
        _nats(value.value),
        _nats(value.spread),
        _nats(value.info_nce),
        _nats(value.info_nce_ceiling),
        _nats(value.class_ceiling),
        count(value.texts),
        _nats(value.text_ceiling),
        word(value.note or QUANTITIES[name]),
    ]


def _spectra(known: Representations) -> Table:
    columns = [
        Column("moment", is_text=True),
        Column("effective rank"),
        Column("participation ratio"),
        Column("share of the first C - 1, percent"),
        Column("largest eigenvalue, length 1"),
    ]
    moments = {"untouched": known.untouched, "after task 1": known.first, "at the end": known.last}
    rows = [_spectrum(name, spectrum) for name, spectrum in moments.items()]
    title = "Spread of the first task's test representations"
    return Table("spectrum", title, columns, [rows])


def _spectrum(name: str, spectrum: Spectrum) -> Row:
    return [
        word(name),
        number(spectrum.effective_rank),
        number(spectrum.participation_ratio),
        number(100 * spectrum.top_share),
        number(spectrum.unit[0], 3),
    ]


def _transfer(known: Representations) -> Table:
    columns = [
        Column("question", is_text=True),
        Column("value"),
        Column("untouched encoder"),
        Column("difference, points"),
    ]
    rows = [_forward(known, shots) for shots in known.probes]
    backward = _points(known.masked_backward_transfer)
    rows.append([word("old tasks since they were learned, task given"), missing(), missing(), backward])
    return Table("transfer", "Transfer between tasks", columns, [rows])


def _forward(known: Representations, shots: int) -> Row:
    """The probe just before each task, beside the same probe on the untouched encoder."""
    matrix = known.probes[shots]
    pairs = [
        (now, start)
        for task in range(1, len(matrix))
        if (now := matrix[task][task]) is not None and (start := matrix[0][task]) is not None
    ]
    name = word(f"next task from {shots} text{'s' * (shots > 1)} per class, percent")
    if not pairs:
        return [name, missing(), missing(), missing()]
    now, start = (100 * fmean(side) for side in zip(*pairs, strict=True))
    return [name, number(now), number(start), _points(known.forward_transfer[shots])]


def _tasks(known: Representations) -> Table:
    columns = [
        Column("task"),
        Column("steps to half the loss"),
        Column("old centroids turned, 1 - cosine"),
        Column("moved, relative to their length"),
    ]
    movements = {movement.task: movement for movement in known.movements}
    rows = []
    for task, steps in enumerate(known.steps_to_halve):
        movement = movements.get(task)
        rows.append(
            [
                count(task + 1),
                missing() if steps is None else count(steps),
                number(None if movement is None else movement.turned, 3),
                number(None if movement is None else movement.moved, 3),
            ]
        )
    return Table("tasks", "Learning speed and drift, task by task", columns, [rows])


def _confusions(analysis: RunAnalysis) -> Table:
    columns = [
        Column("old class", is_text=True),
        Column("confused with the newer", is_text=True),
        Column("texts"),
        Column("percent of its texts"),
    ]
    rows = [
        [word(one.label), word(one.taken_for), count(one.texts), number(100 * one.share)]
        for one in analysis.confusions
    ]
    return Table("confusions", "Old classes confused with newer ones at the end", columns, [rows])


def _forgotten(analysis: RunAnalysis) -> Table:
    worst: Sequence[tuple[str, float]] = sorted(
        analysis.forgetting.items(), key=lambda item: (-item[1], item[0])
    )[:WORST]
    rows = [[word(label), number(100 * drop)] for label, drop in worst]
    columns = [Column("class", is_text=True), Column("drop since its best moment, points")]
    return Table("forgetting", "Classes with the largest drop", columns, [rows])


def _name(result: Result) -> str:
    return f"{result.benchmark} {result.row}"


def _analysis_row(result: Result, known: Representations | None) -> Row:
    accuracy = None if result.final_accuracy is None else 100 * result.final_accuracy
    start = [word(_name(result)), count(result.round), number(accuracy)]
    if known is None:
        return [*start, *[missing()] * (len(QUANTITIES) + len(SHOTS) + 2)]
    return [
        *start,
        *(_nats(one.value) for one in (known.inputs, known.classes, known.same_class)),
        number(known.first.effective_rank),
        *(_points(known.forward_transfer.get(shots)) for shots in SHOTS),
        _points(known.masked_backward_transfer),
    ]


def _distinct(rows: BySettings) -> list[EstimatorSettings]:
    return list(dict.fromkeys(one for settings in rows.values() for one in settings))


def _differing(settings: EstimatorSettings, used: Sequence[EstimatorSettings]) -> str:
    """The settings whose values are not the same for all."""
    names = [one.name for one in fields(EstimatorSettings)]
    differing = [name for name in names if len({getattr(other, name) for other in used}) > 1]
    return ", ".join(f"{name} = {getattr(settings, name)}" for name in differing)


def _rows_with(settings: EstimatorSettings, rows: BySettings) -> list[str]:
    return [name for name, used in rows.items() if settings in used]
