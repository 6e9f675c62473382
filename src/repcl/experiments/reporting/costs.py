"""The table of what a run costs: time per stage, and memory kept."""

from collections.abc import Sequence
from statistics import fmean

from repcl.experiments.reporting.runs import BenchmarkRuns, MethodRuns
from repcl.experiments.reporting.table import Cell, Column, Row, Table, count, seconds, size, word
from repcl.experiments.runs.result import Result

LAST_STAGE = "evaluation"


def costs_table(runs: BenchmarkRuns) -> Table:
    """Means over rounds of one run."""
    seen = dict.fromkeys(stage for result in runs.results for stage in _seconds_by_stage(result))
    stages = sorted(seen, key=lambda stage: stage == LAST_STAGE)
    columns = [
        Column("method", is_text=True),
        *(Column(stage, (f"{stage} seconds",)) for stage in stages),
        Column("in all", ("all seconds",)),
        Column("exemplars", ("exemplars",)),
        Column("of a class", ("most exemplars of a class",)),
        Column("their text", ("text bytes",)),
        Column("statistics", ("statistics bytes",)),
    ]
    threads = ", ".join(map(str, sorted({result.threads for result in runs.results})))
    return Table(
        f"{runs.name}-costs",
        f"{runs.name}: time of one run by stage, and what it keeps",
        columns,
        [[_row(method, stages) for method in runs.methods]],
        [f"Means over rounds; threads of a run: {threads}. Other work on the machine makes times longer."],
    )


def _row(method: MethodRuns, stages: Sequence[str]) -> Row:
    of_rounds = [_seconds_by_stage(result) for result in method.results]
    memories = [result.memory for result in method.results]
    kept = [sum(memory.exemplars_per_class.values()) for memory in memories]
    largest = max(max(memory.exemplars_per_class.values(), default=0) for memory in memories)
    return [
        word(method.name),
        *(_stage_cell([one[stage] for one in of_rounds if stage in one]) for stage in stages),
        seconds(fmean(sum(one.values()) for one in of_rounds)),
        count(round(fmean(kept))),
        count(largest),
        size(fmean(memory.text_bytes for memory in memories)),
        size(fmean(memory.statistics_bytes for memory in memories)),
    ]


def _stage_cell(spent: Sequence[float]) -> Cell:
    return seconds(fmean(spent) if spent else None)


def _seconds_by_stage(result: Result) -> dict[str, float]:
    totals: dict[str, float] = {}
    for task in result.seconds.tasks:
        for stage, spent in task.items():
            totals[stage] = totals.get(stage, 0.0) + spent
    return totals
