"""The nouns of the data layer: an example, a task, and the stream of tasks."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

InputKind = Literal["sentence", "relation", "event"]
SPANS = ("head", "tail", "trigger")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text, in characters, `[start, end)`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Example:
    """A text with its label; relations mark two entities, events mark a trigger."""

    text: str
    label: str
    head: Span | None = None
    tail: Span | None = None
    trigger: Span | None = None

    def to_json(self) -> dict[str, Any]:
        """The example as a JSON object; spans that it does not have are left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, row: Any) -> "Example":
        """The example of a JSON object; `ValueError` says what is wrong with any other value."""
        try:
            text, label = row["text"], row["label"]
            spans = {key: Span(int(row[key]["start"]), int(row[key]["end"])) for key in SPANS if key in row}
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not an example: {type(error).__name__} {error}") from error
        if not isinstance(text, str) or not isinstance(label, str):
            raise ValueError("text and label have to be text")
        return cls(text, label, **spans)


def check_spans(text: str, spans: Mapping[str, tuple[int, int] | None]) -> None:
    """Raise `ValueError` where a span is empty or not in its text, or a head has no tail."""
    for name, pair in spans.items():
        if pair is not None and not 0 <= pair[0] < pair[1] <= len(text):
            raise ValueError(f"{name} has to lie within the text, its start before its end")
    if (spans["head"] is None) != (spans["tail"] is None):
        raise ValueError("head and tail have to be given together")


@dataclass(frozen=True, slots=True)
class TokenizedExample:
    """Token ids of one text and the token spans `[start, end)` that its representation is read from."""

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Task:
    """Classes that are learned together, with their training and test examples."""

    classes: tuple[str, ...]
    train: list[Example]
    test: list[Example]


@dataclass(frozen=True)
class Provenance:
    """Where a stream's examples came from, and how far they are from the published protocol.

    Attributes:
        files: sha256 of every file read, by file name.
        complete: whether the files held everything that the protocol asks for.
        capped: whether examples were left out on purpose (`--max-train-per-class`, preset `smoke`).
        notes: sentences worth telling the user once.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True
    capped: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskStream:
    """Tasks in the order in which they arrive; one round of a benchmark."""

    name: str
    kind: InputKind
    tasks: tuple[Task, ...]
    round: int = 0
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def classes(self) -> tuple[str, ...]:
        """All classes, in the order in which they arrive."""
        return tuple(dict.fromkeys(name for task in self.tasks for name in task.classes))

    @cached_property
    def digest(self) -> str:
        """A hash of all classes and examples."""
        digest = hashlib.sha256()
        for task in self.tasks:
            digest.update(json.dumps(task.classes).encode())
            for example in (*task.train, *task.test):
                digest.update(repr(example).encode())
        return digest.hexdigest()
