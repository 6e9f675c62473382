"""`repcl suggest`: which texts to label next."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.label_file import label_table
from repcl.cli.options import Device, Json, Model, TextColumn
from repcl.cli.outputs import Force, require_writable, write_named
from repcl.cli.predict import text_examples
from repcl.cli.stages import notes_to
from repcl.cli.tables import counted, print_table
from repcl.errors import InvalidData

if TYPE_CHECKING:
    from repcl.classifier.suggestion import Suggestion


def suggest_command(
    model: Model,
    data: Annotated[
        Path | None, typer.Argument(help="A data file or .txt file; default: standard input.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="How many texts to suggest.")] = 20,
    output: Annotated[
        Path | None, typer.Option(help="CSV file for these texts, with an empty label column to fill in.")
    ] = None,
    force: Force = False,
    text_column: TextColumn = "text",
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Suggest which texts to label next: texts the model is unsure of, each similar to many others."""
    from repcl.classifier import ContinualClassifier

    if output is not None:
        require_writable(output, "--output", force=force, sources=(data,))
    classifier = ContinualClassifier.load(model, device=device)
    texts = list(text_examples(None, data, text_column))
    if not texts:
        raise InvalidData("Expected texts to choose from, found none: give a file with at least one.")
    with notes_to(sentence_console(stderr=True)):
        found = classifier.suggest(texts, most)
    if output is not None and found:
        table = label_table([texts[one.index] for one in found], [""] * len(found))
        write_named(output, table, "--output", force=force)
    if as_json:
        _report_json(found, len(texts), output)
    else:
        _report(found, len(texts), output, model)


def _report_json(found: "Sequence[Suggestion]", asked: int, output: Path | None) -> None:
    rows = [
        {
            "index": one.index,
            "text": one.text,
            "likely": list(one.likely),
            "confidence": one.confidence,
            "is_unknown": one.is_unknown,
            "stands_for": one.stands_for,
            "reason": one.reason,
        }
        for one in found
    ]
    print_json({"asked": asked, "suggested": rows, "output": str(output) if output and rows else None})


def _report(found: "Sequence[Suggestion]", asked: int, output: Path | None, model: Path) -> None:
    console = make_console()
    if not found:
        console.print(f"Nothing to label: all {asked} texts are already among those that the model keeps.")
        return
    title = f"{counted(len(found), 'text')} of {asked} to label next"
    print_table(console, title, ["text", "why"], [[one.text, one.reason] for one in found])
    if output is not None:
        say = sentence_console().print
        say(f"Written to {output}: fill in the label column, then")
        say(f"  {shlex.join(['repcl', 'learn', str(model), str(output)])}")
