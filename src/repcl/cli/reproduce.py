"""`repcl reproduce`: the runs behind a table of the paper, and the table with ours beside the paper's."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from repcl.benchmarks import BENCHMARKS, load_benchmark
from repcl.cli.analyze import perform_analyses
from repcl.cli.console import make_console
from repcl.cli.options import (
    DataDirOption,
    DeviceOption,
    EncoderOption,
    FreshOption,
    OutOption,
    PresetOption,
    RayOption,
    ReportToOption,
    WorkersOption,
)
from repcl.cli.runs import checked_requests, finish, run_requests
from repcl.errors import InvalidSetting, MissingData
from repcl.experiments import Result, plan_run
from repcl.experiments.analyses import AnalysisRequest
from repcl.experiments.cluster.connection import check_reachable
from repcl.experiments.cost import expected_seconds, measure_step
from repcl.experiments.failure import Failure
from repcl.experiments.launch import runs_at_a_time
from repcl.experiments.plan import split_variant
from repcl.experiments.recipes import RECIPES, Recipe, find_recipe, note_recipe
from repcl.experiments.reporting.table import duration
from repcl.experiments.result import RESULT
from repcl.experiments.run_request import RunRequest
from repcl.experiments.tracking import check_trackers
from repcl.methods import METHODS
from repcl.model.processes import processes
from repcl.presets import Preset, load_preset


def reproduce(
    recipe: Annotated[str, typer.Argument(help=f"{', '.join(RECIPES)}.", metavar="RECIPE")],
    out: OutOption,
    benchmark: Annotated[
        list[str] | None, typer.Option(help="Instead of the paper's benchmarks. Repeatable.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method of the recipe. Repeatable.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds 0 to N-1; default: the recipe's.")] = None,
    preset: PresetOption = "cpu",
    encoder: EncoderOption = None,
    data_dir: DataDirOption = None,
    device: DeviceOption = None,
    workers: WorkersOption = None,
    ray: RayOption = None,
    report_to: ReportToOption = None,
    fresh: FreshOption = False,
) -> None:
    """Make a table of the paper: our values beside the paper's, in OUT/report.html."""
    console, here = make_console(), runs_at_a_time(workers, device, ray)
    check_trackers(report_to or [], out)
    if ray is not None:
        check_reachable(ray)  # before time is spent on an estimate
    chosen, limits = find_recipe(recipe), load_preset(preset)
    rows = _registered(chosen.choose(method or []), console)
    names = list(dict.fromkeys(benchmark)) if benchmark else _at_hand(chosen, data_dir, console)
    stream_options: dict[str, Any] = {
        "data_dir": data_dir,
        "max_train_per_class": limits.max_train_per_class,
        "max_test_per_class": limits.max_test_per_class,
    }
    run_options: dict[str, Any] = {
        "encoder": encoder,
        "preset": preset,
        "settings": {},
        "out": out,
        "fresh": fresh,
        "keep": chosen.keep,
        "device": device,
        "report_to": tuple(report_to or ()),
        "command": shlex.join(["repcl", *sys.argv[1:]]),
    }
    requests = checked_requests(
        [
            RunRequest(row, {"name": name, "round": number, **stream_options}, run_options)
            for name in names
            for number in range(rounds or chosen.rounds)
            for row in rows
        ],
        console,
    )
    at_a_time = workers if ray is not None else here
    console.print(_expectation(requests, at_a_time), highlight=False, soft_wrap=True)
    if processes().is_first:
        note_recipe(out, chosen)
    outcomes = run_requests(requests, console, workers=at_a_time, ray=ray)
    if chosen.keep == "representations" and processes().is_first:
        outcomes += _analyze(outcomes, out, limits, console, workers=here)
    finish(outcomes, out, console)


def _analyze(
    outcomes: Sequence[Result | Failure], out: Path, preset: Preset, console: Console, *, workers: int
) -> list[Failure]:
    """Analyze what was reached, for the report, unless that was done before; what could not be analyzed."""
    results = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    folders = [out / result.benchmark / result.row / f"round-{result.round}" for result in results]
    requests = [AnalysisRequest(folder, preset.estimator) for folder in folders]
    _, failures = perform_analyses(requests, console, workers=workers)
    return failures


def _registered(rows: Sequence[str], console: Console) -> list[str]:
    """The rows whose methods exist in this version."""
    known = [row for row in rows if split_variant(row)[0] in METHODS]
    absent = dict.fromkeys(name for row in rows if (name := split_variant(row)[0]) not in METHODS)
    if not known:
        raise InvalidSetting(f"This version of repcl does not have {', '.join(absent)}; update repcl.")
    if absent:
        console.print(f"Skipped: this version of repcl does not have {', '.join(absent)}.", style="yellow")
    return known


def _at_hand(recipe: Recipe, data_dir: Path | None, console: Console) -> list[str]:
    """The recipe's benchmarks whose files are there; how to get the others is said in a line each."""
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


def _expectation(requests: Sequence[RunRequest], workers: int | None) -> str:
    """How long it will take, from the speed of the encoder measured now on each benchmark's texts.

    Args:
        requests: all runs.
        workers: how many are made at a time, if that is known.
    """
    waiting = [request for request in requests if not _is_finished(request)]
    if not waiting:
        return f"All {len(requests)} runs are finished already."
    seconds = sum(
        _seconds_on([request for request in waiting if request.stream["name"] == name])
        for name in dict.fromkeys(request.stream["name"] for request in waiting)
    )
    parallel = min(workers or 1, len(waiting))
    how = f"{parallel} at a time" if workers else "as many at a time as the cluster has room for"
    time = duration(seconds / parallel) + ("" if workers else " of one core's work")
    return (
        f"{len(waiting)} of {len(requests)} runs to make, {how}: about {time}, "
        "estimated from a short lesson on this machine as it is now."
    )


def _seconds_on(requests: Sequence[RunRequest]) -> float:
    """Expected time of runs on one benchmark; all rounds are taken to be as long as the first one here."""
    stream = load_benchmark(**requests[0].stream)
    options = {key: requests[0].options[key] for key in ("encoder", "preset")}
    fea = plan_run("fea", stream, **options)
    speed = measure_step(fea, stream, device=requests[0].options["device"])
    return sum(
        expected_seconds(plan_run(request.method, stream, **options), fea, stream, speed)
        for request in requests
    )


def _is_finished(request: RunRequest) -> bool:
    if request.options["fresh"]:
        return False
    folder = Path(request.options["out"], Path(request.stream["name"]).stem, request.method)
    return (folder / f"round-{request.stream['round']}" / RESULT).exists()
