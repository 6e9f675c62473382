"""Test texts that a run answers wrong in the end, kept beside its result so that a report can show them."""

import gzip
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from repcl.data import TaskStream
from repcl.errors import ResultMismatch
from repcl.evaluation import TestedExample
from repcl.files import open_plain, parse_json, write_whole

MOST_TEXTS, LONGEST = 200, 1000  # texts, and letters of each
MOST_BYTES = 2**24  # a file that unpacks to more is none of ours


@dataclass(frozen=True)
class WrongText:
    """A test text with its class and the wrong answer; tasks count from 0."""

    text: str
    task: int
    label: str
    answer: str


@dataclass(frozen=True)
class _Stored:
    """The content of a file.

    Attributes:
        fingerprint: of the run that it belongs to.
    """

    fingerprint: str
    texts: list[WrongText]


def find_wrong_texts(stream: TaskStream, tested: Sequence[TestedExample]) -> list[WrongText]:
    """Texts with a wrong answer after the last task, those of the last task first, then of the one before."""
    examples = [example for task in stream.tasks for example in task.test]
    wrong = [
        WrongText(example.text[:LONGEST], one.task, one.label, answer)
        for example, one in zip(examples, tested, strict=True)
        if (answer := one.predicted[-1]) is not None and answer != one.label
    ]
    return sorted(wrong, key=lambda text: -text.task)[:MOST_TEXTS]


def write_wrong_texts(path: Path, fingerprint: str, texts: Iterable[WrongText]) -> None:
    """Write them, packed; the same texts give the same bytes."""
    content = asdict(_Stored(fingerprint, list(texts)))
    packed = gzip.compress(json.dumps(content, ensure_ascii=False).encode("utf-8", "replace"), mtime=0)
    write_whole(path, packed)


def read_wrong_texts(path: Path, fingerprint: str) -> list[WrongText]:
    """Read what `write_wrong_texts` wrote; none where there is no file, or one of another run."""
    if not path.is_file():
        return []
    try:
        with open_plain(path) as file, gzip.GzipFile(fileobj=file) as unpacked:
            content = unpacked.read(MOST_BYTES)
        found = TypeAdapter(_Stored).validate_python(parse_json(content))
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise ResultMismatch(
            f"{path} does not hold the wrong texts of a run: delete it; the report is made without them."
        ) from error
    return found.texts[:MOST_TEXTS] if found.fingerprint == fingerprint else []
