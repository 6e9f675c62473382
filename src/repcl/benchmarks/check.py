"""Says what of a benchmark is on this machine: files, classes, examples per class."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from repcl.benchmarks import BENCHMARKS, load_benchmark
from repcl.benchmarks.base import Benchmark
from repcl.benchmarks.stream import digest_state
from repcl.data.examples import TaskStream
from repcl.errors import UnknownName


@dataclass(frozen=True)
class FileState:
    """One original file: its size, or None where it is missing, and whether its hash is the public one's."""

    name: str
    size: int | None
    digest: str


@dataclass(frozen=True)
class ClassCount:
    """How many examples a class has in round 0."""

    label: str
    train: int
    test: int


@dataclass(frozen=True)
class CheckResult:
    """What was found; without all files there are no classes."""

    benchmark: Benchmark
    folder: Path
    files: tuple[FileState, ...]
    classes: tuple[ClassCount, ...]
    complete: bool
    notes: tuple[str, ...]


def check(name: str, data_dir: str | Path | None = None) -> CheckResult:
    """Look at a benchmark's files, and read them if they are all there."""
    if name not in BENCHMARKS:
        raise UnknownName("benchmark", name, BENCHMARKS)
    benchmark = BENCHMARKS[name]
    folder = benchmark.folder(data_dir)
    files = _file_states(benchmark, folder)
    if missing := benchmark.missing_files(folder):
        note = f"{', '.join(missing)} not found in {folder}: {benchmark.remedy()}."
        return CheckResult(benchmark, folder, files, classes=(), complete=False, notes=(note,))
    stream = load_benchmark(name, data_dir=data_dir)
    provenance = stream.provenance
    return CheckResult(benchmark, folder, files, _class_counts(stream), provenance.complete, provenance.notes)


def _file_states(benchmark: Benchmark, folder: Path) -> tuple[FileState, ...]:
    return tuple(
        FileState(file.name, path.stat().st_size, digest_state(file, path))
        if path.is_file()
        else FileState(file.name, None, "missing")
        for file in benchmark.files
        for path in [folder / file.name]
    )


def _class_counts(stream: TaskStream) -> tuple[ClassCount, ...]:
    train = Counter(example.label for task in stream.tasks for example in task.train)
    test = Counter(example.label for task in stream.tasks for example in task.test)
    return tuple(ClassCount(label, train[label], test[label]) for label in stream.classes)
