"""`repcl bench`: methods × benchmarks × rounds, with live progress."""

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer

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
    OutOption,
    PresetOption,
    ProtocolOption,
    RayOption,
    ReportToOption,
    RoundsOption,
    TasksOption,
    TestFileOption,
    TextColumnOption,
    WorkersOption,
)
from repcl.cli.runs import checked_requests, finish, run_requests
from repcl.experiments.keeping import known_keep
from repcl.experiments.launch import runs_at_a_time
from repcl.experiments.plan import split_variant
from repcl.experiments.run_request import RunRequest
from repcl.experiments.tracking import check_trackers
from repcl.presets import load_preset, parse_overrides

BenchmarksOption = Annotated[
    list[str], typer.Option(help="A benchmark, or the path of a data file. Repeatable.")
]
MethodsOption = Annotated[list[str], typer.Option(help="A method, with @variant if wanted. Repeatable.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="KEY=VALUE or METHOD.KEY=VALUE.")
]
MemoryOption = Annotated[int | None, typer.Option(help="Exemplars kept of each class.")]
MaxTestOption = Annotated[int | None, typer.Option(help="Test texts of a class.")]
AccumulationOption = Annotated[
    int | None, typer.Option(min=1, help="Parts in which a batch is encoded, where memory is short.")
]
KeepOption = Annotated[str, typer.Option(help="For `repcl analyze`: representations, weights or none.")]


def bench(
    benchmark: BenchmarksOption,
    method: MethodsOption,
    out: OutOption,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds 0 to N-1.")] = 1,
    round: RoundsOption = None,
    encoder: EncoderOption = None,
    preset: PresetOption = "cpu",
    set_: SetOption = None,
    memory_per_class: MemoryOption = None,
    tasks: TasksOption = None,
    classes_per_task: ClassesPerTaskOption = None,
    class_order: ClassOrderOption = None,
    max_train_per_class: MaxTrainOption = None,
    max_test_per_class: MaxTestOption = None,
    test_file: TestFileOption = None,
    text_column: TextColumnOption = "text",
    label_column: LabelColumnOption = "label",
    protocol: ProtocolOption = "code",
    data_dir: DataDirOption = None,
    device: DeviceOption = None,
    workers: WorkersOption = None,
    ray: RayOption = None,
    accumulation_steps: AccumulationOption = None,
    keep: KeepOption = "none",
    report_to: ReportToOption = None,
    fresh: FreshOption = False,
) -> None:
    """Compare methods: learn benchmarks task by task and measure what is remembered."""
    chosen, at_a_time = load_preset(preset), runs_at_a_time(workers, device, ray)
    check_trackers(report_to or [], out)
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
    settings = _settings(method, set_ or [], memory_per_class)
    streams = _streams(benchmark, round or range(rounds), stream_options)
    console = make_console()
    requests = checked_requests(_requests(settings, streams, run_options), console)
    outcomes = run_requests(requests, console, workers=workers if ray else at_a_time, ray=ray)
    finish(outcomes, out, console)


def _settings(
    methods: Sequence[str], pairs: Iterable[str], memory_per_class: int | None
) -> dict[str, dict[str, Any]]:
    """What the user wants to be different about the settings of each method, with `@variant` or without."""
    memory = [] if memory_per_class is None else [f"memory_per_class={memory_per_class}"]
    names = {method: split_variant(method)[0] for method in methods}
    overrides = parse_overrides([*pairs, *memory], dict.fromkeys(names.values()))
    return {method: overrides[name] for method, name in names.items()}


def _streams(
    benchmarks: Iterable[str], rounds: Iterable[int], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The arguments of `load_benchmark` for each round of each benchmark, none of them twice."""
    return [
        {"name": name, "round": number, **options}
        for name in dict.fromkeys(benchmarks)
        for number in dict.fromkeys(rounds)
    ]


def _requests(
    settings: Mapping[str, Mapping[str, Any]],
    streams: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
) -> list[RunRequest]:
    """Every method on every stream; runs on the same data stand together."""
    return [
        RunRequest(method, stream, {**options, "settings": changed})
        for stream in streams
        for method, changed in settings.items()
    ]
