"""`repcl list`: what methods, benchmarks, encoders and settings there are."""

import json
from enum import Enum
from typing import Annotated, Any

import typer
from rich.console import Console

from repcl.cli.console import make_console
from repcl.cli.tables import WIDE_ENOUGH, print_table
from repcl.errors import InvalidSetting, UnknownName


class Thing(str, Enum):
    """What can be listed."""

    methods = "methods"
    benchmarks = "benchmarks"
    encoders = "encoders"
    settings = "settings"


OF_SETTINGS = "With settings"


def list_things(
    what: Annotated[Thing, typer.Argument(help="methods, benchmarks, encoders or settings.")],
    method: Annotated[
        str | None, typer.Option(help="The method that has them.", rich_help_panel=OF_SETTINGS)
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            help="Show the values for this benchmark; default: for plain texts.", rich_help_panel=OF_SETTINGS
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Show the values of this preset; default: those of cpu.", rich_help_panel=OF_SETTINGS
        ),
    ] = None,
) -> None:
    """List the methods, benchmarks or encoders to choose from, or a method's settings."""
    console = make_console()
    if what is Thing.settings:
        _settings(console, method, benchmark, preset or "cpu")
        return
    given = {"--method": method, "--benchmark": benchmark, "--preset": preset}
    for option, value in given.items():
        if value is not None:
            raise InvalidSetting(
                f"Expected {option} with settings only, found it with {what.value}: leave it out."
            )
    show = {Thing.methods: _methods, Thing.benchmarks: _benchmarks, Thing.encoders: _encoders}
    show[what](console)


def _methods(console: Console) -> None:
    from repcl.methods.table import TABLE

    titles = ["name", "paper", "year", "input", "extra memory", "cost", "variants"]
    rows = [
        [
            name,
            method.paper,
            str(method.year or "–"),
            ", ".join(method.kinds),
            method.also_keeps,
            f"{method.cost:.2f}",
            ", ".join(method.variants) or "–",
        ]
        for name, method in TABLE.items()
    ]
    shown = range(len(titles)) if console.width >= WIDE_ENOUGH else (0, 1, 2, 5, 6)
    print_table(console, "Methods", [titles[at] for at in shown], [[row[at] for at in shown] for row in rows])
    console.print("cost: processor time on the first tasks of demo, relative to fea")


def _benchmarks(console: Console) -> None:
    from repcl.benchmarks import BENCHMARKS

    rows = [
        [name, benchmark.kind, str(benchmark.tasks), benchmark.license]
        for name, benchmark in BENCHMARKS.items()
    ]
    print_table(console, "Benchmarks", ["name", "input", "tasks", "license"], rows)


def _encoders(console: Console) -> None:
    from repcl.model.bundled import ENCODERS

    rows = [[name, encoder.description, encoder.license] for name, encoder in ENCODERS.items()]
    rows.append(["a folder", "any encoder saved by transformers, with *.safetensors", ""])
    rows.append(
        ["a Hugging Face id", "for instance bert-base-uncased, roberta-base, microsoft/mpnet-base", ""]
    )
    print_table(console, "Encoders", ["name", "what it is", "license"], rows)


def _settings(console: Console, method: str | None, benchmark: str | None, preset: str) -> None:
    """Every setting of a method: its value in a preset, as `--set` takes it, and what it does."""
    if method is None:
        raise InvalidSetting("Expected a method, found none: repcl list settings --method repcl.")
    from repcl.benchmarks import BENCHMARKS
    from repcl.experiments.runs.spec import settle_settings
    from repcl.methods.table import method_entry
    from repcl.methods.variants import split_variant

    kinds = method_entry(split_variant(method)[0]).kinds
    if benchmark is not None and benchmark not in BENCHMARKS:
        raise UnknownName("benchmark", benchmark, BENCHMARKS)
    kind = kinds[0] if benchmark is None else BENCHMARKS[benchmark].kind
    settled = settle_settings(method, benchmark or "", kind, preset=preset)
    rows = [
        [name, _as_typed(getattr(settled, name)), field.description or ""]
        for name, field in type(settled).model_fields.items()
    ]
    place = f"{kind} input" if benchmark is None else benchmark
    title = f"Settings of {method}, preset {preset}, {place}"
    print_table(console, title, ["setting", "value", "what it does"], rows)
    console.print("Change a setting with --set NAME=VALUE.", highlight=False)


def _as_typed(value: Any) -> str:
    """A value as `--set` takes it."""
    if value is None:
        return "–"
    if isinstance(value, tuple):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
