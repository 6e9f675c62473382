"""`repcl forget`: take back single texts that a model has learned or holds out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcl.cli.changes import print_changes
from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.label_cells import one_label_each, takes_several
from repcl.cli.learn import TRACES, about_known_texts
from repcl.cli.options import Json, Model, TextColumn, Wait
from repcl.cli.predict import text_examples
from repcl.cli.refused import note_advice
from repcl.cli.stages import notes_to
from repcl.cli.tables import counted
from repcl.errors import InvalidData, UnknownName

if TYPE_CHECKING:
    from repcl.classifier import ContinualClassifier, ModelFolder, Update
    from repcl.classifier.inputs import Label
    from repcl.data import Example

LABEL = "label"


def forget_command(
    model: Model,
    data: Annotated[
        Path, typer.Argument(help="A data file or .txt file with the texts; labels are optional.")
    ],
    text_column: TextColumn = "text",
    label_column: Annotated[
        str | None, typer.Option(help="Column with the labels; default: label, if there is one.")
    ] = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Also delete older revisions that hold these texts.")
    ] = False,
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Forget single texts: completely with a frozen encoder; otherwise trained weights keep traces of them.

    If DATA has labels, a text is forgotten under that label only, otherwise under all labels.
    """
    from repcl.classifier.store.folder import ModelFolder

    examples = _read(data, text_column, label_column)
    folder, errors = ModelFolder(model), sentence_console(stderr=True)
    folder.current()
    from repcl.classifier import ContinualClassifier  # takes seconds; a bad data file is said at once

    has_labels = any(example.label for example in examples)
    if has_labels and takes_several(folder):
        examples = one_label_each(examples)
    with folder.lock(f"forgetting {data.name}", wait=wait, tell=errors.print), notes_to(errors):
        classifier = ContinualClassifier.load(model, device="cpu")
        labels = [classifier.label_of(example.label) for example in examples] if has_labels else None
        update, holding = _forget(folder, classifier, examples, labels, purge=purge)
        current = folder.current()
    if as_json:
        found = {
            "revision": current,
            "classes": [label.item() for label in classifier.classes_],
            "update": update.model_dump(mode="json") if update else None,
            "purged": holding if purge else [],
            "still_held_by": [] if purge else holding,
        }
        print_json(found)
        return
    say = sentence_console().print
    if update is None:
        say("The revision in use does not hold these texts.")
    else:
        for sentence in [_summary(update), *about_known_texts(update)]:
            say(sentence)
        print_changes(make_console(), update)
        note_advice(update)
    say(f"{model} is at revision {current}, with {counted(len(classifier.classes_), 'class')}.")
    if holding:
        numbers = ", ".join(map(str, holding))
        say(
            f"Deleted revisions that held them: {numbers}."
            if purge
            else f"Older revisions still hold them: {numbers}; --purge deletes those."
        )


def _forget(
    folder: "ModelFolder",
    classifier: "ContinualClassifier",
    examples: "list[Example]",
    labels: "list[Label] | None",
    *,
    purge: bool,
) -> "tuple[Update | None, list[int]]":
    """What was done, None if the texts were forgotten before; and which older revisions hold or held them."""
    from repcl.classifier.inputs import InvalidInput
    from repcl.classifier.store.holding import revisions_holding

    try:
        classifier.forget_texts(examples, labels)
    except (InvalidInput, UnknownName):  # not known, and neither is a label whose last text was forgotten
        if not purge:
            raise
        holding = revisions_holding(folder, examples)
        if folder.current() in holding:
            raise
        folder.purge(holding)  # also where there is none: an earlier purge may have been stopped
        if not holding:
            raise
        return None, holding
    current = classifier.commit(folder).number
    holding = [number for number in revisions_holding(folder, examples) if number != current]
    if purge:
        folder.purge(holding)
    return classifier.last_update_, holding


def _read(data: Path, text_column: str, label_column: str | None) -> "list[Example]":
    """The texts, with their labels if the file has any."""
    from repcl.data.files import read_examples
    from repcl.data.rows import Wanted, read_rows

    if data.suffix.lower() != ".txt":
        first = next(read_rows(data, Wanted((text_column, label_column or LABEL), note=lambda _: None)), None)
        if label_column is not None or (first is not None and LABEL in first.cells):
            return read_examples(data, text_column=text_column, label_column=label_column or LABEL)
    examples = list(text_examples(None, data, text_column))
    if not examples:
        raise InvalidData(f"{data} has no texts: give at least one to forget.")
    return examples


def _summary(update: "Update") -> str:
    said = f"Forgot {counted(update.forgotten, 'text')}"
    said += ", as if never learned." if update.is_exact else f": {TRACES}"
    if update.unchecked:
        said += (
            f" That {counted(update.unchecked, 'text')} had been learned is taken on your word: nothing is "
            "kept that could tell."
        )
    if update.not_found:
        said += f" Not known, and left out: {counted(update.not_found, 'text')}."
    return said
