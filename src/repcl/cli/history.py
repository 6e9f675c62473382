"""`repcl history`, `rollback`, `accept` and `discard`: the revisions of a model folder."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from repcl.classifier.wording import described
from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.options import Json, Model, Wait
from repcl.cli.tables import WIDE_ENOUGH, counted, print_table
from repcl.errors import listed

if TYPE_CHECKING:
    from repcl.classifier.store.records import Revision


def history(
    model: Model,
    keep_last: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Now and after every update, keep only the newest N revisions and the one in use; "
            "0 keeps all.",
        ),
    ] = None,
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """List a model's revisions: what each one learned, when, and how old classes fared."""
    from repcl.classifier.store.folder import ModelFolder

    folder = ModelFolder(model)
    current = folder.current()
    if keep_last is not None:
        with folder.lock("purging", wait=wait):
            gone = folder.keep_last(keep_last or None)
            current = folder.current()
        if not as_json:
            for sentence in about_kept(keep_last, gone):
                sentence_console().print(sentence)
    revisions = folder.history()
    accepted = _accepted(revisions, current)
    if as_json:
        found = {"current": current, "revisions": [_plain(one, accepted) for one in revisions]}
        print_json(found)
        return
    before = [None, *(revision.number for revision in revisions)]
    rows = [_cells(one, current, last, accepted) for one, last in zip(revisions, before, strict=False)]
    columns = ["revision", "when (UTC)", "what", "texts", "classes", "old before", "old after", "all"]
    console = make_console()
    shown = range(len(columns)) if console.width >= WIDE_ENOUGH else (0, 1, 2, 5, 6)
    cells = [[row[at] for at in shown] for row in rows]
    print_table(console, f"{model}, revision {current} in use", [columns[at] for at in shown], cells)
    for number in folder.unreadable():
        sentence_console().print(f"Revision {number} is damaged and cannot be shown.")


def about_kept(count: int, gone: "list[int]") -> list[str]:
    """What became of old revisions, and what will become of them."""
    deleted = f"Deleted {counted(len(gone), 'revision')}: {listed(map(str, gone), 20)}."
    kept = f"After every update the newest {counted(count, 'revision')} and the one in use are kept."
    return [*([deleted] if gone else []), kept if count else "All revisions are kept from now on."]


def rollback(
    model: Model,
    revision: Annotated[int, typer.Argument(help="The revision to use.")],
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Switch to another revision, older or newer; none is deleted."""
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
    """Use the newest update even though the guard refused it."""
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


def _accepted(revisions: "list[Revision]", current: int) -> set[int]:
    """Refused revisions that were used all the same, as far as the folder knows.

    It names the one in use, and which others were made from; one that was left again without a trace stays
    refused.
    """
    used = {current, *(revision.parent for revision in revisions)}
    return {revision.number for revision in revisions if revision.is_refused and revision.number in used}


def _plain(revision: "Revision", accepted: set[int]) -> dict[str, Any]:
    """A revision for programs: everything but the list of files."""
    found = revision.model_dump(mode="json", exclude={"contents"})
    held = revision.contents
    return found | {
        "classes": [record.name for record in held.classes],
        "exemplars": held.memory.count,
        "held_out": held.held_out.count,
        "is_refused": revision.is_refused,
        "is_accepted": revision.number in accepted,
    }


def _cells(revision: "Revision", current: int, before: int | None, accepted: set[int]) -> list[str]:
    """A row of the table; the parent is named where it is not the revision before, as after a rollback."""
    updates = revision.updates
    last = updates[-1] if updates else None
    number = f"{revision.number}{'*' * (revision.number == current)}"
    if revision.parent not in (None, before):
        number += f" from {revision.parent}"
    what = "; ".join(described(update) for update in updates) or "saved"
    if revision.is_refused:
        what += " (refused, then accepted)" if revision.number in accepted else " (refused)"
    elif any(update.is_refused for update in updates):
        what += " (against the guard's advice)"
    shares = (last.accuracy_before, last.accuracy_after, last.accuracy) if last else (None, None, None)
    return [
        number,
        revision.when.replace("T", " ").rstrip("Z"),
        what,
        str(sum(update.examples for update in updates)),
        str(len(revision.contents.classes)),
        *("–" if share is None else f"{share:.1%}" for share in shares),
    ]
