"""The published data sets by name, and the way from a name or a user's file to a stream of tasks."""

from dataclasses import replace
from pathlib import Path
from random import Random

from repcl.benchmarks.banking77 import BANKING77
from repcl.benchmarks.base import Benchmark, Corpus
from repcl.benchmarks.clinc150 import CLINC150
from repcl.benchmarks.demo import DEMO
from repcl.benchmarks.fewrel import FEWREL
from repcl.benchmarks.hwu64 import HWU64
from repcl.benchmarks.maven import MAVEN
from repcl.benchmarks.own import DEFAULT_TASKS, read_own
from repcl.benchmarks.stream import build_stream, digest_state, other_bytes_note
from repcl.benchmarks.stream_spec import StreamSpec
from repcl.benchmarks.tacred import TACRED
from repcl.data.examples import TaskStream
from repcl.data.names import plain_name
from repcl.data.order import class_order, round_seed
from repcl.errors import InvalidSetting, UnknownName

__all__ = ["BENCHMARKS", "Benchmark", "StreamSpec", "load_benchmark", "load_stream", "own_file"]

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark for benchmark in (FEWREL, TACRED, MAVEN, HWU64, CLINC150, BANKING77, DEMO)
}

_DATA_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx")


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
    protocol: str = "code",
) -> TaskStream:
    """One round of a benchmark, or of a user's data file, as a stream of tasks; see `StreamSpec`."""
    return load_stream(
        StreamSpec(
            name=str(name),
            round=round,
            data_dir=_path(data_dir),
            tasks=tasks,
            classes_per_task=classes_per_task,
            class_order_file=_path(class_order_file),
            max_train_per_class=max_train_per_class,
            max_test_per_class=max_test_per_class,
            test_file=_path(test_file),
            text_column=text_column,
            label_column=label_column,
            protocol=protocol,
        )
    )


def load_stream(spec: StreamSpec) -> TaskStream:
    """Read the data that are asked for and arrange them in tasks."""
    if spec.name not in BENCHMARKS:
        return _own_stream(own_file(spec.name), spec)
    if spec.test_file is not None:
        raise InvalidSetting(
            f"{spec.name} has its own test part: give a test file only with a data file of yours."
        )
    benchmark = BENCHMARKS[spec.name]
    folder = benchmark.folder(spec.data_dir)
    # seeded anew with the number that decides the class order, as the released code does
    corpus = benchmark.corpus(folder, Random(round_seed(spec.round)), spec.protocol)
    corpus = replace(corpus, notes=(*corpus.notes, *_other_bytes(benchmark, folder, corpus)))
    labels = list(corpus.splits)
    order = [labels[index] for index in class_order(len(labels), round_seed(spec.round))]
    tasks = spec.divide(order, benchmark.tasks)
    files = [folder / file.name for file in benchmark.files]
    return build_stream(benchmark.name, benchmark.kind, corpus, tasks, spec, files=files)


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
    plain_name(path.stem)  # results are kept in a folder of that name
    return path


def _other_bytes(benchmark: Benchmark, folder: Path, corpus: Corpus) -> list[str]:
    """Say where completeness rests on counts alone; incomplete files are said to be so anyway."""
    if not corpus.complete:
        return []
    differing = [f.name for f in benchmark.files if digest_state(f, folder / f.name) == "differs"]
    return [other_bytes_note(differing)] if differing else []


def _own_stream(path: Path, spec: StreamSpec) -> TaskStream:
    kind, corpus = read_own(
        path,
        spec.test_file,
        Random(round_seed(spec.round)),
        text_column=spec.text_column,
        label_column=spec.label_column,
    )
    tasks = spec.divide(list(corpus.splits), DEFAULT_TASKS)
    files = [path] if spec.test_file is None else [path, spec.test_file]
    return build_stream(path.stem, kind, corpus, tasks, spec, files=files)


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
