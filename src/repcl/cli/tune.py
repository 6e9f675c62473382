"""`repcl tune`: search a method's settings on the first three tasks and write them as a preset."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from repcl.cli.runs import chosen_rounds, note_idle_options, typed_command

if TYPE_CHECKING:
    from repcl.experiments.tuning.search import Engine, Search
    from repcl.experiments.tuning.trials import Trial, TrialStore

REPORTED = range(5)  # rounds whose test texts give the reported numbers
OWN_ROUND = 5


def tune(
    benchmark: Annotated[str, typer.Option(help="A name from `repcl list benchmarks`, or a data file.")],
    method: Annotated[str, typer.Option(help="METHOD or METHOD@VARIANT from `repcl list methods`.")],
    out: Annotated[
        Path, typer.Option(help="Folder for presets and trials; a stopped search resumes from there.")
    ] = Path("runs/tune"),
    trials: Annotated[
        int, typer.Option(min=1, help="How many trials; the first takes the preset's own settings.")
    ] = 20,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="How many rounds, from round 5; the score is their mean; default: 1."),
    ] = None,
    round: RoundsOption = None,
    space: Annotated[
        Path | None, typer.Option(help="TOML file with the settings to search and their ranges.")
    ] = None,
    encoder: EncoderOption = None,
    preset: Annotated[
        str, typer.Option(help="Settings to start from: cpu, paper, smoke or a TOML file.")
    ] = "cpu",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Fix a setting at this value. Repeatable."),
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
    """Find settings on the first three tasks, scored on held-out training texts; write them as a preset."""
    from repcl.benchmarks import StreamSpec
    from repcl.experiments.runs.ray_cluster import check_reachable
    from repcl.experiments.runs.spec import RunOptions
    from repcl.experiments.tuning.outcome import preset_file, write_preset
    from repcl.experiments.tuning.search import plan_search
    from repcl.experiments.tuning.trials import TrialStore
    from repcl.methods.variants import split_variant
    from repcl.presets import load_preset, parse_overrides

    if ray is not None:
        check_reachable(ray)
    chosen, name = load_preset(preset), split_variant(method)[0]
    numbers = chosen_rounds(round, rounds, first=OWN_ROUND)
    streams = [
        StreamSpec(
            name=benchmark,
            round=number,
            data_dir=data_dir,
            tasks=tasks,
            classes_per_task=classes_per_task,
            class_order_file=class_order,
            max_train_per_class=chosen.max_train_per_class
            if max_train_per_class is None
            else max_train_per_class,
            test_file=test_file,
            text_column=text_column,
            label_column=label_column,
            protocol=protocol,
        )
        for number in numbers
    ]
    options = RunOptions(
        encoder=encoder,
        preset=preset,
        settings=parse_overrides(set_ or [], [name], chosen)[name],
        device=device,
        command=typed_command(),
    )
    search = plan_search(method, streams, options, space=space, out=out)
    preset_file(search)  # refused before the work, not after it
    console = make_console()
    note_idle_options(streams, console)
    if any(number in REPORTED for number in numbers):
        console.print(
            "Rounds 0 to 4 are usually the reported ones: settings chosen on them may suit them too well.",
            style="yellow",
        )
    at_a_time = workers or os.cpu_count() or 1
    group = -(-at_a_time // len(numbers))
    with TrialStore(search.folder, search.identity, search.space, group=group, fresh=fresh) as store:
        finished = _watched(search, store, trials, _engine(ray), at_a_time, console)
    _show(search, finished, console)
    written = write_preset(search, finished, typed_command())
    console.print(f"Preset: {written}", highlight=False, soft_wrap=True)


def _engine(ray: str | None) -> "Engine":
    """What makes the runs of trials."""
    from repcl.experiments.tuning.search import run_here

    if ray is None:
        return run_here
    from repcl.experiments.runs.ray import run_on_ray

    return partial(run_on_ray, address=ray)


def _watched(
    search: "Search", store: "TrialStore", trials: int, engine: "Engine", workers: int, console: Console
) -> "list[Trial]":
    """Make the trials with a live overview."""
    from repcl.cli.progress import GridProgress
    from repcl.experiments.tuning.search import run_search

    waiting = [(trial, number) for trial in range(len(store.trials()), trials) for number in search.rounds]
    titles = [f"trial {trial} round {number}" for trial, number in waiting]
    with GridProgress(titles, console) as progress:
        return run_search(
            search,
            store,
            trials=trials,
            workers=workers,
            engine=engine,
            listener=lambda trial, number, event: progress.hear(waiting.index((trial, number)), event),
        )


def _show(search: "Search", trials: "Sequence[Trial]", console: Console) -> None:
    """All trials, the best against the preset, and what of it may be chance."""
    from repcl.cli.tables import print_table
    from repcl.experiments.tuning.outcome import percent, verdict
    from repcl.experiments.tuning.search import best_trial

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
