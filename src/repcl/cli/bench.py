"""`repcl bench`: methods × benchmarks × rounds, with live progress."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from repcl.cli.console import make_console
from repcl.cli.launch import processes_of, runs_at_a_time
from repcl.cli.options import (
    DATA,
    MACHINE,
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
    SaveRepresentationsOption,
    TasksOption,
    TestFileOption,
    TextColumnOption,
    WorkersOption,
)
from repcl.cli.runs import (
    checked_runs,
    chosen_rounds,
    finish,
    make_runs,
    note_idle_options,
    refuse_shared_names,
    typed_command,
)

if TYPE_CHECKING:
    from repcl.presets import Preset

BenchmarksOption = Annotated[
    list[str], typer.Option(help="A name from `repcl list benchmarks`, or a data file. Repeatable.")
]
MethodsOption = Annotated[
    list[str], typer.Option(help="METHOD or METHOD@VARIANT from `repcl list methods`. Repeatable.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting of all methods, or of one: METHOD.KEY=VALUE. Repeatable.",
    ),
]
MemoryOption = Annotated[int | None, typer.Option(help="Exemplars (example texts) to keep per class.")]
MaxTestOption = Annotated[
    int | None, typer.Option(help="Use at most this many test texts per class.", rich_help_panel=DATA)
]
AccumulationOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Encode each batch in this many parts, to save memory.", rich_help_panel=MACHINE
    ),
]


def bench(
    context: typer.Context,
    benchmark: BenchmarksOption,
    method: MethodsOption,
    out: OutOption,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="How many rounds (class orders, splits, seeds), from round 0; default: 1."),
    ] = None,
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
    save_representations: SaveRepresentationsOption = False,
    report_to: ReportToOption = None,
    with_parts: Annotated[
        bool,
        typer.Option(
            "--with-parts",
            help="For a duet, also write the results of its trained method and of the other duet, which are "
            "then not trained again.",
        ),
    ] = False,
    fresh: FreshOption = False,
) -> None:
    """Compare methods: learn benchmarks task by task and measure what is remembered."""
    from repcl.benchmarks import StreamSpec
    from repcl.experiments.runs.companions import DUET
    from repcl.experiments.runs.spec import RunOptions, RunSpec
    from repcl.methods.variants import split_variant
    from repcl.presets import load_preset

    numbers, chosen = chosen_rounds(round, rounds, first=0), load_preset(preset)
    processes = processes_of(context)
    at_a_time = runs_at_a_time(processes, workers=workers, device=device, ray=ray)
    streams = [
        StreamSpec(
            name=name,
            round=number,
            data_dir=data_dir,
            tasks=tasks,
            classes_per_task=classes_per_task,
            class_order_file=class_order,
            max_train_per_class=chosen.max_train_per_class
            if max_train_per_class is None
            else max_train_per_class,
            max_test_per_class=chosen.max_test_per_class
            if max_test_per_class is None
            else max_test_per_class,
            test_file=test_file,
            text_column=text_column,
            label_column=label_column,
            protocol=protocol,
        )
        for name in dict.fromkeys(benchmark)
        for number in numbers
    ]
    refuse_shared_names(streams)
    options = RunOptions(
        encoder=encoder,
        preset=preset,
        out=out,
        fresh=fresh,
        save_representations=save_representations,
        device=device,
        report_to=tuple(report_to or ()),
        command=typed_command(),
        processes=replace(processes, chunks=accumulation_steps or processes.chunks),
        with_parts=with_parts,
    )
    console = make_console(is_quiet=not processes.is_first)
    note_idle_options(streams, console)
    settings = _settings(method, set_ or [], memory_per_class, chosen)
    without = [name for name, changed in settings.items() if "memory_per_class" not in changed]
    if memory_per_class is not None and without:
        console.print(
            f"Note: --memory-per-class has no effect on {', '.join(without)}: they keep no exemplars."
        )
    if with_parts and all(split_variant(name)[0] != DUET for name in settings):
        console.print("Note: --with-parts has no effect: only a duet has parts.")
    specs = [
        RunSpec(name, stream, replace(options, settings=changed))
        for stream in streams  # runs on the same data stand together: a worker then reads them once
        for name, changed in settings.items()
    ]
    runs, skipped = checked_runs(specs, console)
    outcomes = make_runs(runs, console, workers=workers if ray else at_a_time, ray=ray)
    if processes.is_first:
        finish(outcomes, skipped, out, console)


def _settings(
    methods: Sequence[str], pairs: Iterable[str], memory_per_class: int | None, preset: "Preset"
) -> dict[str, dict[str, Any]]:
    """What the user wants to be different about the settings of each method, with `@variant` or without."""
    from repcl.methods.build import method_class
    from repcl.methods.variants import split_variant
    from repcl.presets import parse_overrides

    names = {method: split_variant(method)[0] for method in methods}
    overrides = parse_overrides(pairs, dict.fromkeys(names.values()), preset)
    for name, changed in overrides.items():
        if memory_per_class is not None and "memory_per_class" in method_class(name).Settings.model_fields:
            changed["memory_per_class"] = memory_per_class
    return {method: overrides[name] for method, name in names.items()}
