"""`repcl learn`: teach a model folder the classes of a data file."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from repcl.cli.changes import print_changes
from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.label_cells import looks_like_several, one_label_each, takes_several
from repcl.cli.labels import one_label_where_case_differs
from repcl.cli.options import NEW_MODEL, Device, Json, LabelColumn, TextColumn, Wait
from repcl.cli.refused import REFUSED, about_refused, command, ways_out
from repcl.cli.stages import notes_to, stage_bars
from repcl.cli.tables import counted
from repcl.cli.texts import print_note
from repcl.errors import InvalidSetting, listed, shortened

if TYPE_CHECKING:
    from repcl.classifier import ContinualClassifier, ModelFolder, Update
    from repcl.classifier.store.records import Revision
    from repcl.data import Example

NAMES_SHOWN = 8
CHANGEABLE = ("holdout_per_class", "tolerance")
TRACES = (
    "they are dropped from what is kept, but the weights have been trained on them; teach a new model if "
    "that matters."
)


def learn(
    model: Annotated[Path, typer.Argument(help="The model folder; created if it does not exist.")],
    data: Annotated[
        Path, typer.Argument(help="CSV, JSONL, Parquet or Excel file with columns text and label.")
    ],
    method: Annotated[
        str | None,
        typer.Option(
            help="How it learns (`repcl list methods`); default: auto, the best that learns in seconds.",
            rich_help_panel=NEW_MODEL,
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="A name from `repcl list encoders`, a folder or a Hugging Face id; an existing model keeps "
            "its own.",
            rich_help_panel=NEW_MODEL,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Settings to start from: cpu, paper, smoke or a TOML file.", rich_help_panel=NEW_MODEL
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a setting of the method. Repeatable.",
            rich_help_panel=NEW_MODEL,
        ),
    ] = None,
    memory_per_class: Annotated[
        int | None,
        typer.Option(min=0, help="Exemplars (example texts) to keep per class.", rich_help_panel=NEW_MODEL),
    ] = None,
    memory_total: Annotated[
        int | None,
        typer.Option(min=1, help="Exemplars (example texts) to keep in total.", rich_help_panel=NEW_MODEL),
    ] = None,
    holdout_per_class: Annotated[
        int | None, typer.Option(min=0, help="Texts per class held out to measure updates; default: 5.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed: any whole number.", rich_help_panel=NEW_MODEL)
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of old classes' texts that may turn wrong; 1 accepts any update; default: 0.02.",
        ),
    ] = None,
    multilabel: Annotated[
        bool,
        typer.Option("--multilabel", help="For a new model: a text may have several labels, written as a|b."),
    ] = False,
    drop_duplicates: Annotated[
        bool,
        typer.Option(
            "--drop-duplicates", help="Learn only one of several nearly identical texts of a class."
        ),
    ] = False,
    keep_last: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="After this and every later update, keep only the newest N revisions and the one in use; "
            "0 keeps all.",
        ),
    ] = None,
    accept: Annotated[bool, typer.Option(help="Use the update even if the guard refuses it.")] = False,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    wait: Wait = 600.0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Teach a model the classes in DATA; the guard refuses an update that hurts old classes (exit code 3)."""
    from repcl.classifier import ModelFolder
    from repcl.data.files import read_examples

    examples = read_examples(data, text_column=text_column, label_column=label_column, note=print_note)
    examples = _single_texts(examples, drop=drop_duplicates)
    wishes: dict[str, Any] = {
        "method": None if method == "auto" else method,  # a known model has the one it was made with
        "encoder": encoder,
        "preset": preset,
        "memory_per_class": memory_per_class,
        "memory_total": memory_total,
        "holdout_per_class": holdout_per_class,
        "seed": seed,
        "tolerance": tolerance,
        "multilabel": multilabel or None,
    }
    folder, errors = ModelFolder(model), sentence_console(stderr=True)
    if set_:
        wishes["settings"] = _settings(folder, method, set_, preset)
    given = {key: value for key, value in wishes.items() if value is not None}
    has_several = multilabel or takes_several(folder)
    if has_several:
        examples = one_label_each(examples)
    examples = one_label_where_case_differs(examples, folder.in_use().contents.names if folder.exists else ())
    from repcl.classifier import ContinualClassifier  # takes seconds; a bad data file is said at once

    with folder.lock(f"learning {data.name}", wait=wait, tell=errors.print):
        labels: list[Any] = [example.label for example in examples]
        if folder.exists:
            classifier = ContinualClassifier.load(model, device=device)
            _set_parameters(classifier, given, model)
            if encoder is not None:  # the user's word, where the folder's own would not do
                classifier.use_encoder(encoder)
            if classifier.fitted_state().label_type == "number":
                labels = [classifier.label_of(label) for label in labels]
        else:
            classifier = ContinualClassifier(**given, device=device)
        if not has_several:
            _note_conflicts(examples, errors)
            _note_several(examples, errors)
        with notes_to(errors), stage_bars(errors) as bars:
            classifier.partial_fit(examples, labels, observer=bars)
        update = classifier.last_update_
        revision = classifier.commit(folder, make_current=accept or not update.is_refused)
        is_used = folder.current() == revision.number
        if keep_last is not None:
            folder.keep_last(keep_last or None)
    _tell(model, classifier, revision, is_used=is_used, as_json=as_json)
    if not is_used:
        raise typer.Exit(REFUSED)


