"""Texts that a service was not sure of, kept beside a model: the file's record, and how many there are."""

import os
from pathlib import Path

from pydantic import model_validator

from repcl.classifier.store.files import read_whole
from repcl.classifier.store.records import MEGABYTE, Count, Record, Short, read_record
from repcl.data import Example, Span
from repcl.data.examples import SPANS, check_spans
from repcl.errors import RepclError
from repcl.files import shown

SERVICE, COLLECTED = "service", "collected.json"
LARGEST_COLLECTION = 64 * MEGABYTE

Pair = tuple[Count, Count]


class CollectedText(Record):
    """A text that a service was asked about.

    Attributes:
        id: names it in requests.
        when: it was asked about, UTC.
        text: word for word.
    """

    id: Short
    when: Short
    text: str
    head: Pair | None = None
    tail: Pair | None = None
    trigger: Pair | None = None

    @model_validator(mode="after")
    def _spans_lie_in_the_text(self) -> "CollectedText":
        check_spans(self.text, {name: getattr(self, name) for name in SPANS})
        return self

    def example(self) -> Example:
        """The text as a classifier takes it."""
        pairs = {name: getattr(self, name) for name in SPANS}
        return Example(self.text, "", **{name: Span(*pair) for name, pair in pairs.items() if pair})


class Collection(Record):
    """All collected texts, oldest first."""

    texts: tuple[CollectedText, ...] = ()


def read_collection(model: Path) -> Collection:
    """The texts collected beside a model."""
    path = model / SERVICE / COLLECTED
    if not os.path.lexists(path):
        return Collection()
    data = read_whole(path, largest=LARGEST_COLLECTION, where=shown(path))
    found: Collection = read_record(data, Collection, shown(path))
    return found


def collected_count(model: Path) -> int | None:
    """How many texts are collected beside a model; None where that cannot be read."""
    try:
        return len(read_collection(model).texts)
    except RepclError:
        return None
