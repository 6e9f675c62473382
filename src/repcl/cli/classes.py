"""`repcl classes`: list, describe, rename, merge and remove a model's classes; each change is a revision."""

import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from repcl.cli.changes import print_changes
from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.options import Json, Model, Wait
from repcl.cli.refused import REFUSED, about_refused, note_advice, ways_out
from repcl.cli.stages import notes_to
from repcl.cli.tables import counted, print_table
from repcl.errors import InvalidSetting, UnknownName, listed, shortened

if TYPE_CHECKING:
    from repcl.classifier import ContinualClassifier, ModelFolder, Update
    from repcl.classifier.overview import ClassOverview
    from repcl.classifier.store.records import Revision


class ListByDefault(TyperGroup):
    """`repcl classes MODEL` is short for `repcl classes list MODEL`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `list` where no command is named."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["list", *args]
        return super().parse_args(ctx, args)


classes_app = typer.Typer(
    cls=ListByDefault,
    help="List, describe, rename, merge and remove a model's classes.",
    no_args_is_help=True,
)


@classes_app.command("list")
def list_classes(model: Model, as_json: Json = False) -> None:
    """Show each class: texts learned, kept and checked, recall, the class it is most confused with."""
    from repcl.classifier.store.folder import ModelFolder

    folder = ModelFolder(model)
    folder.current()
    from repcl.classifier.overview import overview  # with torch; a missing model is said at once
    from repcl.classifier.store.snapshot import unpack

    with notes_to(sentence_console(stderr=True)):
        revision, state = folder.open(partial(unpack, device="cpu"))
        found = overview(state)
    if as_json:
        named = [asdict(one) for one in found]
        rows = [{"class": row.pop("name"), **row} for row in named]
        print_json({"revision": revision.number, "classes": rows})
        return
    title = f"{counted(len(found), 'class')} at revision {revision.number}"
    columns = ["class", "learned", "kept", "checked", "recall", "most confused with"]
    print_table(make_console(), title, columns, [_cells(one) for one in found])


def _cells(one: "ClassOverview") -> list[str]:
    return [
        one.name,
        "–" if one.learned is None else str(one.learned),
        str(one.kept),
        str(one.checked),
        "–" if one.recall is None else f"{one.recall:.0%}",
        "" if one.confused_with is None else f"{one.confused_with} ({one.confusions})",
    ]


@classes_app.command("rename")
def rename(
    model: Model,
    old: Annotated[str, typer.Argument(help="The class to rename.")],
    new: Annotated[str, typer.Argument(help="Its new name.")],
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Rename a class."""

    def change(classifier: "ContinualClassifier") -> None:
        classifier.rename_class(classifier.label_of(old), classifier.label_of(new))

    revision, classifier = _changed(model, "renaming a class", change, wait)
    done = f"Renamed {shortened(old)} to {shortened(new)}"
    _report(model, revision, classifier, as_json, done=done, update=classifier.last_update_)


