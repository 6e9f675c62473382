"""`repcl classes`: list a model's classes, rename, merge and remove them; each change is a revision."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from repcl.classifier import ContinualClassifier, ModelFolder
from repcl.classifier.lifecycle import holders
from repcl.classifier.records import Revision
from repcl.cli.console import make_console, sentence_console
from repcl.cli.learn import Json, Model, Wait, print_changes
from repcl.cli.stages import notes_to
from repcl.cli.tables import counted, print_table
from repcl.errors import UnknownName


class ListUnlessTold(TyperGroup):
    """`repcl classes MODEL` is short for `repcl classes list MODEL`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put in the word `list` where no command is named."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["list", *args]
        return super().parse_args(ctx, args)


classes_app = typer.Typer(
    cls=ListUnlessTold, help="List, rename, merge and remove a model's classes.", no_args_is_help=True
)


@classes_app.command("list")
def list_classes(model: Model, as_json: Json = False) -> None:
    """Show a model's classes with the texts that are kept of each."""
    folder = ModelFolder(model)
    revision, knowledge = folder.open(device="cpu")
    exemplars = knowledge.method.memory.counts()
    held = [example.label for example in knowledge.held_back]
    rows = [
        {"class": name, "exemplars": exemplars.get(name, 0), "held_back": held.count(name)}
        for name in sorted(knowledge.names)
    ]
    if as_json:
        print(json.dumps({"revision": revision.number, "classes": rows}, ensure_ascii=False))
        return
    cells = [[str(value) for value in row.values()] for row in rows]
    title = f"{counted(len(rows), 'class')} at revision {revision.number}"
    print_table(make_console(), title, ["class", "exemplars", "held back"], cells)


@classes_app.command("rename")
def rename(
    model: Model,
    old: Annotated[str, typer.Argument(help="The class.")],
    new: Annotated[str, typer.Argument(help="Its new name.")],
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Give a class another name."""

    def change(classifier: ContinualClassifier) -> None:
        classifier.rename_class(classifier.label_of(old), classifier.label_of(new))

    revision, classifier = _changed(model, "renaming a class", change, wait)
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

    def change(classifier: ContinualClassifier) -> None:
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
    folder = ModelFolder(model)
    with folder.lock("removing a class", wait=wait, tell=_tell):
        classifier = ContinualClassifier.load(model, device="cpu")
        origins = classifier.known().origins.get(name, ())
        if origins:
            with notes_to(sentence_console(stderr=True)):
                classifier.remove_class(classifier.label_of(name))
            classifier.commit(folder)
        holding = sorted({*holders(folder.history(), name, origins), *folder.unreadable()})
        if not origins and not (purge and holding):
            raise UnknownName("class", name, sorted(classifier.known().names))
        if purge:
            folder.purge(holding)
        revision = folder.revision(folder.current())
    _report(model, revision, classifier, as_json, **{"purged" if purge else "still_held_by": holding})


def _changed(
    model: Path, purpose: str, change: Callable[[ContinualClassifier], None], wait: float
) -> tuple[Revision, ContinualClassifier]:
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
    revision: Revision,
    classifier: ContinualClassifier,
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
        print(json.dumps(found, ensure_ascii=False))
        return
    console = make_console()
    print_changes(console, classifier.last_update_)
    say = sentence_console().print
    say(f"{model} is at revision {revision.number}, with {counted(len(classifier.classes_), 'class')}.")
    if purged:
        say(f"Deleted revisions that held the class: {', '.join(map(str, purged))}.")
    if still_held_by:
        say(f"Older revisions still hold it: {', '.join(map(str, still_held_by))}; --purge deletes them.")
