"""The demo's page: what happened in two weeks, as a figure and tables."""

from collections.abc import Sequence

from repcl.cli.demo.beside import StoredRuns
from repcl.cli.demo.story import Story
from repcl.experiments.reports.figures import Drawing, draw_bars
from repcl.experiments.reports.html import Listing, Paragraph, Part, Section
from repcl.experiments.reports.table import Cell, Column, Row, Table, number, word

OURS = "this model"


def demo_sections(story: Story, stored: StoredRuns, next_lines: Sequence[str]) -> list[Section]:
    """Every part of the page."""
    return [
        Section("weeks", "Two weeks", [_bars(story, stored), _comparison(story, stored)]),
        Section("intents", "Every intent, before and after", [_intents(story)]),
        Section("answers", "Three questions", [_answers(story)]),
        Section("undo", "A bad update, undone", _undone(story)),
        Section("next", "Your own texts", [Listing(next_lines)]),
    ]


def lead(story: Story) -> str:
    """What the page is about."""
    first, second = story.weeks
    return (
        f"A support desk learned {len(first)} intents, and {len(second)} more a week later. It did not read "
        f"the first week's texts again. All accuracies are on {sum(story.tested)} texts that it never "
        "learned."
    )


def _bars(story: Story, stored: StoredRuns) -> Drawing:
    ways = {OURS: (story.old_after, story.new_after)} | {way.name: (way.old, way.new) for way in stored.ways}
    bars = {name: {"old intents": 100 * old, "new intents": 100 * new} for name, (old, new) in ways.items()}
    description = "Accuracy after the second week on the intents of the first week and on the new ones"
    return draw_bars("two-weeks", description, bars)


def _comparison(story: Story, stored: StoredRuns) -> Table:
    rows: list[Row] = [_row(OURS, story.old_before, story.old_after, story.new_after, story.all_after)]
    rows += [_row(way.name, way.old_before, way.old, way.new, way.all) for way in stored.ways]
    titles = ("old, after week 1", "old, after week 2", "new, after week 2", "all, after week 2")
    notes = [
        f"This model was taught just now. The others are stored runs, the mean of {stored.rounds} rounds: "
        f"{stored.command}"
    ]
    columns = [Column("way to learn", is_text=True), *map(Column, titles)]
    return Table("two-weeks", "Accuracy in percent", columns, [rows], notes)


def _row(name: str, *shares: float | None) -> Row:
    return [word(name), *map(_percent, shares)]


def _intents(story: Story) -> Table:
    """Old intents with the largest loss first, then the new ones."""
    old = sorted((one for one in story.classes if one.before is not None), key=lambda one: one.change or 0.0)
    new = [one for one in story.classes if one.before is None]
    columns = [
        Column("intent", is_text=True),
        Column("after week 1"),
        Column("after week 2"),
        Column("change"),
    ]
    groups = [
        [[*_row(one.name, one.before, one.after), _percent(one.change)] for one in group]
        for group in (old, new)
    ]
    return Table("intents", "Accuracy in percent", columns, groups, is_sortable=True)


def _answers(story: Story) -> Table:
    columns = [Column("text", is_text=True), Column("answer", is_text=True), Column("confidence, percent")]
    rows = [[word(one.text), word(one.label), _percent(one.confidence)] for one in story.answers]
    return Table("answers", "Asked after week 2", columns, [rows])


def _undone(story: Story) -> list[Part]:
    return [Paragraph(sentence) for sentence in story.bad_update.told(story.all_after)]


def _percent(share: float | None) -> Cell:
    return number(None if share is None else 100 * share)
