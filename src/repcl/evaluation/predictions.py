"""What was predicted for every test example after every task, and its JSONL file, packed or not."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from repcl.errors import ResultMismatch
from repcl.files import NotPlainFile, open_plain, parse_json, write_whole

PACKED = ".gz"
LONGEST_LINE = 1 << 24
MOST_BYTES = 1 << 30
"""Unpacked; a file that a few bytes blow up to more is none of ours."""


@dataclass(frozen=True, slots=True)
class TestedExample:
    """One test example and its predictions; tasks count from 0.

    Attributes:
        id: Names the example within its benchmark.
        task: The task whose test part holds the example.
        label: Its true class.
        predicted: The class predicted after its own task, after the next one, and so on to the last; None
            where nothing was evaluated at that moment.
    """

    __test__ = False  # the name starts as a test's does; pytest should not collect it

    id: str
    task: int
    label: str
    predicted: tuple[str | None, ...]

    def predicted_after(self, task: int) -> str | None:
        """The prediction after a task; None before the example's own task or when nothing was evaluated."""
        if task < self.task:
            return None
        if task - self.task >= len(self.predicted):
            last = self.task + len(self.predicted) - 1
            raise ResultMismatch(
                f"Expected a prediction of test example {self.id!r} after task {task}, found none after task "
                f"{last}. Score as many tasks as were learned."
            )
        return self.predicted[task - self.task]


def fraction_correct(tested: Iterable[TestedExample], *, after: int) -> float | None:
    """Accuracy after a task over the examples that were evaluated then; None if there were none."""
    predictions = ((example.label, example.predicted_after(after)) for example in tested)
    hits = [predicted == label for label, predicted in predictions if predicted is not None]
    return sum(hits) / len(hits) if hits else None


def write_predictions(path: Path, tested: Iterable[TestedExample]) -> None:
    """Write one JSON row per test example, packed if the name ends in `.gz`; equal rows give equal bytes."""
    rows = [json.dumps(asdict(example), ensure_ascii=False) + "\n" for example in tested]
    text = "".join(rows).encode()
    write_whole(path, gzip.compress(text, mtime=0) if path.suffix == PACKED else text)


def read_predictions(path: Path) -> list[TestedExample]:
    """Read what `write_predictions` wrote."""
    try:
        with open_plain(path) as file, _unpacked(path, file) as unpacked:
            lines = enumerate(_lines(path, unpacked), 1)
            return [_read_row(line, where=f"{path}, line {number}") for number, line in lines]
    except NotPlainFile as error:
        raise ResultMismatch(f"Expected predictions in a plain file, found that {error}.") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ResultMismatch(
            f"Expected predictions packed by gzip in {path}, found a damaged file. "
            "Run the experiment again to write it anew."
        ) from error


def _unpacked(path: Path, file: BinaryIO) -> "AbstractContextManager[BinaryIO | gzip.GzipFile]":
    return gzip.GzipFile(fileobj=file) if path.suffix == PACKED else nullcontext(file)


def _lines(path: Path, file: "BinaryIO | gzip.GzipFile") -> Iterator[bytes]:
    """The lines of a file; a longer one than any of ours comes in pieces, which no reader takes for rows."""
    read = 0
    while line := file.readline(LONGEST_LINE):
        read += len(line)
        if read > MOST_BYTES:
            raise ResultMismatch(
                f"Expected at most {MOST_BYTES:,} bytes of predictions in {path}, found more. "
                "Run the experiment again to write it anew."
            )
        yield line


def _read_row(line: bytes, *, where: str) -> TestedExample:
    try:
        row = parse_json(line)
    except ValueError:  # neither JSON nor, perhaps, text
        row = None
    match row:
        case {"id": str(name), "task": int(task), "label": str(label), "predicted": [_, *_] as predicted} if (
            task >= 0 and all(isinstance(one, str | None) for one in predicted)
        ):
            return TestedExample(name, task, label, tuple(predicted))
    raise ResultMismatch(
        f'{where}: expected {{"id": text, "task": number, "label": text, "predicted": [text or null, ...]}}, '
        f"found {line.decode(errors='replace').strip()[:100]!r}. Run the experiment again to write it anew."
    )
