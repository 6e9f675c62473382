"""What an update did, in words: what was done, and what to do about a class that lost texts."""

from typing import TYPE_CHECKING

from repcl.errors import counted

if TYPE_CHECKING:
    from repcl.classifier.store.records import ClassChange, Update

NAMES_SHOWN = 4
LONGEST_NAME = 20
REMOVED = "a class that was removed"
"""Stands for a name that is not kept."""


def described(update: "Update") -> str:
    """What was done, in a few words."""
    if update.action == "remove":
        return "removed a class"
    if update.action == "improve":
        return f"trained a duet on {counted(update.examples, 'text')}"
    if update.action == "forget":
        return f"forgot {counted(update.forgotten, 'text')}"
    if update.action in ("rename", "merge"):
        return f"{update.action}d to {', '.join(update.new_classes) or REMOVED}"
    names = [*update.new_classes, *(f"more of {name}" for name in update.more_of)]
    names = names or [REMOVED if update.examples else "nothing new"]
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{'absorbed' if update.action == 'absorb' else 'learned'} {', '.join(names[:NAMES_SHOWN])}{more}"


def advice(change: "ClassChange", update: "Update") -> str:
    """What to do about a class that lost texts, if it should not have."""
    if change.taken_by is None:
        return "teach it more texts"
    if change.taken_by in update.new_classes:
        return "merge the two, or teach it more texts"
    if change.taken_by in update.more_of:
        return f"check the new texts of {cut_name(change.taken_by)}"
    return "teach it more texts"


def cut_name(name: str, longest: int = LONGEST_NAME) -> str:
    """A name that fits into a table."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
