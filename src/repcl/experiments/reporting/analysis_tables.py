"""The tables of one run's analysis, question by question."""

from collections.abc import Sequence
from statistics import fmean

from repcl.analysis.estimator_settings import EstimatorSettings
from repcl.analysis.mutual_information import MutualInformation
from repcl.analysis.spectrum import Spectrum
from repcl.experiments.reporting.estimator_notes import estimator_text
from repcl.experiments.reporting.table import Cell, Column, Row, Table, count, missing, number, word
from repcl.experiments.representations.analysis import Representations, RunAnalysis

WORST = 10

QUANTITIES = {
    "I(X1;Z1)": "what is kept of the inputs of task 1",
    "I(Z;Y)": "what is known about all classes at the end",
    "I(Z1;Z1+)": "what two texts of a class of task 1 share",
}


def run_tables(analysis: RunAnalysis) -> list[Table]:
    """Everything that is known about a run, question by question."""
    tables = []
    if (known := analysis.representations) is not None:
        tables += [_information(known, analysis.settings), _spectra(known), _transfer(known), _tasks(known)]
    return [*tables, _confusions(analysis), _forgotten(analysis)]


def nats(value: float | None) -> Cell:
    """A cell with an amount of information."""
    return number(value, 2)


def points(value: float | None) -> Cell:
    """A cell with a difference of accuracies, in points with its sign."""
    return missing() if value is None else Cell(f"{100 * value:+.1f}", (100 * value,))


def _information(known: Representations, settings: EstimatorSettings) -> Table:
    columns = [
        Column("quantity", is_text=True),
        Column("MINE"),
        Column("± critics"),
        Column("InfoNCE"),
        Column("at most, InfoNCE"),
        Column("at most, classes"),
        Column("texts"),
        Column("at most, texts"),
        Column("meaning", is_text=True),
    ]
    values = dict(zip(QUANTITIES, (known.inputs, known.classes, known.same_class), strict=True))
    rows = [_estimate(name, value) for name, value in values.items()]
    notes = [f"Estimated with {estimator_text(settings)}."]
    if known.fano is not None:
        notes.append(f"Fano: the final accuracy implies I(Z;Y) ≥ {known.fano:.2f}.")
    return Table("information", "Mutual information, nats", columns, [rows], notes)


def _estimate(name: str, value: MutualInformation) -> Row:
    return [
        word(name),
        nats(value.value),
        nats(value.spread),
        nats(value.info_nce),
        nats(value.info_nce_ceiling),
        nats(value.class_ceiling),
        count(value.texts),
        nats(value.text_ceiling),
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
    backward = points(known.masked_backward_transfer)
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
    name = word(f"next task from {shots} text{'s' * (shots > 1)} a class, percent")
    if not pairs:
        return [name, missing(), missing(), missing()]
    now, start = (100 * fmean(side) for side in zip(*pairs, strict=True))
    return [name, number(now), number(start), points(known.forward_transfer[shots])]


def _tasks(known: Representations) -> Table:
    columns = [
        Column("task"),
        Column("steps to half the loss"),
        Column("old centroids turned, 1 - cosine"),
        Column("moved, parts of their length"),
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
        Column("taken for the newer", is_text=True),
        Column("texts"),
        Column("percent of its texts"),
    ]
    rows = [
        [word(one.label), word(one.taken_for), count(one.texts), number(100 * one.share)]
        for one in analysis.confusions
    ]
    return Table("confusions", "Old classes taken for newer ones at the end", columns, [rows])


def _forgotten(analysis: RunAnalysis) -> Table:
    worst: Sequence[tuple[str, float]] = sorted(
        analysis.forgetting.items(), key=lambda item: (-item[1], item[0])
    )[:WORST]
    rows = [[word(label), number(100 * drop)] for label, drop in worst]
    columns = [Column("class", is_text=True), Column("points lost since its best moment")]
    return Table("forgetting", "Classes that lost most", columns, [rows])
