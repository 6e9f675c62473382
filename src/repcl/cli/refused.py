"""Updates that the guard advises against: what commands say about them, and the exit code."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from repcl.cli.texts import print_note

if TYPE_CHECKING:
    from repcl.classifier import Update
    from repcl.classifier.store.records import Revision

REFUSED = 3


def command(word: str, model: Path) -> str:
    """What to type about a model."""
    return shlex.join(["repcl", word, str(model)])


def about_refused(model: Path, revision: "Revision", update: "Update") -> list[str]:
    """Why an update is not used, and what can be done about it, a sentence each."""
    return [
        f"Not used: {'; '.join(update.reasons)}.",
        f"Revision {revision.number} is kept; revision {revision.parent} stays in use.",
        f"To use it: {command('accept', model)}",
        f"To delete it: {command('discard', model)}",
    ]


def ways_out(model: Path) -> dict[str, str]:
    """The two commands, for programs."""
    return {"accept_with": command("accept", model), "discard_with": command("discard", model)}


def note_advice(update: "Update") -> None:
    """Note what the guard says about a change that is used anyway, because it was asked for by name."""
    if update.is_refused:
        print_note(f"The change is used, but the guard advises against it: {'; '.join(update.reasons)}.")
