"""`repcl bench`: methods × benchmarks × rounds, with live progress."""

import os
import shlex
import sys
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
    TasksOption,
    TestFileOption,
    TextColumnOption,
    WorkersOption,
)
from repcl.cli.progress import GridProgress
from repcl.cli.tables import print_results
from repcl.errors import InvalidSetting
from repcl.experiments import Result, load_preset, parse_overrides, write_report
from repcl.experiments.cluster.grid import run_on_ray
from repcl.experiments.failure import Failure
from repcl.experiments.grid import run_grid
from repcl.experiments.keeping import known_keep
from repcl.experiments.launch import runs_at_a_time
from repcl.experiments.plan import split_variant
from repcl.experiments.run import check_earlier, run_folder
from repcl.experiments.run_request import RunRequest
from repcl.experiments.tracking import check_trackers
from repcl.methods.build import method_class
from repcl.model import check_encoder, processes


def bench(
    benchmark: Annotated[
        list[str], typer.Option(help="A benchmark, or the path of a data file. Repeatable.")
    ],
    method: Annotated[list[str], typer.Option(help="A method, with @variant if wanted. Repeatable.")],
    out: Annotated[Path, typer.Option(help="Folder for results; a stopped run goes on from there.")],
    seeds: Annotated[int, typer.Option(min=1, help="Rounds 0 to N-1.")] = 1,
    seed: Annotated[list[int] | None, typer.Option(min=0, help="A chosen round. Repeatable.")] = None,
    encoder: EncoderOption = None,
    preset: Annotated[str, typer.Option(help="cpu, paper, smoke, or a TOML file.")] = "cpu",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="KEY=VALUE or METHOD.KEY=VALUE.")
    ] = None,
    memory_per_class: Annotated[int | None, typer.Option(help="Exemplars kept of each class.")] = None,
    tasks: TasksOption = None,
    classes_per_task: ClassesPerTaskOption = None,
    class_order: ClassOrderOption = None,
    max_train_per_class: MaxTrainOption = None,
    max_test_per_class: Annotated[int | None, typer.Option(help="Test texts of a class.")] = None,
    test_file: TestFileOption = None,
    text_column: TextColumnOption = "text",
    label_column: LabelColumnOption = "label",
    protocol: ProtocolOption = "code",
    data_dir: DataDirOption = None,
    device: DeviceOption = None,
    workers: WorkersOption = None,
    ray: RayOption = None,
    accumulation_steps: Annotated[
        int | None, typer.Option(min=1, help="Parts in which a batch is encoded, where memory is short.")
    ] = None,
    keep: Annotated[
        str, typer.Option(help="For `repcl analyze`: representations, weights or none.")
    ] = "none",
    report_to: Annotated[
        list[str] | None, typer.Option(help="tensorboard or wandb: a tracker to report to. Repeatable.")
    ] = None,
    fresh: FreshOption = False,
) -> None:
    """Compare methods: learn benchmarks task by task and measure what is remembered."""
    chosen, at_a_time = load_preset(preset), runs_at_a_time(workers, device, ray)
    check_trackers(report_to or [], out)
    pairs = list(set_ or [])
    if memory_per_class is not None:
        pairs.append(f"memory_per_class={memory_per_class}")
    overrides = parse_overrides(pairs, dict.fromkeys(split_variant(name)[0] for name in method))
    stream_options: dict[str, Any] = {
        "data_dir": data_dir,
        "tasks": tasks,
        "classes_per_task": classes_per_task,
        "class_order_file": class_order,
        "max_train_per_class": max_train_per_class or chosen.max_train_per_class,
        "max_test_per_class": max_test_per_class or chosen.max_test_per_class,
        "test_file": test_file,
        "text_column": text_column,
        "label_column": label_column,
        "protocol": protocol,
    }
    run_options: dict[str, Any] = {
        "encoder": encoder,
        "preset": preset,
        "out": out,
        "fresh": fresh,
        "keep": known_keep(keep),
        "device": device,
        "accumulation_steps": accumulation_steps,
        "report_to": tuple(report_to or ()),
        "command": shlex.join(["repcl", *sys.argv[1:]]),
    }
    rounds = list(dict.fromkeys(seed)) if seed else list(range(seeds))
    console = make_console()
    requests = [
        RunRequest(
            name, {"name": data, "seed": number, **stream_options}, run_options | {"settings": settings}
        )
        for data in dict.fromkeys(benchmark)
        for number in rounds
        for name in dict.fromkeys(method)
        for settings in [overrides[split_variant(name)[0]]]
    ]
    requests = checked_requests(requests, console)
    outcomes = run_requests(requests, console, workers=workers if ray else at_a_time, ray=ray)
    finish(outcomes, out, console)


def checked_requests(requests: list[RunRequest], console: Console) -> list[RunRequest]:
    """The requests that can be run; what is wrong with any of them is found before the first starts."""
    possible, told = [], set()
    for request in requests:
        stream = request.load_stream()
        kinds = method_class(split_variant(request.method)[0]).kinds
        if stream.kind not in kinds:
            line = f"Skipped: {request.method} takes {' and '.join(kinds)} input, not {stream.kind}."
        else:
            plan = request.plan(stream)
            check_encoder(plan.encoder)
            if not request.options["fresh"]:
                folder = run_folder(request.options["out"], stream, plan)
                check_earlier(folder, plan.fingerprint(stream), request.options.get("keep", "none"))
            possible.append(request)
            line = ""
        for text in filter(None, (line, *stream.provenance.notes)):
            if text not in told:
                told.add(text)
                console.print(text, style="yellow", highlight=False)
    if not possible:
        raise InvalidSetting("None of the chosen methods takes the input of the chosen benchmarks.")
    return possible


def run_requests(
    requests: list[RunRequest], console: Console, *, workers: int | None, ray: str | None
) -> list[Result | Failure]:
    """Make the runs with a live overview, on this machine or on the Ray cluster named."""
    with GridProgress([request.title for request in requests], console) as progress:
        if ray is not None:
            return run_on_ray(requests, address=ray, workers=workers, listener=progress.hear)
        return run_grid(requests, workers=workers or os.cpu_count() or 1, listener=progress.hear)


def finish(outcomes: list[Result | Failure], out: Path, console: Console) -> None:
    """The table of what was reached, the report, and the runs that failed; one process is enough for it."""
    if not processes().is_first:
        return
    results = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    print_results(results, console)
    if results:
        console.print(f"Report: {write_report(out)}", highlight=False, soft_wrap=True)
    for failure in failures:
        log = out / f"{failure.request.title.replace(' ', '-').replace(os.sep, '-')}.error.txt"
        log.write_text(failure.details, encoding="utf-8")
        console.print(
            f"Failed: {failure.request.title}: {failure.reason} (see {log})", style="red", soft_wrap=True
        )
    if failures:
        raise typer.Exit(2 if all(failure.is_users_to_mend for failure in failures) else 1)
