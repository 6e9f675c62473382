"""`repcl tune`: search a method's settings on the first three tasks and write them as a preset."""

import os
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from repcl.cli.console import make_console
from repcl.cli.options import (
    ClassesPerTaskOption,
    ClassOrderOption,
    DataDirOption,
    DeviceOption,
    EncoderOption,
    FreshOption,
    LabelColumnOption,
    MaxTrainOption,
    ProtocolOption,
    RayOption,
    RoundsOption,
    TasksOption,
    TestFileOption,
    TextColumnOption,
    WorkersOption,
)
from repcl.cli.progress import GridProgress
from repcl.cli.tables import print_table
from repcl.experiments.cluster.connection import check_reachable
from repcl.experiments.cluster.grid import run_on_ray
from repcl.experiments.grid import run_grid
from repcl.experiments.plan import split_variant
from repcl.experiments.search_outcome import percent, verdict, write_preset
from repcl.experiments.trials import Trial, TrialStore
from repcl.experiments.tuning import Engine, Search, best_trial, plan_search, run_search, trial_title
from repcl.model import check_encoder
from repcl.presets import load_preset, parse_overrides

REPORTED = range(5)  # rounds whose test texts give the reported numbers
OWN_ROUND = 5


def tune(
    benchmark: Annotated[str, typer.Option(help="A benchmark, or the path of a data file.")],
    method: Annotated[str, typer.Option(help="A method, with @variant if wanted.")],
    out: Annotated[
        Path, typer.Option(help="Folder for presets and trials; a stopped search goes on from there.")
    ] = Path("runs/tune"),
    trials: Annotated[int, typer.Option(min=1, help="Trials in all, the preset's own settings first.")] = 20,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds 5 to 5+N-1; the score is their mean.")] = 1,
    round: RoundsOption = None,
    space: Annotated[
        Path | None, typer.Option(help="TOML file that says which settings to search, and where.")
    ] = None,
    encoder: EncoderOption = None,
    preset: Annotated[str, typer.Option(help="cpu, paper, smoke, or a TOML file: where to start.")] = "cpu",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting that keeps this value. Repeatable."),
    ] = None,
    tasks: TasksOption = None,
    classes_per_task: ClassesPerTaskOption = None,
    class_order: ClassOrderOption = None,
    max_train_per_class: MaxTrainOption = None,
    test_file: TestFileOption = None,
    text_column: TextColumnOption = "text",
    label_column: LabelColumnOption = "label",
    protocol: ProtocolOption = "code",
    data_dir: DataDirOption = None,
    device: DeviceOption = None,
    workers: WorkersOption = None,
    ray: RayOption = None,
    fresh: FreshOption = False,
) -> None:
    """Search settings on the first three tasks, scored on held-out training texts, and write a preset."""
    if ray is not None:
        check_reachable(ray)
    chosen = load_preset(preset)
    name = split_variant(method)[0]
    stream_options: dict[str, Any] = {
        "name": benchmark,
        "data_dir": data_dir,
        "tasks": tasks,
        "classes_per_task": classes_per_task,
        "class_order_file": class_order,
        "max_train_per_class": max_train_per_class or chosen.max_train_per_class,
        "test_file": test_file,
        "text_column": text_column,
        "label_column": label_column,
        "protocol": protocol,
    }
    command = shlex.join(["repcl", *sys.argv[1:]])
    run_options = {
        "encoder": encoder,
        "preset": preset,
        "settings": parse_overrides(set_ or [], [name])[name],
        "device": device,
        "command": command,
    }
    numbers = list(dict.fromkeys(round)) if round else list(range(OWN_ROUND, OWN_ROUND + rounds))
    streams = [{**stream_options, "round": number} for number in numbers]
    search = plan_search(method, streams, run_options, space=space, out=out)
    check_encoder(search.plans[0].encoder)
    console = make_console()
    if any(number in REPORTED for number in numbers):
        console.print(
            "Rounds 0 to 4 are usually the reported ones: settings chosen on them may suit them too well.",
            style="yellow",
        )
    at_a_time = workers or os.cpu_count() or 1
    group = -(-at_a_time // len(numbers))
    with TrialStore(search.folder, search.identity, search.space, group=group, fresh=fresh) as store:
        engine: Engine = run_grid if ray is None else partial(run_on_ray, address=ray)
        finished = _watched(search, store, trials, engine, at_a_time, console)
    _show(search, finished, console)
    console.print(f"Preset: {write_preset(search, finished, command)}", highlight=False, soft_wrap=True)


def _watched(
    search: Search, store: TrialStore, trials: int, engine: Engine, workers: int, console: Console
) -> list[Trial]:
    """Make the trials with a live overview."""
    waiting = range(len(store.trials()), trials)
    titles = [trial_title(number, each) for number in waiting for each in search.rounds]
    with GridProgress(titles, console) as progress:
        return run_search(
            search,
            store,
            trials=trials,
            workers=workers,
            engine=engine,
            listener=lambda request, event: progress.hear(titles.index(request.title), event),
        )


def _show(search: Search, trials: Sequence[Trial], console: Console) -> None:
    """All trials, the best against the preset, and what of it may be chance."""
    best, first = best_trial(trials), trials[0]
    rows = [
        [
            f"{trial.number}{' preset' * (trial is first)}{' best' * (trial is best)}",
            percent(trial.score),
            *(_cell(trial.settings[key]) for key in search.space),
        ]
        for trial in trials
    ]
    title = f"{search.method} on {search.benchmark}: accuracy after the third task, held-out texts, percent"
    print_table(console, title, ["trial", "score", *search.space], rows)
    console.print(verdict(search, trials), highlight=False, soft_wrap=True)


def _cell(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