@classes_app.command("describe")
def describe(
    model: Model,
    name: Annotated[str, typer.Argument(help="The class; a new one needs no examples.")],
    description: Annotated[
        str | None, typer.Option(help="What its texts are about; default: its name.")
    ] = None,
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Teach a class from a description or its name alone; it counts as one text, and the guard checks it."""

    def change(classifier: "ContinualClassifier") -> None:
        classifier.describe_class(classifier.label_of(name), description)

    revision, classifier = _changed(model, "describing a class", change, wait, is_guarded=True)
    update = classifier.last_update_
    done = f"Taught {shortened(name)} from a description"
    _report(model, revision, classifier, as_json, done=done, update=update, is_used=not update.is_refused)
    if update.is_refused:
        raise typer.Exit(REFUSED)


@classes_app.command("merge")
def merge(
    model: Model,
    names: Annotated[list[str], typer.Argument(help="The classes to merge.")],
    into: Annotated[str, typer.Option(help="Name of the merged class: a new one, or one of theirs.")],
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Merge several classes into one."""

    def change(classifier: "ContinualClassifier") -> None:
        classifier.merge_classes([classifier.label_of(name) for name in names], classifier.label_of(into))

    revision, classifier = _changed(model, "merging classes", change, wait)
    done = f"Merged {listed(map(shortened, names), 5)} into {shortened(into)}"
    _report(model, revision, classifier, as_json, done=done, update=classifier.last_update_)


@classes_app.command("remove")
def remove(
    model: Model,
    name: Annotated[str, typer.Argument(help="The class to remove.")],
    purge: Annotated[
        bool, typer.Option("--purge", help="Also delete older revisions that hold the class.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --purge: delete them without asking.")] = False,
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Remove a class: its texts, its row in the classifier, its statistics."""
    from repcl.classifier import ContinualClassifier, ModelFolder

    folder = ModelFolder(model)
    folder.current()
    if purge and not yes:
        _ask_to_purge(folder, name)
    with folder.lock("removing a class", wait=wait, tell=_tell):
        classifier = ContinualClassifier.load(model, device="cpu")
        label, update = classifier.label_of(name), None
        name = str(label)
        origins = _origins(folder, name)
        if name in classifier.fitted_state().names:
            with notes_to(sentence_console(stderr=True)):
                classifier.remove_class(label)
            classifier.commit(folder)
            update = classifier.last_update_
        holding = folder.holding(name, origins)
        if purge:
            folder.purge(holding)  # also where there is none: an earlier purge may have been stopped
        if update is None and not (purge and holding):
            raise UnknownName("class", name, sorted(classifier.fitted_state().names))
        revision = folder.revision(folder.current())
    done = f"Removed {shortened(name)}" if update else f"No class {shortened(name)} is left"
    _report(
        model,
        revision,
        classifier,
        as_json,
        done=done,
        update=update,
        purged=holding if purge else None,
        still_held_by=None if purge else holding,
    )


def _ask_to_purge(folder: "ModelFolder", name: str) -> None:
    """Say which revisions will be gone for good, and go on only if someone says yes."""
    from repcl.classifier.labels import as_typed

    contents = folder.in_use().contents
    label = str(as_typed(name, contents.names, contents.label_type))
    held_by = folder.holding(label, _origins(folder, label))
    if not held_by:
        return
    gone = f"{counted(len(held_by), 'revision')} ({listed(map(str, held_by), 10)})"
    if not sys.stdin.isatty():
        raise InvalidSetting(f"--purge deletes {gone} of {folder.path} for good: add --yes to go on.")
    in_a_new_one = "; the class is removed in a new one" if label in contents.names else ""
    _tell(f"--purge deletes {gone} of {folder.path} for good{in_a_new_one}.")
    typer.confirm("Go on?", abort=True, err=True)


def _origins(folder: "ModelFolder", name: str) -> list[str]:
    """What a class is known by where it had another name, also after it was removed.

    What a class of another name in the revision in use is known by does not count: that one stays.
    """
    in_use = folder.in_use().contents.classes
    others = {origin for record in in_use if record.name != name for origin in record.origins}
    found = {
        origin
        for revision in folder.history()
        for record in revision.contents.classes
        if record.name == name
        for origin in record.origins
    }
    return sorted(found - others)


def _changed(
    model: Path,
    purpose: str,
    change: Callable[["ContinualClassifier"], None],
    wait: float,
    *,
    is_guarded: bool = False,
) -> "tuple[Revision, ContinualClassifier]":
    """Change a model's classes while its folder is locked; with a guard, a refused change is not used."""
    from repcl.classifier import ContinualClassifier, ModelFolder

    folder = ModelFolder(model)
    folder.current()
    with folder.lock(purpose, wait=wait, tell=_tell), notes_to(sentence_console(stderr=True)):
        classifier = ContinualClassifier.load(model, device="cpu")
        change(classifier)
        is_refused = is_guarded and classifier.last_update_.is_refused
        return classifier.commit(folder, make_current=not is_refused), classifier


def _tell(text: str) -> None:
    sentence_console(stderr=True).print(text)


def _report(
    model: Path,
    revision: "Revision",
    classifier: "ContinualClassifier",
    as_json: bool,
    *,
    done: str,
    update: "Update | None",
    is_used: bool = True,
    purged: list[int] | None = None,
    still_held_by: list[int] | None = None,
) -> None:
    if as_json:
        found: dict[str, Any] = {
            "revision": revision.number,
            "is_current": is_used,
            "classes": [label.item() for label in classifier.classes_],
            "update": update.model_dump(mode="json") if update else None,
        }
        if purged is not None or still_held_by is not None:
            found |= {"purged": purged or [], "still_held_by": still_held_by or []}
        print_json(found if is_used else found | ways_out(model))
        return
    say = sentence_console().print
    if update is not None:
        print_changes(make_console(), update)
    if update is not None and not is_used:
        for sentence in about_refused(model, revision, update):
            say(sentence)
        return
    if update is not None:
        note_advice(update)
    classes = counted(len(classifier.classes_), "class")
    say(f"{done}: {model} is at revision {revision.number}, with {classes}.")
    if purged:
        say(f"Deleted {counted(len(purged), 'revision')} that held it: {', '.join(map(str, purged))}.")
    if still_held_by:
        say(f"Older revisions still hold it: {', '.join(map(str, still_held_by))}; --purge deletes them.")
