"""`repcl improve`: train a duet from what a model keeps; it is used only if held-out texts gain by it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcl.cli.changes import print_changes
from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.options import Device, Json, LabelColumn, Model, TextColumn, Wait
from repcl.cli.refused import REFUSED
from repcl.cli.stages import notes_to, stage_bars
from repcl.cli.tables import counted
from repcl.cli.texts import print_note

if TYPE_CHECKING:
    from repcl.classifier import Update


def improve_command(
    model: Model,
    data: Annotated[
        Path | None, typer.Option(help="File with the texts the model learned; default: those it has kept.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a setting of method duet, such as trained=fea. Repeatable.",
        ),
    ] = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    wait: Wait = 600.0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Train a second encoder on the kept texts; used only if the model gets better, otherwise exit code 3."""
    from repcl.classifier import ContinualClassifier, ModelFolder
    from repcl.classifier.improvement import Limits, expected_seconds, minutes, training_texts
    from repcl.data.files import read_examples
    from repcl.presets import load_preset, parse_overrides

    examples = (
        read_examples(data, text_column=text_column, label_column=label_column, note=print_note)
        if data
        else []
    )
    folder, errors = ModelFolder(model), sentence_console(stderr=True)
    with folder.lock("improving", wait=wait, tell=errors.print):
        classifier = ContinualClassifier.load(model, device=device)
        settings = parse_overrides(set_ or [], ["duet"], load_preset(classifier.preset))["duet"]
        state = classifier.fitted_state()
        Limits(classifier.memory_per_class, classifier.memory_total, classifier.holdout_per_class).check()
        labels = [classifier.label_of(example.label) for example in examples]
        named = [replace(one, label=str(label)) for one, label in zip(examples, labels, strict=True)]
        texts = training_texts(state, named)
        errors.print(f"Training on {counted(len(texts), 'text')}: {minutes(expected_seconds(state, texts))}.")
        with notes_to(errors), stage_bars(errors) as bars:
            classifier.improve(examples, labels, settings=settings, observer=bars)
        update = classifier.last_update_
        number = folder.current() if update.is_refused else classifier.commit(folder).number
    report = _report_json if as_json else _report
    report(model, number, update)
    if update.is_refused:
        raise typer.Exit(REFUSED)


def _report_json(model: Path, revision: int, update: "Update") -> None:
    print_json({"model": str(model), "current": revision, "update": update.model_dump(mode="json")})


def _report(model: Path, revision: int, update: "Update") -> None:
    say = sentence_console().print
    print_changes(make_console(), update)
    if update.is_refused:
        say(f"Not used: {'; '.join(update.reasons)}.")
        say(f"{model} stays at revision {revision}.")
        return
    say(f"{model} is at revision {revision}, a duet trained on {counted(update.examples, 'text')}.")
