"""`repcl history`, `rollback`, `accept` and `discard`: the revisions of a model folder."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.options import Json, Model, Wait
from repcl.cli.tables import counted, print_table
from repcl.errors import listed

if TYPE_CHECKING:
    from repcl.classifier import Update
    from repcl.classifier.store.records import Revision

NAMES_SHOWN = 4


def history(
    model: Model,
    keep_last: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Delete all but the newest N revisions and the one in use."),
    ] = None,
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Show when a model learned what, and what that did to old classes."""
    from repcl.classifier.store.folder import ModelFolder

    folder = ModelFolder(model)
    current = folder.current()
    if keep_last is not None:
        with folder.lock("purging", wait=wait):
            current = folder.current()
            gone = [number for number in folder.numbers()[:-keep_last] if number != current]
            folder.purge(gone)
        if gone and not as_json:
            numbers = listed(map(str, gone), 20)
            sentence_console().print(f"Deleted {counted(len(gone), 'revision')}: {numbers}.")
    revisions = folder.history()
    if as_json:
        found = {"current": current, "revisions": [_plain(one) for one in revisions]}
        print_json(found)
        return
    before = [None, *(revision.number for revision in revisions)]
    rows = [_cells(revision, current, last) for revision, last in zip(revisions, before, strict=False)]
    columns = ["revision", "when (UTC)", "what", "texts", "classes", "old before", "old after", "all"]
    print_table(make_console(), f"{model}, revision {current} in use", columns, rows)
    for number in folder.unreadable():
        sentence_console().print(f"Revision {number} is damaged and cannot be shown.")


def rollback(
    model: Model,
    revision: Annotated[int, typer.Argument(help="The revision to use.")],
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Use another revision, older or newer; none is deleted."""
    from repcl.classifier.store.folder import ModelFolder

    folder = ModelFolder(model)
    folder.revision(revision)
    with folder.lock("rolling back", wait=wait):
        chosen = folder.rollback(revision)
    if as_json:
        print_json({"model": str(model), "current": revision, "classes": len(chosen.contents.classes)})
        return
    sentence_console().print(
        f"{model} is at revision {revision}, with {counted(len(chosen.contents.classes), 'class')}."
    )


def accept(model: Model, wait: Wait = 600.0, as_json: Json = False) -> None:
    """Use the newest update although the guard refused it."""
    from repcl.classifier.store.folder import ModelFolder

    folder = ModelFolder(model)
    folder.refused()
    with folder.lock("accepting an update", wait=wait):
        chosen = folder.accept()
    classes = counted(len(chosen.contents.classes), "class")
    if as_json:
        print_json({"model": str(model), "current": chosen.number, "classes": len(chosen.contents.classes)})
        return
    sentence_console().print(f"{model} is at revision {chosen.number}, with {classes}.")


def discard(model: Model, wait: Wait = 600.0, as_json: Json = False) -> None:
    """Delete the newest update that the guard refused; the revision in use stays."""
    from repcl.classifier.store.folder import ModelFolder

    folder = ModelFolder(model)
    folder.refused()
    with folder.lock("discarding an update", wait=wait):
        gone, current = folder.discard().number, folder.current()
    if as_json:
        print_json({"model": str(model), "current": current, "discarded": gone})
        return
    sentence_console().print(f"Revision {gone} is deleted; {model} stays at revision {current}.")


def _plain(revision: "Revision") -> dict[str, Any]:
    """A revision for programs: everything but the list of files."""
    found = revision.model_dump(mode="json", exclude={"contents"})
    held = revision.contents
    return found | {
        "classes": [record.name for record in held.classes],
        "exemplars": held.memory.count,
        "held_out": held.held_out.count,
        "is_refused": revision.is_refused,
    }


def _cells(revision: "Revision", current: int, before: int | None) -> list[str]:
    """A row of the table; the parent is named where it is not the revision before, as after a rollback."""
    updates = revision.updates
    last = updates[-1] if updates else None
    number = f"{revision.number}{'*' * (revision.number == current)}"
    if revision.parent not in (None, before):
        number += f" from {revision.parent}"
    what = "; ".join(_described(update) for update in updates) or "saved"
    if revision.is_refused:
        what += " (refused)"
    shares = (last.accuracy_before, last.accuracy_after, last.accuracy) if last else (None, None, None)
    return [
        number,
        revision.when.replace("T", " ").rstrip("Z"),
        what,
        str(sum(update.examples for update in updates)),
        str(len(revision.contents.classes)),
        *("–" if share is None else f"{share:.1%}" for share in shares),
    ]


def _described(update: "Update") -> str:
    if update.action == "remove":
        return "removed a class"
    if update.action == "improve":
        return f"trained a duet on {counted(update.examples, 'text')}"
    if update.action == "forget":
        return f"forgot {counted(update.forgotten, 'text')}"
    if update.action in ("rename", "merge"):
        return f"{update.action}d to {', '.join(update.new_classes)}"
    names = [*update.new_classes, *(f"more of {name}" for name in update.more_of)] or ["nothing new"]
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{'absorbed' if update.action == 'absorb' else 'learned'} {', '.join(names[:NAMES_SHOWN])}{more}"