def _tell(
    model: Path, classifier: "ContinualClassifier", revision: "Revision", *, is_used: bool, as_json: bool
) -> None:
    """Report the update, and what training would take where there is enough to train on."""
    from repcl.classifier.improvement import offer

    update = classifier.last_update_
    report = _report_json if as_json else _report
    report(model, revision, update, is_used)
    if is_used and not as_json and classifier.memory_per_class and classifier.holdout_per_class:
        hint = offer(classifier.fitted_state(), command("improve", model), update.accuracy)
        if hint:
            sentence_console().print(hint)


def _settings(
    folder: "ModelFolder", method: str | None, pairs: list[str], preset: str | None
) -> dict[str, Any]:
    """Settings as typed, for the method that is wanted or that the folder has."""
    from repcl.classifier.state import AUTO, decided
    from repcl.methods.build import method_class
    from repcl.methods.variants import split_variant
    from repcl.presets import load_preset, parse_overrides

    name = folder.in_use().contents.method if folder.exists else split_variant(decided(method or AUTO))[0]
    method_class(name)
    return parse_overrides(pairs, [name], load_preset(preset or "cpu"))[name]


def _set_parameters(classifier: "ContinualClassifier", given: dict[str, Any], model: Path) -> None:
    """Change what may be changed about a classifier; refuse what was decided when its folder was made."""
    for key, value in given.items():
        if key in CHANGEABLE:
            classifier.set_params(**{key: value})
        elif getattr(classifier, key) != value:
            had = shortened(getattr(classifier, key))
            raise InvalidSetting(
                f"{model} was made with {key} = {had}, found {shortened(value)}: leave "
                f"out --{key.replace('_', '-').replace('settings', 'set')}, or teach a new folder."
            )


def _note_conflicts(examples: "list[Example]", errors: Console) -> None:
    """Note texts that have two labels: both are learned, though only one can be the answer."""
    labels: dict[Example, list[str]] = {}
    for example in dict.fromkeys(examples):
        labels.setdefault(replace(example, label=""), []).append(example.label)
    twice = [(example.text, found) for example, found in labels.items() if len(found) > 1]
    if twice:
        text, found = twice[0]
        errors.print(
            f"Note: {counted(len(twice), 'text')} with more than one label, such as {shortened(text)} "
            f"({listed(found, NAMES_SHOWN)}): only one of them can be the answer."
        )


def _note_several(examples: "list[Example]", errors: Console) -> None:
    """Note cells that look like several labels where a text has one."""
    cell = looks_like_several(examples)
    if cell is not None:
        errors.print(
            f"Note: {shortened(cell)} is taken for one class; with --multilabel, a new model takes it for "
            "several labels."
        )


def _single_texts(examples: "list[Example]", *, drop: bool) -> "list[Example]":
    """The examples without those that nearly repeat one of their class, or all of them and a note."""
    from repcl.data.duplicates import without_duplicates

    single = without_duplicates(examples)
    count = len(examples) - len(single)
    if count and drop:
        print_note(f"{counted(count, 'text')} left out: nearly the same as another of its class.")
    elif count:
        print_note(
            f"{counted(count, 'text')} nearly the same as another of its class: if one is learned and the "
            "other held out, accuracy looks too good; --drop-duplicates learns only one of each."
        )
    return single if drop else examples


def _report_json(model: Path, revision: "Revision", update: "Update", is_used: bool) -> None:
    found = {
        "model": str(model),
        "revision": revision.number,
        "parent": revision.parent,
        "is_current": is_used,
        "classes": [record.name for record in revision.contents.classes],
        "update": update.model_dump(mode="json"),
    }
    if not is_used:
        found |= ways_out(model)
    print_json(found)


def _report(model: Path, revision: "Revision", update: "Update", is_used: bool) -> None:
    console = make_console()
    say = sentence_console().print
    learned = [
        f"{counted(len(names), f'{kind} class')} ({listed(names, NAMES_SHOWN)})"
        for names, kind in ((update.new_classes, "new"), (update.more_of, "known"))
        if names
    ]
    if learned or update.held_out:
        what = " and ".join(learned) or "nothing"
        held_out = f"; {update.held_out} more held out" if update.held_out else ""
        say(f"Learned {what} from {counted(update.examples, 'text')}{held_out}.")
    elif not update.corrected:
        say("Nothing is new: all texts are known with these labels.")
    for sentence in about_known_texts(update):
        say(sentence)
    print_changes(console, update)
    if is_used:
        classes = counted(len(revision.contents.classes), "class")
        say(f"{model} is at revision {revision.number}, with {classes}.")
        return
    for sentence in about_refused(model, revision, update):
        say(sentence)


def about_known_texts(update: "Update") -> list[str]:
    """What an update did to texts that were known before, a sentence each."""
    said = []
    if update.is_balanced:
        said.append("Every class has the same weight, however many texts it has: this improves recall.")
    if update.corrected:
        said.append(
            f"Corrected {counted(update.corrected, 'text')} that had another label before"
            + (", as if never learned under it." if update.is_exact else f": {TRACES}")
        )
    if update.repeated:
        said.append(
            f"Already known with the same label, and not counted twice: {counted(update.repeated, 'text')}."
        )
    if update.emptied:
        said.append(f"Removed, because no text is left: {counted(update.emptied, 'class')}.")
    if update.recognized == "none":
        said.append(
            "Corrections cannot be recognized: with memory_per_class = 0 and holdout_per_class = 0 nothing "
            "is kept to recognize a text by."
        )
    if update.recognized == "some":
        said.append(
            "Not every text can be recognized when it is corrected: no hash was kept of some that were "
            "learned earlier."
        )
    return said
