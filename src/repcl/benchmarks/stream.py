"""Turns a corpus into a stream of tasks, and writes down where its examples came from."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from repcl.benchmarks.base import Corpus, SourceFile, Split
from repcl.benchmarks.stream_spec import StreamSpec
from repcl.data.examples import Example, InputKind, Provenance, Span, Task, TaskStream
from repcl.errors import InvalidData


def build_stream(
    name: str,
    kind: InputKind,
    corpus: Corpus,
    tasks: list[list[str]],
    spec: StreamSpec,
    *,
    files: Sequence[Path],
) -> TaskStream:
    """Fill each task with its classes' examples."""
    kept = {label: spec.cap(corpus.splits[label]) for task in tasks for label in task}
    provenance = Provenance(
        files=_digests(files),
        complete=corpus.complete,
        capped=_size(kept) < _size(corpus.splits),
        notes=(*corpus.notes, *_left_out(corpus, kept), *_untested(name, kept), *_shared(kept)),
    )
    return TaskStream(name, kind, tuple(_task(labels, kept) for labels in tasks), spec.round, provenance)


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """The hash of a file's bytes, read in pieces."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def digest_state(file: SourceFile, path: Path) -> str:
    """Whether a file `matches` or `differs` from the public one by its hash, or `unknown`."""
    if file.digest is None:
        return "unknown"
    algorithm, _, expected = file.digest.partition(":")
    return "matches" if file_digest(path, algorithm) == expected else "differs"


def other_bytes_note(names: Sequence[str]) -> str:
    """What is to be said of files that are complete by counts, and not the public ones by their hash."""
    return (
        f"Not the public file byte for byte, by its hash: {', '.join(names)}. "
        "That it is complete is judged by counts alone, and the split need not be that of the authors."
    )


def _digests(files: Sequence[Path]) -> dict[str, str]:
    """Hashes by file name, or by path where two folders hold files of one name."""
    names = [file.name for file in files]
    return {str(file) if names.count(file.name) > 1 else file.name: file_digest(file) for file in files}


def _task(labels: list[str], splits: Mapping[str, Split]) -> Task:
    train = [example for label in labels for example in splits[label].train]
    test = [example for label in labels for example in splits[label].test]
    return Task(tuple(labels), train, test)


def _size(splits: Mapping[str, Split]) -> int:
    return sum(len(split.train) + len(split.test) for split in splits.values())


def _left_out(corpus: Corpus, kept: Mapping[str, Split]) -> list[str]:
    if len(kept) == len(corpus.splits):
        return []
    return [f"{len(kept)} of {len(corpus.splits)} classes are used, as asked for."]


def _untested(name: str, splits: Mapping[str, Split]) -> list[str]:
    untested = [label for label, split in splits.items() if not split.test]
    if len(untested) == len(splits):
        raise InvalidData(
            f"Nothing is left to test in {name}: no class has a second example; add examples or a test file."
        )
    shown = ", ".join(map(repr, untested[:5])) + (", …" if len(untested) > 5 else "")
    return [f"Trained but not tested for lack of examples: {shown}."] if untested else []


def _shared(splits: Mapping[str, Split]) -> list[str]:
    """Say how many test texts were trained on: the data sets themselves repeat some."""
    tested = Counter(_question(example) for split in splits.values() for example in split.test)
    shared = sum(tested.pop(_question(example), 0) for split in splits.values() for example in split.train)
    return [f"Test texts that also stand in the training part: {shared}."] if shared else []


def _question(example: Example) -> tuple[str, Span | None, Span | None, Span | None]:
    """What a classifier is shown of an example: two relations of one sentence are two questions."""
    return example.text, example.head, example.tail, example.trigger
