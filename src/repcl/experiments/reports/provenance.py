"""The tables of how runs were made and what that cost: settings, data, versions, time and memory."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from repcl.benchmarks import BENCHMARKS
from repcl.benchmarks.stream import other_bytes_note
from repcl.experiments.reports.grouping import BenchmarkRuns, MethodRuns
from repcl.experiments.reports.table import Cell, Column, Row, Table, count, missing, seconds, size, word
from repcl.experiments.runs.result import Result
from repcl.methods import METHODS

LAST_STAGE = "evaluation"
SEVERAL = "Made on several processors"

SecondsByStage = Callable[[Result], dict[str, float]]


def settings_table(runs: BenchmarkRuns, *, everything: bool = False) -> Table:
    """Settings of every method: those that differ between methods or from the defaults, or all."""
    used = {method.name: _settings(method) for method in runs.methods}
    names = list(dict.fromkeys(name for settings in used.values() for name in settings))
    if not everything:
        names = [name for name in names if _is_distinctive(name, runs.methods)]
    rows = [
        [word(name), *(_value_cell(settings, name) for settings in used.values())] for name in sorted(names)
    ]
    which = "all settings" if everything else "settings that differ between methods or from their defaults"
    columns = [Column("setting", is_text=True), *(Column(method) for method in used)]
    return Table(f"{runs.name}-settings{'-all' * everything}", f"{runs.name}: {which}", columns, [rows])


def origin_table(runs: BenchmarkRuns) -> Table:
    """Encoder, preset and data of every method."""
    columns = [
        *(Column(title, is_text=True) for title in ("method", "encoder", "preset", "rounds")),
        *(Column(title) for title in ("tasks", "classes", "training texts", "test texts")),
        Column("complete", is_text=True),
        Column("capped", is_text=True),
        Column("predictions", is_text=True),
    ]
    rows = [
        [
            word(method.name),
            word(_listed(result.encoder for result in method.results)),
            word(_listed(result.preset for result in method.results)),
            word(_listed(str(result.round) for result in method.results)),
            count(method.tasks),
            count(method.results[0].data.classes),
            count(method.results[0].data.train),
            count(method.results[0].data.test),
            word("yes" if all(result.data.complete for result in method.results) else "no"),
            word("yes" if any(result.data.capped for result in method.results) else "no"),
            word(_stored_predictions(method)),
        ]
        for method in runs.methods
    ]
    notes = list(
        dict.fromkeys(note for result in runs.results for note in (*result.data.notes, *_other_bytes(result)))
    )
    return Table(f"{runs.name}-origin", f"{runs.name}: encoder, preset and data", columns, [rows], notes)


def versions_table(results: Sequence[Result]) -> Table:
    """Versions of the software that the runs used."""
    names = list(dict.fromkeys(name for result in results for name in result.versions))
    rows = [
        [word(name), word(_listed(result.versions[name] for result in results if name in result.versions))]
        for name in names
    ]
    columns = [Column("software", is_text=True), Column("version", is_text=True)]
    return Table("versions", "Versions", columns, [rows])


def files_table(results: Sequence[Result]) -> Table:
    """Hashes of the data files that were read."""
    found = {
        (result.benchmark, name, digest) for result in results for name, digest in result.data.files.items()
    }
    columns = [Column(title, is_text=True) for title in ("benchmark", "file", "sha256")]
    return Table("files", "Data files", columns, [[list(map(word, row)) for row in sorted(found)]])


def costs_table(runs: BenchmarkRuns) -> Table:
    """Time of a run by stage and what it keeps, means over rounds.

    Time is that of the processor where every run has measured it. Runs that read stored embeddings count only
    where a method has no others; so do runs on another processor than most.
    """
    by_stage, processor = _measured(runs), _common_processor(runs)
    seen = dict.fromkeys(stage for result in runs.results for stage in by_stage(result))
    stages = sorted(seen, key=lambda stage: stage == LAST_STAGE)
    columns = [
        Column("method", is_text=True),
        *(Column(stage, (f"{stage} seconds",)) for stage in stages),
        Column("total", ("total seconds",)),
        Column("exemplars"),
        Column("max per class", ("max exemplars per class",)),
        Column("text size", ("text bytes",)),
        Column("statistics", ("statistics bytes",)),
    ]
    threads = ", ".join(map(str, sorted({result.threads for result in runs.results})))
    return Table(
        f"{runs.name}-costs",
        f"{runs.name}: time of one run by stage, and what it keeps",
        columns,
        [[_costs_row(method, stages, by_stage, processor) for method in runs.methods]],
        [
            f"Means over rounds; threads of a run: {threads}. {_meaning(runs, by_stage)}",
            *processor_notes(runs),
        ],
    )


def total_seconds(runs: BenchmarkRuns) -> tuple[str, dict[str, float]]:
    """The kind of time that every run has measured, and how long one run of each method took, on average."""
    by_stage, processor = _measured(runs), _common_processor(runs)
    kind = "wall time" if by_stage is _wall_seconds else "processor time"
    return kind, {method.name: _total(_of_rounds(method, by_stage, processor)) for method in runs.methods}


def commands(results: Sequence[Result]) -> list[str]:
    """What was typed to make the runs."""
    return list(dict.fromkeys(result.command for result in results if result.command))


def _stored_predictions(method: MethodRuns) -> str:
    """In how many rounds predictions are stored, from which anyone can compute every metric again."""
    stored = sum(run.has_predictions for run in method.runs)
    if stored in (0, len(method.runs)):
        return "stored" if stored else "not stored"
    return f"stored in {stored} of {len(method.runs)} rounds"


def _other_bytes(result: Result) -> list[str]:
    """The note that files are not the public ones, also for runs that did not write it down."""
    if result.benchmark not in BENCHMARKS or not result.data.complete:
        return []
    known = {file.name: file.digest for file in BENCHMARKS[result.benchmark].files}
    differing = [
        name
        for name, digest in result.data.files.items()
        if (known.get(name) or "").startswith("sha256:") and known[name] != f"sha256:{digest}"
    ]
    return [other_bytes_note(differing)] if differing else []


def _settings(method: MethodRuns) -> dict[str, list[Any]]:
    """The values of every setting over rounds, each once."""
    values: dict[str, list[Any]] = {}
    for result in method.results:
        for name, value in result.settings.items():
            seen = values.setdefault(name, [])
            if value not in seen:
                seen.append(value)
    return values


def _is_distinctive(name: str, methods: Sequence[MethodRuns]) -> bool:
    """Whether a setting differs between two methods, or from the default of one."""
    used = [(method, _settings(method)[name]) for method in methods if name in _settings(method)]
    if any(values != used[0][1] for _, values in used):
        return True
    return any(values != [_default(method, name, values)] for method, values in used)


def _default(method: MethodRuns, name: str, values: Sequence[Any]) -> Any:
    """The default of a setting; the value itself where this version does not know method or setting."""
    known = METHODS.get(method.results[0].method)
    field = known.Settings.model_fields.get(name) if known is not None else None
    return values[0] if field is None else field.default


def _value_cell(settings: dict[str, list[Any]], name: str) -> Cell:
    if name not in settings:
        return missing()
    return word(_listed(value if isinstance(value, str) else json.dumps(value) for value in settings[name]))


def _listed(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def _meaning(runs: BenchmarkRuns, by_stage: SecondsByStage) -> str:
    """What kind of time is shown, and of which methods less than all of it."""
    if by_stage is _wall_seconds:
        words = "Wall time: other work on the machine makes it longer."
    else:
        words = "Time of the processor."
    warm = [method.name for method in runs.methods if not any(map(_is_cold, method.results))]
    return words + (f" Stored embeddings were read, which saves time: {', '.join(warm)}." if warm else "")


def processor_notes(runs: BenchmarkRuns) -> list[str]:
    """What the times were measured on; who compares times of several processors is warned."""
    common = _common_processor(runs)
    timed = {method.name: _timed(method, common) for method in runs.methods}
    results = [result for of_method in timed.values() for result in of_method]
    names = dict.fromkeys(result.processor or "one that is not known" for result in results)
    notes = [f"Processor: {common}."] if common is not None else []
    if len(names) > 1:
        other = [name for name, of_method in timed.items() if of_method[0].processor != common]
        notes = [
            f"{SEVERAL} ({', '.join(names)}): compare times with caution. "
            f"Not on {common}: {', '.join(other)}."
        ]
    fewer = [
        f"{method.name} {len(timed[method.name])} of {len(method.results)}"
        for method in runs.methods
        if len(timed[method.name]) < len(method.results)
    ]
    if fewer:
        notes.append(
            "Times leave out rounds on another processor, or that read stored embeddings. Rounds timed: "
            f"{', '.join(fewer)}."
        )
    return notes


def _common_processor(runs: BenchmarkRuns) -> str | None:
    """The processor that most rounds name."""
    named = Counter(result.processor for result in runs.results if result.processor is not None)
    return max(named, key=lambda name: named[name]) if named else None


def _costs_row(
    method: MethodRuns, stages: Sequence[str], by_stage: SecondsByStage, processor: str | None
) -> Row:
    of_rounds = _of_rounds(method, by_stage, processor)
    memories = [result.memory for result in method.results]
    kept = [sum(memory.exemplars_per_class.values()) for memory in memories]
    largest = max(max(memory.exemplars_per_class.values(), default=0) for memory in memories)
    return [
        word(method.name),
        *(_stage_cell([one[stage] for one in of_rounds if stage in one]) for stage in stages),
        seconds(_total(of_rounds)),
        count(round(fmean(kept))),
        count(largest),
        size(fmean(memory.text_bytes for memory in memories)),
        size(fmean(memory.statistics_bytes for memory in memories)),
    ]


def _measured(runs: BenchmarkRuns) -> SecondsByStage:
    """Time of the processor, if every run has it."""
    return _processor_seconds if all(map(_processor_seconds, runs.results)) else _wall_seconds


def _of_rounds(method: MethodRuns, by_stage: SecondsByStage, processor: str | None) -> list[dict[str, float]]:
    """The time of each round that counts."""
    return [by_stage(result) for result in _timed(method, processor)]


def _timed(method: MethodRuns, processor: str | None) -> list[Result]:
    """The rounds whose times can be compared: they embedded every text themselves, on this processor.

    Where no round did both, those that did the first; else all.
    """
    cold = [result for result in method.results if _is_cold(result)] or method.results
    return [result for result in cold if result.processor == processor] or cold


def _total(of_rounds: Sequence[Mapping[str, float]]) -> float:
    return fmean(sum(one.values()) for one in of_rounds)


def _stage_cell(spent: Sequence[float]) -> Cell:
    return seconds(fmean(spent) if spent else None)


def _is_cold(result: Result) -> bool:
    return not result.seconds.embeddings_read


def _wall_seconds(result: Result) -> dict[str, float]:
    return _by_stage(result.seconds.tasks)


def _processor_seconds(result: Result) -> dict[str, float]:
    return _by_stage(result.seconds.processor_tasks)


def _by_stage(tasks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for task in tasks:
        for stage, spent in task.items():
            totals[stage] = totals.get(stage, 0.0) + spent
    return totals
