"""BANKING77: 77 customer intents of an online bank, seven tasks of eleven."""

import json
import random
from pathlib import Path

from repcl.benchmarks.base import Benchmark, Corpus, SourceFile, Split
from repcl.benchmarks.originals import by_class, counted_corpus, part_counts
from repcl.data.examples import Example
from repcl.data.files import read_examples

_HOME = "https://raw.githubusercontent.com/PolyAI-LDN/task-specific-datasets/master/banking_data"
FILES = (
    SourceFile(
        "train.csv",
        f"{_HOME}/train.csv",
        size=839_073,
        digest="sha256:b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b",
    ),
    SourceFile(
        "test.csv",
        f"{_HOME}/test.csv",
        size=239_961,
        digest="sha256:d12d6e3bc4c3103966ae786dc435913c0c563dfa328f5a3646d0e62cfeeb474d",
    ),
    SourceFile(
        "categories.json",
        f"{_HOME}/categories.json",
        size=2_036,
        digest="sha256:53261da888122daf2d120d925458631d9619e15d82e56052e7a42e535ce32b63",
    ),
)


def read_banking77(folder: Path, _: random.Random) -> Corpus:
    """Take the training and test parts as given, classes in the order of `categories.json`."""
    labels = json.loads((folder / "categories.json").read_bytes())
    train, test = (_part(folder / name) for name in ("train.csv", "test.csv"))
    splits = {label: Split(train[label], test.get(label, [])) for label in labels if label in train}
    expected = {"classes": 77, "training texts": 10_003, "test texts": 3_080}
    return counted_corpus(splits, splits, part_counts(splits), expected)


def _part(path: Path) -> dict[str, list[Example]]:
    return by_class(read_examples(path, label_column="category"))


BANKING77 = Benchmark(
    name="banking77",
    kind="sentence",
    classes=77,
    tasks=7,
    citation="Casanueva et al., Efficient Intent Detection with Dual Sentence Encoders, NLP4ConvAI 2020",
    source="https://github.com/PolyAI-LDN/task-specific-datasets",
    license="CC BY 4.0",
    files=FILES,
    read=read_banking77,
)
