"""What is asked of a measurement."""

from dataclasses import dataclass, replace
from pathlib import Path

from repcl.benchmarks import load_benchmark
from repcl.data import TaskStream
from repcl.model import DEFAULT_ENCODER


@dataclass(frozen=True)
class Options:
    """Data, encoder and size of a measurement.

    Attributes:
        encoder: a name or a folder.
        data_dir: holds the benchmarks.
        is_quick: try the wiring on the bundled texts; the numbers mean nothing.
    """

    encoder: str = DEFAULT_ENCODER
    data_dir: Path | None = None
    is_quick: bool = False

    def first_tasks(self, texts_per_class: int) -> TaskStream:
        """The first two tasks of HWU64."""
        stream = self.stream("hwu64", texts_per_class)
        return replace(stream, tasks=stream.tasks[:2])

    def stream(self, name: str, texts_per_class: int, tasks: int | None = None) -> TaskStream:
        """Round 0 of a benchmark with so many training texts of each class."""
        texts = min(4, texts_per_class) if self.is_quick else texts_per_class
        return load_benchmark(
            "demo" if self.is_quick else name,
            data_dir=self.data_dir,
            tasks=tasks,
            max_train_per_class=texts,
            max_test_per_class=2 if self.is_quick else None,
        )

    def times(self, number: int) -> int:
        """How often something is repeated."""
        return 2 if self.is_quick else number

    def words(self) -> list[str]:
        """The same options on a command line."""
        where = ["--data-dir", str(self.data_dir)] if self.data_dir else []
        return ["--encoder", self.encoder, *where, *(["--quick"] if self.is_quick else [])]
