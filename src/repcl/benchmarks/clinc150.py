"""CLINC150: 150 assistant intents from ten domains, ten tasks of fifteen."""

import json
import random
from pathlib import Path

from repcl.benchmarks.base import Benchmark, Corpus, SourceFile, Split
from repcl.benchmarks.originals import by_class, counted_corpus, part_counts
from repcl.data.examples import Example

FILE = SourceFile(
    "data_full.json",
    "https://raw.githubusercontent.com/clinc/oos-eval/master/data/data_full.json",
    size=2_495_390,
    digest="sha256:36923c3705a59e08fe9c3883d8bc2dd966ef93e22cb78ac41171782a698d56e0",
)


def read_clinc150(folder: Path, _: random.Random) -> Corpus:
    """Take training and test part as given, classes in alphabetical order; out-of-scope texts are unused."""
    parts = json.loads((folder / FILE.name).read_bytes())
    train, test = (_part(parts[name]) for name in ("train", "test"))
    splits = {label: Split(train[label], test.get(label, [])) for label in sorted(train)}
    expected = {"classes": 150, "training texts": 15_000, "test texts": 4_500}
    return counted_corpus(splits, splits, part_counts(splits), expected)


def _part(rows: list[tuple[str, str]]) -> dict[str, list[Example]]:
    return by_class(Example(text, label) for text, label in rows)


CLINC150 = Benchmark(
    name="clinc150",
    kind="sentence",
    classes=150,
    tasks=10,
    citation="Larson et al., An Evaluation Dataset for Intent Classification and Out-of-Scope Prediction, "
    "EMNLP 2019",
    source="https://github.com/clinc/oos-eval",
    license="CC BY 3.0",
    files=(FILE,),
    read=read_clinc150,
)
