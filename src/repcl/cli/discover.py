"""`repcl discover`: group the texts that a model does not know, ready to be labeled and learned."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.label_file import label_table
from repcl.cli.options import Device, Json, Model, TextColumn
from repcl.cli.outputs import Force, require_writable, write_named
from repcl.cli.stages import notes_to
from repcl.cli.tables import counted, print_table
from repcl.cli.texts import text_examples
from repcl.errors import InvalidData

if TYPE_CHECKING:
    from repcl.classifier.discovery import Discovery


def discover_command(
    model: Model,
    data: Annotated[
        Path | None, typer.Argument(help="A data file or .txt file; default: standard input.")
    ] = None,
    output: Annotated[Path, typer.Option(help="CSV file for the texts and their groups.")] = Path(
        "groups.csv"
    ),
    groups: Annotated[
        int | None, typer.Option(min=1, help="How many groups; default: chosen automatically.")
    ] = None,
    threshold: Annotated[
        str, typer.Option(help="Confidence below which a text is unknown: auto, or 0 to 1.")
    ] = "auto",
    force: Force = False,
    examples: Annotated[int, typer.Option(min=1, help="Typical texts to show per group.")] = 3,
    text_column: TextColumn = "text",
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Group the texts that a model does not know and write them to a CSV file for labeling."""
    from repcl.classifier import ContinualClassifier
    from repcl.classifier.discovery import discover

    require_writable(output, "--output", force=force, sources=(data,))
    classifier = ContinualClassifier.load(model, device=device)
    texts = list(text_examples(None, data, text_column))
    if not texts:
        raise InvalidData("Expected texts to look at, found none: give a file with at least one.")
    with notes_to(sentence_console(stderr=True)):
        found = discover(classifier, texts, threshold=threshold, groups=groups)
    if found.groups:
        write_named(output, _table(found), "--output", force=force)
    _report_json(found, output) if as_json else _report(found, output, model, examples)


def _table(found: "Discovery") -> str:
    """Texts and groups as CSV, ready to be learned once groups have been renamed."""
    rows = [(example, group.name) for group in found.groups for example in group.examples]
    return label_table([example for example, _ in rows], [name for _, name in rows])


def _report_json(found: "Discovery", output: Path) -> None:
    groups = [{"name": group.name, "texts": list(group.texts)} for group in found.groups]
    counts = {"asked": found.asked, "unknown": found.unknown, "repeated": found.repeated}
    rest = {"separation": found.separation, "groups": groups, "output": str(output) if groups else None}
    print_json(counts | {"written": found.unknown - found.repeated} | rest)


def _report(found: "Discovery", output: Path, model: Path, examples: int) -> None:
    console = make_console()
    console.print(f"{found.unknown} of {found.asked} texts are unknown to {model}.", highlight=False)
    if not found.groups:
        return
    if found.repeated:
        console.print(
            f"{found.repeated} of them repeat another one and are left out: "
            f"{counted(found.unknown - found.repeated, 'row')} to label.",
            highlight=False,
        )
    rows = [(group.name, str(len(group.texts)), group.texts[:examples]) for group in found.groups]
    print_table(console, f"{counted(len(rows), 'group')} suggested", ["group", "texts", "typical"], rows)
    if found.separation is not None:
        console.print(f"Separation {found.separation:.2f} (1: far apart, 0: they touch).", highlight=False)
    say = sentence_console().print
    say(f"Written to {output}: replace the group names with labels, delete rows that do not belong, then")
    say(f"  {shlex.join(['repcl', 'learn', str(model), str(output)])}")
