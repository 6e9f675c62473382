"""`repcl classes`: list, describe, rename, merge and remove a model's classes; each change is a revision."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from repcl.cli.changes import print_changes
from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.options import Json, Model, Wait
from repcl.cli.stages import notes_to
from repcl.cli.tables import counted, print_table
from repcl.errors import UnknownName

if TYPE_CHECKING:
    from repcl.classifier import ContinualClassifier
    from repcl.classifier.store.files import Blobs
    from repcl.classifier.store.records import Contents, Revision


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
    """Show a model's classes with the texts that are kept of each."""
    from repcl.classifier.store.folder import ModelFolder

    revision, (exemplars, held_out) = ModelFolder(model).open(_texts_per_class)
    rows = [
        {"class": name, "exemplars": exemplars[name], "held_out": held_out[name]}
        for name in sorted(revision.contents.names)
    ]
    if as_json:
        print_json({"revision": revision.number, "classes": rows})
        return
    cells = [[str(value) for value in row.values()] for row in rows]
    title = f"{counted(len(rows), 'class')} at revision {revision.number}"
    print_table(make_console(), title, ["class", "exemplars", "held out"], cells)


@classes_app.command("rename")
def rename(
    model: Model,
    old: Annotated[str, typer.Argument(help="The class.")],
    new: Annotated[str, typer.Argument(help="Its new name.")],
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Give a class another name."""

    def change(classifier: "ContinualClassifier") -> None:
        classifier.rename_class(classifier.label_of(old), classifier.label_of(new))

    revision, classifier = _changed(model, "renaming a class", change, wait)
    _report(model, revision, classifier, as_json)


@classes_app.command("describe")
def describe(
    model: Model,
    name: Annotated[str, typer.Argument(help="The class; a new one needs no example.")],
    description: Annotated[
        str | None, typer.Option(help="What its texts are about; its name if not given.")
    ] = None,
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Teach a class by its name or a description, which counts as one text."""

    def change(classifier: "ContinualClassifier") -> None:
        classifier.describe_class(classifier.label_of(name), description)

    revision, classifier = _changed(model, "describing a class", change, wait)
    _report(model, revision, classifier, as_json)


@classes_app.command("merge")
def merge(
    model: Model,
    names: Annotated[list[str], typer.Argument(help="The classes.")],
    into: Annotated[str, typer.Option(help="The name of the union: a new one, or one of theirs.")],
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Make one class of several."""

    def change(classifier: "ContinualClassifier") -> None:
        classifier.merge_classes([classifier.label_of(name) for name in names], classifier.label_of(into))

    revision, classifier = _changed(model, "merging classes", change, wait)
    _report(model, revision, classifier, as_json)


@classes_app.command("remove")
def remove(
    model: Model,
    name: Annotated[str, typer.Argument(help="The class.")],
    purge: Annotated[bool, typer.Option("--purge", help="Also delete older revisions that hold it.")] = False,
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Forget a class: its texts, its row in the classifier, its statistics."""
    from repcl.classifier import ContinualClassifier, ModelFolder

    folder = ModelFolder(model)
    with folder.lock("removing a class", wait=wait, tell=_tell):
        classifier = ContinualClassifier.load(model, device="cpu")
        name = str(classifier.label_of(name))
        origins = classifier.fitted_state().origins.get(name, ())
        if origins:
            with notes_to(sentence_console(stderr=True)):
                classifier.remove_class(classifier.label_of(name))
            classifier.commit(folder)
        holding = folder.holding(name, origins)
        if not origins and not (purge and holding):
            raise UnknownName("class", name, sorted(classifier.fitted_state().names))
        if purge:
            folder.purge(holding)
        revision = folder.revision(folder.current())
    _report(model, revision, classifier, as_json, **{"purged" if purge else "still_held_by": holding})


def _texts_per_class(contents: "Contents", blobs: "Blobs") -> tuple[Counter[str], Counter[str]]:
    """How many exemplars and how many held-out texts there are of each class."""
    from repcl.classifier.store.files import get_examples

    kept, held_out = (
        Counter(example.label for example in get_examples(record, blobs, contents.names))
        for record in (contents.memory, contents.held_out)
    )
    return kept, held_out


def _changed(
    model: Path, purpose: str, change: Callable[["ContinualClassifier"], None], wait: float
) -> "tuple[Revision, ContinualClassifier]":
    """Change a model's classes while its folder is locked."""
    from repcl.classifier import ContinualClassifier, ModelFolder

    folder = ModelFolder(model)
    folder.current()
    with folder.lock(purpose, wait=wait, tell=_tell), notes_to(sentence_console(stderr=True)):
        classifier = ContinualClassifier.load(model, device="cpu")
        change(classifier)
        return classifier.commit(folder), classifier


def _tell(text: str) -> None:
    sentence_console(stderr=True).print(text)


def _report(
    model: Path,
    revision: "Revision",
    classifier: "ContinualClassifier",
    as_json: bool,
    *,
    purged: list[int] | None = None,
    still_held_by: list[int] | None = None,
) -> None:
    if as_json:
        found = {
            "revision": revision.number,
            "classes": [label.item() for label in classifier.classes_],
            "update": classifier.last_update_.model_dump(mode="json"),
        }
        if purged is not None or still_held_by is not None:
            found |= {"purged": purged or [], "still_held_by": still_held_by or []}
        print_json(found)
        return
    console = make_console()
    print_changes(console, classifier.last_update_)
    say = sentence_console().print
    say(f"{model} is at revision {revision.number}, with {counted(len(classifier.classes_), 'class')}.")
    if purged:
        say(f"Deleted revisions that held the class: {', '.join(map(str, purged))}.")
    if still_held_by:
        say(f"Older revisions still hold it: {', '.join(map(str, still_held_by))}; --purge deletes them.")
