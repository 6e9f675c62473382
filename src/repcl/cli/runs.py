"""The runs of `repcl bench` and `repcl reproduce`: checked before the first starts, made, and summed up."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from repcl.cli.failures import end_with, forget_failures, list_failures
from repcl.errors import InvalidSetting, RepclError

if TYPE_CHECKING:
    from repcl.benchmarks import StreamSpec
    from repcl.experiments.runs.pool import Failure
    from repcl.experiments.runs.result import Result
    from repcl.experiments.runs.spec import ResolvedRun, RunSpec


def typed_command() -> str:
    """What the user typed, for the record."""
    return shlex.join(["repcl", *sys.argv[1:]])


def refuse_shared_names(streams: "Sequence[StreamSpec]") -> None:
    """Refuse two files of one name: their runs would have one folder."""
    named: dict[str, str] = {}
    for data in dict.fromkeys(stream.name for stream in streams):
        other = named.setdefault(Path(data).stem, data)
        if other != data:
            raise InvalidSetting(
                f"{other} and {data} have one name, so that their runs would share a folder: rename one file."
            )


def note_idle_options(streams: "Sequence[StreamSpec]", console: Console) -> None:
    """Say which options about data do nothing with the data that were named."""
    from repcl.benchmarks import BENCHMARKS

    usual, names = streams[0], dict.fromkeys(stream.name for stream in streams)
    public = [name for name in names if name in BENCHMARKS]
    alike = [name for name in names if name not in public or BENCHMARKS[name].read_as_paper is None]
    if usual.protocol == "paper" and alike:
        console.print(f"Note: --protocol paper has no effect on {', '.join(alike)}: there it is the same.")
    if (usual.text_column, usual.label_column) != ("text", "label") and public:
        console.print(
            f"Note: --text-column and --label-column have no effect on {', '.join(public)}: the columns of a "
            "benchmark are known."
        )


def chosen_rounds(round: Sequence[int] | None, rounds: int | None, *, first: int) -> list[int]:
    """The rounds that `--round` names, each once, or the first so many, or one."""
    if round and rounds is not None:
        raise InvalidSetting("Expected --round or --rounds, found both: name each round, or say how many.")
    return list(dict.fromkeys(round or range(first, first + (rounds or 1))))


class Checked(NamedTuple):
    """What was asked for: runs that can be made, and what is skipped, each as the benchmark and the row."""

    runs: "list[ResolvedRun]"
    skipped: list[tuple[str, str]]


def checked_runs(specs: "Sequence[RunSpec]", console: Console) -> Checked:
    """Which runs can be made; what is wrong with any of them is found before the first starts."""
    from repcl.experiments.runs.spec import InputNotTaken

    checked, told = Checked([], []), set()
    for spec in specs:
        lines: list[str] = []
        try:
            checked.runs.append(spec.resolve())
        except InputNotTaken as error:
            lines.append(f"Skipped: {error}")
            checked.skipped.append((spec.load_stream().name, spec.method))
        for line in (*lines, *spec.load_stream().provenance.notes):
            if line not in told:
                told.add(line)
                console.print(line, style="yellow", highlight=False)
    return checked


def make_runs(
    runs: "Sequence[ResolvedRun]", console: Console, *, workers: int | None, ray: str | None
) -> "list[Result | Failure]":
    """Make the runs with a live overview, on this machine or on the Ray cluster named.

    Those that come out of the training of another one are read when that one is made.
    """
    from repcl.cli.progress import GridProgress
    from repcl.experiments.runs.companions import made_apart
    from repcl.experiments.runs.pool import perform_all
    from repcl.experiments.runs.run import make_run

    apart = made_apart(runs)
    with GridProgress([run.title for run in apart], console) as progress:
        if ray is not None:
            from repcl.experiments.runs.ray import run_on_ray

            made = run_on_ray(apart, address=ray, workers=workers, listener=progress.hear)
        else:
            unfinished = sum(run.finished is None for run in apart)  # no process is started for the others
            here = min(workers or os.cpu_count() or 1, unfinished)
            made = perform_all(apart, make_run, workers=here, listener=progress.hear)
    by_title = {run.title: outcome for run, outcome in zip(apart, made, strict=True)}
    brought = [run for run in runs if run.title not in by_title]
    by_title |= {run.title: found for run in brought if (found := _made_beside(run)) is not None}
    outcomes = [(run, by_title[run.title]) for run in runs if run.title in by_title]
    forget_failures(outcomes)
    return [outcome for _, outcome in outcomes]


def _made_beside(run: "ResolvedRun") -> "Result | Failure | None":
    """The result of a run that came out of another one's training; None where that one failed."""
    from repcl.experiments.runs.pool import failure_of

    try:
        return run.folder.earlier(run.fingerprint) if run.folder is not None else None
    except RepclError as error:
        return failure_of(run, error)


def finish(
    outcomes: "Sequence[Result | Failure]", skipped: Sequence[tuple[str, str]], out: Path, console: Console
) -> None:
    """The table of what was reached and what was skipped, the report, and what failed."""
    from repcl.cli.tables import print_results
    from repcl.experiments.reports.grouping import load_runs
    from repcl.experiments.reports.write import write_report
    from repcl.experiments.runs.pool import Failure
    from repcl.experiments.runs.result import Result

    results = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    print_results(results, console, skipped)
    try:
        if results:
            console.print(f"Report: {write_report(out, load_runs(out))}", highlight=False, soft_wrap=True)
    finally:  # what hindered an analysis may hinder the report too
        list_failures(failures, console)
    end_with(failures)
