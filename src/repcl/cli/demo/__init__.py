"""`repcl demo`: a support desk learns week by week; the first thing to run."""

import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated

import typer

from repcl.cli.console import make_console, sentence_console

if TYPE_CHECKING:
    from repcl.cli.demo.beside import StoredRuns
    from repcl.cli.demo.story import Answer, Story

NEXT = (
    "repcl learn mymodel tickets.csv        # your CSV, with columns text and label",
    'repcl predict mymodel "money back please"',
    "repcl serve mymodel --open             # the same in a browser",
)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the HTML page and the model.")] = Path("runs/demo"),
) -> None:
    """Try it on a bundled support desk: teach, teach more, ask, undo a bad update; takes half a minute."""
    say = sentence_console().print
    say("A support desk that keeps learning. Nothing is downloaded.")
    say("This takes about half a minute.")
    import torch

    from repcl.cli.demo.beside import stored_runs
    from repcl.cli.demo.page import demo_sections, lead
    from repcl.cli.demo.story import bundled_desk, play
    from repcl.experiments.reports.html import Header
    from repcl.experiments.reports.write import write_page

    stored = stored_runs()
    with make_console().status("Learning ..."):
        torch.set_num_threads(1)  # on a busy machine a second thread mostly waits, and burns time waiting
        out.mkdir(parents=True, exist_ok=True)
        story = play(out / "desk", bundled_desk())
    for line in [*_weeks(story), *_asked(story.answers), *_undone(story), *_beside(story, stored)]:
        say(line)
    header = Header("A support desk that keeps learning", lead(story))
    next_lines = [*activation(), *NEXT]
    page = write_page(out, header, demo_sections(story, stored, next_lines))
    for line in [
        "",
        f"The same as a page for your browser: {page}",
        f"The model is in {out / 'desk'}; all this took {story.cpu_seconds:.0f} s of processor time.",
        "",
        "Now with texts of your own:",
        *(f"  {line}" for line in next_lines),
    ]:
        say(line)


def activation() -> list[str]:
    """What makes `repcl` a command where it is none yet, as after `make demo`."""
    activate = Path(sys.prefix, "bin", "activate")
    if which("repcl") or not activate.exists():
        return []
    here = Path.cwd()
    return [f"source {activate.relative_to(here) if activate.is_relative_to(here) else activate}"]


def _weeks(story: "Story") -> list[str]:
    old, new = map(len, story.weeks)
    worst = story.most_changed
    lines = [
        "",
        f"Week 1: taught {old} intents with {story.texts[0]} texts.",
        f"Week 2: taught {new} more with {story.texts[1]} texts; the old texts were not read again.",
        "",
        _columns("Accuracy on texts it never learned", "after week 1", "after week 2"),
        _columns(
            f"{old} old intents ({story.tested[0]} texts)", _share(story.old_before), _share(story.old_after)
        ),
        _columns(f"{new} new intents ({story.tested[1]} texts)", "–", _share(story.new_after)),
        _columns(f"all {old + new}", "–", _share(story.all_after)),
    ]
    if worst.change:
        lines.append(f"{worst.name} lost most: from {_share(worst.before)} to {_share(worst.after)}.")
    return lines


def _asked(answers: "Sequence[Answer]") -> list[str]:
    lines = [line for one in answers for line in (f"  {one.text}", f"    {_answer(one)}")]
    return ["", "Three questions:", *lines]


def _answer(one: "Answer") -> str:
    return (
        "unknown: it fits none of the intents"
        if one.is_unknown
        else f"{one.label} ({one.confidence:.0%} sure)"
    )


def _undone(story: "Story") -> list[str]:
    return ["", "A bad update:", *(f"  {sentence}" for sentence in story.bad_update.told(story.all_after))]


def _beside(story: "Story", stored: "StoredRuns") -> list[str]:
    """A table of the ways to learn the same two weeks."""
    return [
        "",
        f"Other ways to learn the same (stored runs, mean of {stored.rounds} rounds):",
        "",
        _columns("After week 2", "old intents", "new intents", "all"),
        _columns("this model", *map(_share, (story.old_after, story.new_after, story.all_after))),
        *(_columns(way.name, *map(_share, (way.old, way.new, way.all))) for way in stored.ways),
    ]


def _columns(name: str, *cells: str) -> str:
    """A row of a table within 80 columns."""
    return f"  {name:<34}" + "".join(f"{cell:>14}" for cell in cells)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
