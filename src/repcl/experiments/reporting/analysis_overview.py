"""The table of many analyses: the main numbers of each run on a line."""

from collections.abc import Sequence

from repcl.analysis.estimator_settings import EstimatorSettings
from repcl.analysis.transfer import SHOTS
from repcl.experiments.reporting.analysis_tables import QUANTITIES, nats, points
from repcl.experiments.reporting.estimator_notes import estimator_notes
from repcl.experiments.reporting.table import Column, Row, Table, count, missing, number, word
from repcl.experiments.representations.analysis import Representations, RunAnalysis
from repcl.experiments.runs.result import Result


def overview_table(runs: Sequence[tuple[Result, RunAnalysis]]) -> Table:
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
    rows = [_overview(result, analysis.representations) for result, analysis in runs]
    notes = ["Information in nats, by MINE; transfer in points. A dash: not kept, or too few texts."]
    settings: dict[str, list[EstimatorSettings]] = {}
    for result, analysis in runs:
        if analysis.representations is not None:
            settings.setdefault(_name(result), []).append(analysis.settings)
    return Table("analysis", "Analysis of all runs", columns, [rows], [*notes, *estimator_notes(settings)])


def _name(result: Result) -> str:
    return f"{result.benchmark} {result.row}"


def _overview(result: Result, known: Representations | None) -> Row:
    accuracy = None if result.final_accuracy is None else 100 * result.final_accuracy
    start = [word(_name(result)), count(result.round), number(accuracy)]
    if known is None:
        return [*start, *[missing()] * (len(QUANTITIES) + len(SHOTS) + 2)]
    return [
        *start,
        *(nats(one.value) for one in (known.inputs, known.classes, known.same_class)),
        number(known.first.effective_rank),
        *(points(known.forward_transfer.get(shots)) for shots in SHOTS),
        points(known.masked_backward_transfer),
    ]
