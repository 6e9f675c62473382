"""FewRel: 80 Wikidata relations between two marked entities, ten tasks of eight."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from repcl.benchmarks.base import Benchmark, Corpus, SourceFile, Split
from repcl.benchmarks.originals import by_class, counted_corpus, token_span
from repcl.data.examples import Example, Span

_HOME = "https://raw.githubusercontent.com/thunlp/FewRel/master/data"
FILES = (
    SourceFile("train_wiki.json", f"{_HOME}/train_wiki.json", digest="md5:5e663e9c3f1bfbdb2de72696e9504fd7"),
    SourceFile("val_wiki.json", f"{_HOME}/val_wiki.json"),
)
PER_RELATION = 700

# fmt: off
LABELS = (
    "P931", "P4552", "P140", "P1923", "P150", "P6", "P27", "P449", "P1435", "P175", "P1344", "P39", "P527",
    "P740", "P706", "P84", "P495", "P123", "P57", "P22", "P178", "P241", "P403", "P1411", "P135", "P991",
    "P156", "P176", "P31", "P1877", "P102", "P1408", "P159", "P3373", "P1303", "P17", "P106", "P551",
    "P937", "P355", "P710", "P137", "P674", "P466", "P136", "P306", "P127", "P400", "P974", "P1346",
    "P460", "P86", "P118", "P264", "P750", "P58", "P3450", "P105", "P276", "P101", "P407", "P1001", "P800",
    "P131", "P177", "P364", "P2094", "P361", "P641", "P59", "P413", "P206", "P412", "P155", "P26", "P410",
    "P25", "P463", "P40", "P921",
)
# fmt: on


def read_fewrel(folder: Path, generator: random.Random) -> Corpus:
    """Shuffle each relation, in the files' own order; 60 % train, 20 % unused validation, 20 % test.

    Of a relation's 700 sentences these are the protocol's 420, 140 and 140.
    """
    known = set(LABELS)
    groups = by_class(
        example for file in FILES for example in _examples(folder / file.name) if example.label in known
    )
    splits = {}
    for label, examples in groups.items():
        generator.shuffle(examples)
        train, test = max(1, len(examples) * 3 // 5), len(examples) // 5
        splits[label] = Split(train=examples[:train], test=examples[len(examples) - test :])
    sentences = sum(min(len(examples), PER_RELATION) for examples in groups.values())
    found = {"relations": len(groups), "sentences": sentences}
    return counted_corpus(splits, LABELS, found, {"relations": 80, "sentences": 80 * PER_RELATION})


def _examples(path: Path) -> Iterator[Example]:
    for relation, instances in json.loads(path.read_bytes()).items():
        for instance in instances:
            tokens = instance["tokens"]
            head, tail = (_first_mention(tokens, instance[entity][2]) for entity in ("h", "t"))
            yield Example(" ".join(tokens), relation, head=head, tail=tail)


def _first_mention(tokens: list[str], mentions: list[list[int]]) -> Span:
    return token_span(tokens, mentions[0][0], mentions[0][-1] + 1)


FEWREL = Benchmark(
    name="fewrel",
    kind="relation",
    classes=80,
    tasks=10,
    citation="Han et al., FewRel: A Large-Scale Supervised Few-Shot Relation Classification Dataset with "
    "State-of-the-Art Evaluation, EMNLP 2018",
    source="https://github.com/thunlp/FewRel",
    license="MIT",
    files=FILES,
    read=read_fewrel,
)
