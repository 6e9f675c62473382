"""`repcl reproduce`: the runs behind a table of the paper, and the table with ours beside the paper's."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from repcl.cli.analyze import perform_analyses
from repcl.cli.console import make_console
from repcl.cli.launch import processes_of, runs_at_a_time
from repcl.cli.options import (
    DataDirOption,
    DeviceOption,
    EncoderOption,
    FreshOption,
    OutOption,
    PresetOption,
    RayOption,
    ReportToOption,
    SaveRepresentationsOption,
    WorkersOption,
)
from repcl.cli.runs import checked_runs, finish, make_runs, refuse_shared_names, typed_command
from repcl.errors import InvalidSetting, MissingData

if TYPE_CHECKING:
    from repcl.experiments.paper.recipes import Recipe
    from repcl.experiments.runs.pool import Failure
    from repcl.experiments.runs.result import Result
    from repcl.experiments.runs.spec import ResolvedRun
    from repcl.presets import Preset

RECIPE_NAMES = "main, full, ablation, memory, bias or representation."


def reproduce(
    context: typer.Context,
    recipe: Annotated[str, typer.Argument(help=f"Which table: {RECIPE_NAMES}", metavar="RECIPE")],
    out: OutOption,
    benchmark: Annotated[
        list[str] | None, typer.Option(help="Use this benchmark instead of the paper's. Repeatable.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Run only this method of the recipe. Repeatable.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How many rounds, from round 0; default: the recipe's.")
    ] = None,
    preset: PresetOption = "cpu",
    encoder: EncoderOption = None,
    data_dir: DataDirOption = None,
    device: DeviceOption = None,
    workers: WorkersOption = None,
    ray: RayOption = None,
    save_representations: SaveRepresentationsOption = False,
    report_to: ReportToOption = None,
    fresh: FreshOption = False,
) -> None:
    """Reproduce a table of the RepCL paper: our values next to the paper's, in OUT/report.html."""
    from repcl.benchmarks import StreamSpec
    from repcl.experiments.paper.recipes import find_recipe, note_recipe
    from repcl.experiments.runs.ray_cluster import check_reachable
    from repcl.experiments.runs.spec import RunOptions, RunSpec
    from repcl.presets import load_preset

    processes = processes_of(context)
    console = make_console(is_quiet=not processes.is_first)
    here = runs_at_a_time(processes, workers=workers, device=device, ray=ray)
    if ray is not None:
        check_reachable(ray)  # before time is spent on an estimate
    chosen, limits = find_recipe(recipe), load_preset(preset)
    rows = _registered(chosen.choose(method or []), console)
    names = list(dict.fromkeys(benchmark)) if benchmark else _at_hand(chosen, data_dir, console)
    streams = [
        StreamSpec(
            name=name,
            round=number,
            data_dir=data_dir,
            max_train_per_class=limits.max_train_per_class,
            max_test_per_class=limits.max_test_per_class,
        )
        for name in names
        for number in range(rounds or chosen.rounds)
    ]
    refuse_shared_names(streams)
    options = RunOptions(
        encoder=encoder,
        preset=preset,
        out=out,
        fresh=fresh,
        save_representations=save_representations or chosen.save_representations,
        device=device,
        report_to=tuple(report_to or ()),
        command=typed_command(),
        processes=processes,
    )
    specs = [RunSpec(row, stream, options) for stream in streams for row in rows]
    runs, skipped = checked_runs(specs, console)
    at_a_time = workers if ray is not None else here
    console.print(_expectation(runs, at_a_time), highlight=False, soft_wrap=True)
    if processes.is_first:
        note_recipe(out, chosen)
    outcomes: list[Result | Failure] = make_runs(runs, console, workers=at_a_time, ray=ray)
    if not processes.is_first:
        return
    if chosen.save_representations:
        outcomes += _analyze(runs, outcomes, limits, console, workers=here)
    finish(outcomes, skipped, out, console)


