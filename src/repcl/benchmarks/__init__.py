"""The published data sets by name, and the way from a name or a user's file to a stream of tasks."""

from pathlib import Path
from random import Random
from typing import get_args

from repcl.benchmarks.arrangement import Arrangement
from repcl.benchmarks.banking77 import BANKING77
from repcl.benchmarks.base import Benchmark, Protocol
from repcl.benchmarks.clinc150 import CLINC150
from repcl.benchmarks.demo import DEMO
from repcl.benchmarks.fewrel import FEWREL
from repcl.benchmarks.hwu64 import HWU64
from repcl.benchmarks.maven import MAVEN
from repcl.benchmarks.own import DEFAULT_TASKS, read_own
from repcl.benchmarks.stream import build_stream
from repcl.benchmarks.tacred import TACRED
from repcl.data.examples import TaskStream
from repcl.data.order import class_order, round_seed
from repcl.errors import InvalidSetting, UnknownName

__all__ = ["BENCHMARKS", "Benchmark", "load_benchmark", "own_file"]

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark for benchmark in (FEWREL, TACRED, MAVEN, HWU64, CLINC150, BANKING77, DEMO)
}

_DATA_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")


def load_benchmark(  # noqa: PLR0913 (one keyword per command-line option)
    name: str | Path,
    *,
    data_dir: str | Path | None = None,
    round: int = 0,
    tasks: int | None = None,
    classes_per_task: int | None = None,
    class_order_file: str | Path | None = None,
    max_train_per_class: int | None = None,
    max_test_per_class: int | None = None,
    test_file: str | Path | None = None,
    text_column: str = "text",
    label_column: str = "label",
    protocol: Protocol = "code",
) -> TaskStream:
    """One round of a benchmark, or of a user's data file, as a stream of tasks.

    Args:
        name: a benchmark's name, or the path of a CSV, TSV, JSONL or Parquet file.
        data_dir: holds one folder per benchmark; else `REPCL_DATA`, else the user's cache folder.
        round: the round; it decides class order and split of a benchmark, and the split of a user's file.
        tasks: number of tasks, as equal as possible.
        classes_per_task: size of each task; with `tasks`, the first so many tasks are used.
        class_order_file: one class name a line, or a JSON list of tasks, each a list of class names.
        max_train_per_class: keep the first so many training examples of a class.
        max_test_per_class: keep the first so many test examples of a class.
        test_file: test part of a user's file; without it, a fifth of each class is held out.
        text_column: column with the texts of a user's file.
        label_column: column with the labels of a user's file.
        protocol: where a paper and its released code differ, the one to follow.
    """
    if protocol not in get_args(Protocol):
        raise UnknownName("protocol", protocol, get_args(Protocol))
    arrangement = Arrangement(
        tasks=tasks,
        classes_per_task=classes_per_task,
        class_order_file=None if class_order_file is None else Path(class_order_file),
        max_train_per_class=max_train_per_class,
        max_test_per_class=max_test_per_class,
    )
    if str(name) not in BENCHMARKS:
        test = None if test_file is None else Path(test_file)
        columns = (text_column, label_column)
        return _own_stream(own_file(name), test, arrangement, columns=columns, round=round)
    if test_file is not None:
        raise InvalidSetting(
            f"{name} has its own test part: give a test file only with a data file of yours."
        )
    return _published_stream(BENCHMARKS[str(name)], data_dir, arrangement, protocol=protocol, round=round)


def own_file(name: str | Path) -> Path:
    """The data file that a name stands for; its own name may not be a benchmark's, mistyped or taken."""
    path = Path(name)
    looks_like_a_path = len(path.parts) > 1 or path.suffix.lower() in _DATA_ENDINGS
    if not looks_like_a_path and not path.is_file():
        raise UnknownName("benchmark", str(name), BENCHMARKS)
    if path.stem in BENCHMARKS:
        raise InvalidSetting(
            f"{path} would be taken for the benchmark {path.stem}, with its settings and published numbers: "
            "rename the file."
        )
    return path


def _published_stream(
    benchmark: Benchmark,
    data_dir: str | Path | None,
    arrangement: Arrangement,
    *,
    protocol: Protocol,
    round: int,
) -> TaskStream:
    folder = benchmark.folder(data_dir)
    # seeded anew with the number that decides the class order, as the released code does
    corpus = benchmark.corpus(folder, Random(round_seed(round)), protocol)
    labels = list(corpus.splits)
    order = [labels[index] for index in class_order(len(labels), round_seed(round))]
    return build_stream(
        benchmark.name,
        benchmark.kind,
        corpus,
        arrangement.divide(order, benchmark.tasks),
        arrangement,
        round=round,
        files=[folder / file.name for file in benchmark.files],
    )


def _own_stream(
    path: Path, test_file: Path | None, arrangement: Arrangement, *, columns: tuple[str, str], round: int
) -> TaskStream:
    text_column, label_column = columns
    kind, corpus = read_own(
        path, test_file, Random(round_seed(round)), text_column=text_column, label_column=label_column
    )
    return build_stream(
        path.stem,
        kind,
        corpus,
        arrangement.divide(list(corpus.splits), DEFAULT_TASKS),
        arrangement,
        round=round,
        files=[path] if test_file is None else [path, test_file],
    )
