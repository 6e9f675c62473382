"""`repcl list`: what methods, benchmarks and encoders there are."""

from enum import Enum
from typing import Annotated

import typer
from rich.console import Console

from repcl.cli.console import make_console
from repcl.cli.tables import WIDE_ENOUGH, print_table


class Thing(str, Enum):
    """What can be listed."""

    methods = "methods"
    benchmarks = "benchmarks"
    encoders = "encoders"


def list_things(what: Annotated[Thing, typer.Argument(help="methods, benchmarks or encoders.")]) -> None:
    """List the methods, benchmarks or encoders to choose from."""
    console = make_console()
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