def _analyze(
    runs: "Sequence[ResolvedRun]",
    outcomes: "Sequence[Result | Failure]",
    preset: "Preset",
    console: Console,
    *,
    workers: int,
) -> "list[Failure]":
    """Analyze what was reached, for the report, unless that was done before; what could not be analyzed."""
    from repcl.experiments.representations.analysis import AnalysisSpec
    from repcl.experiments.runs.result import Result
    from repcl.experiments.runs.store import StoredRun

    finished = [
        StoredRun(run.folder.path, outcome)
        for run, outcome in zip(runs, outcomes, strict=True)
        if run.folder is not None and isinstance(outcome, Result)
    ]
    specs = [AnalysisSpec(run, preset.estimator) for run in finished]
    _, failures = perform_analyses(specs, console, workers=workers)
    return failures


def _registered(rows: Sequence[str], console: Console) -> list[str]:
    """The rows whose methods exist in this version."""
    from repcl.methods import METHODS
    from repcl.methods.variants import split_variant

    known = [row for row in rows if split_variant(row)[0] in METHODS]
    absent = dict.fromkeys(name for row in rows if (name := split_variant(row)[0]) not in METHODS)
    if not known:
        raise InvalidSetting(f"This version of repcl does not have {', '.join(absent)}; update repcl.")
    if absent:
        console.print(f"Skipped: this version of repcl does not have {', '.join(absent)}.", style="yellow")
    return known


def _at_hand(recipe: "Recipe", data_dir: Path | None, console: Console) -> list[str]:
    """The recipe's benchmarks whose files are there; how to get the others is said in a line each."""
    from repcl.benchmarks import BENCHMARKS

    found, remedies = [], []
    for name in recipe.benchmarks:
        benchmark = BENCHMARKS[name]
        folder = benchmark.folder(data_dir)
        missing = benchmark.missing_files(folder)
        if missing:
            remedies.append(f"{name} needs {', '.join(missing)} in {folder}: {benchmark.remedy()}.")
        else:
            found.append(name)
    if not found:
        raise MissingData(" ".join(remedies) + " Or choose another with --benchmark, for instance demo.")
    for remedy in remedies:
        console.print(f"Skipped: {remedy}", style="yellow", highlight=False, soft_wrap=True)
    return found


def _expectation(runs: "Sequence[ResolvedRun]", workers: int | None) -> str:
    """How long it will take, from the speed of the encoder measured now on each benchmark's texts.

    Args:
        runs: all of them.
        workers: how many are made at a time, if that is known.
    """
    from repcl.experiments.reports.table import duration

    waiting = [run for run in runs if run.finished is None]
    if not runs:
        return "No run to make."
    if not waiting:
        return f"All {len(runs)} runs are finished already."
    seconds = sum(
        _seconds_on([run for run in waiting if run.benchmark == name])
        for name in dict.fromkeys(run.benchmark for run in waiting)
    )
    parallel = min(workers or 1, len(waiting))
    how = f"{parallel} at a time" if workers else "as many at a time as the cluster has room for"
    time = duration(seconds / parallel) + ("" if workers else " of one core's work")
    return (
        f"{len(waiting)} of {len(runs)} runs to make, {how}: about {time}, "
        "estimated from a short test on this machine."
    )


def _seconds_on(runs: "Sequence[ResolvedRun]") -> float:
    """Expected time of runs on one benchmark; all rounds are taken to be as long as the first one here."""
    from repcl.experiments.runs.cost import expected_seconds, measure_step
    from repcl.experiments.runs.spec import plan_run

    stream, plan, options = runs[0].stream, runs[0].plan, runs[0].options
    fea = plan_run("fea", stream, encoder=plan.encoder, preset=plan.preset)
    speed = measure_step(fea, stream, device=options.device, processes=options.processes)
    return sum(expected_seconds(run.plan, fea, stream, speed) for run in runs)
