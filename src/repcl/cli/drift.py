"""`repcl drift`: has what comes in changed?"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.options import Device, Json, Model, TextColumn
from repcl.cli.predict import text_examples
from repcl.cli.stages import notes_to
from repcl.cli.tables import print_table
from repcl.errors import InvalidData

if TYPE_CHECKING:
    from repcl.classifier.drift import Drift, Share

SHOWN = 10


def drift_command(
    model: Model,
    data: Annotated[
        Path | None, typer.Argument(help="A data file or .txt file; default: standard input.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="File of earlier texts to compare with; default: the texts learned.")
    ] = None,
    text_column: TextColumn = "text",
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Check whether new texts differ from those learned: share of unknown texts, share of each class."""
    from repcl.classifier import ContinualClassifier

    classifier = ContinualClassifier.load(model, device=device)
    texts = list(text_examples(None, data, text_column))
    earlier = None if reference is None else list(text_examples(None, reference, text_column))
    if not texts or earlier == []:
        empty = data if not texts else reference
        raise InvalidData(
            f"Expected texts in {empty or 'the standard input'}, found none: give at least one."
        )
    with notes_to(sentence_console(stderr=True)):
        found = classifier.drift(texts, earlier)
    _report_json(found) if as_json else _report(found)


def _report_json(found: "Drift") -> None:
    print_json(asdict(found) | {"is_changed": found.is_changed})


def _report(found: "Drift") -> None:
    shares = ([found.unknown] if found.unknown else []) + list(found.classes[:SHOWN])
    columns = ["share of", "before", "now", "texts", "effect (h)", "p"]
    console = make_console()
    print_table(console, "Changes, most certain first", columns, [_row(share) for share in shares])
    left = len(found.classes) - SHOWN
    say = sentence_console().print
    if left > 0:
        say(f"{left} more classes changed less (--json shows all).")
    if found.distance is not None:
        say(f"Class shares moved by {found.distance:.1%} in total.")
    say(
        f"Compared with {found.reference}; "
        f"p is corrected for {len(found.classes) + bool(found.unknown)} shares."
    )
    say(found.verdict)


def _row(share: "Share") -> list[str]:
    p = f"{share.p_value:.3f}" if share.p_value >= 0.001 else "<0.001"
    effect = f"{share.effect:+.2f}" + (" *" if share.is_changed else "")
    return [share.name, f"{share.before:.1%}", f"{share.now:.1%}", str(share.texts), effect, p]
