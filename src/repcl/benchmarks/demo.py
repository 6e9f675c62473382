"""demo: a small corpus of customer messages that comes with the package, ten tasks of three classes."""

import random
from pathlib import Path

from repcl.benchmarks.base import Benchmark, Corpus, SourceFile, Split
from repcl.benchmarks.originals import by_class
from repcl.data.files import read_examples


def read_demo(folder: Path, _: random.Random) -> Corpus:
    """Take both parts as given, classes in the order of the training file."""
    train = by_class(read_examples(folder / "train.csv"))
    test = by_class(read_examples(folder / "test.csv"))
    return Corpus({label: Split(examples, test[label]) for label, examples in train.items()})


DEMO = Benchmark(
    name="demo",
    kind="sentence",
    classes=30,
    tasks=10,
    citation="written for this project",
    source="comes with repcl",
    license="CC0-1.0",
    files=(SourceFile("train.csv"), SourceFile("test.csv")),
    read=read_demo,
    bundled=Path(__file__).parent / "demo_corpus",
)
