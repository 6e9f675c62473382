"""What an update did to old classes, for people: how many texts were lost, who took them, what to do."""

from typing import TYPE_CHECKING

from rich.console import Console

from repcl.classifier.wording import advice, cut_name
from repcl.cli.tables import counted, print_table
from repcl.errors import shortened

if TYPE_CHECKING:
    from repcl.classifier import Update
    from repcl.classifier.store.records import ClassChange, LostText

CLASSES_SHOWN = 20
TEXTS_SHOWN = 3
DOUBTFUL_SHOWN = 10
LONGEST_TEXT = 30  # with two names of 16 a line has 80 columns


def print_changes(console: Console, update: "Update") -> None:
    """What an update did to texts of old classes that tell how good it is."""
    if update.accuracy_before is not None and update.accuracy_after is not None:
        console.print(
            f"Texts of old classes: {update.accuracy_before:.1%} right before, "
            f"{update.accuracy_after:.1%} after ({update.compared} texts, p = {update.p_value:.2g}).",
            highlight=False,
        )
    if update.recall_before is not None and update.recall_after is not None:
        console.print(
            f"Mean over old classes: {update.recall_before:.1%} before, {update.recall_after:.1%} after.",
            highlight=False,
        )
    if update.regressed:
        _print_regressed(console, update)
    for lost in update.lost_texts[:TEXTS_SHOWN]:
        _print_text(console, "lost", lost, "now")
    if update.is_refused:
        for doubtful in update.doubtful_texts[:DOUBTFUL_SHOWN]:
            _print_text(console, "check", doubtful, "or")
        if len(update.doubtful_texts) > DOUBTFUL_SHOWN:
            left = len(update.doubtful_texts) - DOUBTFUL_SHOWN
            console.print(f"  and {counted(left, 'text')} more to check", highlight=False)


def _print_text(console: Console, what: str, text: "LostText", between: str) -> None:
    """A text in one line, with its label and what it gets."""
    names = f"{cut_name(text.label, 16)}, {between} {cut_name(text.answer, 16)}"
    console.print(
        f"  {what}: {shortened(text.text, LONGEST_TEXT)} ({names})", highlight=False, soft_wrap=True
    )


def _print_regressed(console: Console, update: "Update") -> None:
    shown = update.regressed[:CLASSES_SHOWN]
    rows = [
        [
            cut_name(change.name),
            f"{change.correct_before} of {change.texts}",
            str(change.correct_after),
            str(change.lost),
            _taken(change),
            advice(change, update),
        ]
        for change in shown
    ]
    columns = ["class", "right before", "after", "lost", "most to", "what to do"]
    print_table(console, "Regressed classes", columns, rows)
    if len(update.regressed) > len(shown):
        left = len(update.regressed) - len(shown)
        console.print(f"and {counted(left, 'class')} more, each with {shown[-1].lost} lost or fewer.")


def _taken(change: "ClassChange") -> str:
    return "–" if change.taken_by is None else f"{cut_name(change.taken_by)} ({change.taken})"
