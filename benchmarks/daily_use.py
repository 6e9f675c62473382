"""Unknown texts, few texts and rare classes: what the instant learner makes of them.

    REPCL_DATA=/path/to/data python benchmarks/daily_use.py unknown --benchmark hwu64 --benchmark banking77
    REPCL_DATA=/path/to/data python benchmarks/daily_use.py promise --benchmark clinc150
    REPCL_DATA=/path/to/data python benchmarks/daily_use.py few --benchmark demo --benchmark banking77
    REPCL_DATA=/path/to/data python benchmarks/daily_use.py rare --benchmark hwu64

Texts are drawn from the training texts of round 5, and measured on its test texts.

- unknown: a quarter of the classes is left out. How many test texts of the other classes the automatic
  threshold accepts and how many texts of the left-out ones it catches; the area under the ROC curve of
  confidence, of the cosine with the nearest text, and of both together.
- promise: the same without test texts: how many training texts that were not learned are accepted.
- few: accuracy after so many texts of each class, without and with the class's name as one more text.
- rare: classes of 1 to 60 texts, evenly spread on a logarithmic scale; mean recall of the classes when each
  text weighs the same, when each class does, and when leave-one-out recall decides.

REPCL_EMBEDDINGS names a folder for embeddings.
"""

import argparse
import json
import statistics
import warnings
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
from sklearn.metrics import recall_score, roc_auc_score

from repcl import ContinualClassifier
from repcl.benchmarks import load_benchmark
from repcl.classifier.labels import spoken
from repcl.data import Example

ROUND = 5
Texts = dict[str, list[Example]]


def main() -> None:
    options = read_options()
    for benchmark in options.benchmark:
        train, test = read(benchmark)
        for name, measured in MEASURES[options.what](train, test, options.draws):
            means = {key: statistics.mean(one[key] for one in measured) for key in measured[0]}
            spread = {key: statistics.pstdev(one[key] for one in measured) for key in measured[0]}
            shown = ", ".join(f"{key} {means[key]:.1f} ± {spread[key]:.1f}" for key in means)
            print(json.dumps(means) if options.json else f"{benchmark}, {name}: {shown}", flush=True)


def read(benchmark: str) -> tuple[Texts, Texts]:
    """Training and test texts by class; a text stands in a class once."""
    stream = load_benchmark(benchmark, round=ROUND)
    train: Texts = {}
    test: Texts = {}
    for task in stream.tasks:
        for example in dict.fromkeys(task.train):
            train.setdefault(example.label, []).append(example)
        for example in dict.fromkeys(task.test):
            test.setdefault(example.label, []).append(example)
    return train, test


def unknown(train: Texts, test: Texts, draws: int) -> Iterator[tuple[str, list[dict[str, float]]]]:
    """Known and left-out classes."""
    for most in (10, 20, 100):
        measured = []
        for draw in range(draws):
            random = Random(draw)
            names = random.sample(sorted(train), len(train))
            known = names[: round(0.75 * len(names))]
            lesson = [
                one for name in known for one in random.sample(train[name], min(most, len(train[name])))
            ]
            state = taught(lesson).fitted_state()
            of_known = state.evidence([one for name in known for one in test.get(name, [])])
            of_others = state.evidence([one for name in names[len(known) :] for one in test.get(name, [])])
            rule = state.unknown_rule()
            measured.append(
                {
                    "accepted": 100 * (1 - float(rule.applies(of_known).mean())),
                    "caught": 100 * float(rule.applies(of_others).mean()),
                    "AUROC of both": auroc(rule.certainty(of_known), rule.certainty(of_others)),
                    "of confidence": auroc(
                        of_known.probabilities.max(axis=1), of_others.probabilities.max(axis=1)
                    ),
                    "of nearness": auroc(of_known.nearness, of_others.nearness),
                }
            )
        yield f"at most {most} texts per class", measured


def promise(train: Texts, _: Texts, draws: int) -> Iterator[tuple[str, list[dict[str, float]]]]:
    """Training texts of known classes; a fifth of each is not learned, and asked."""
    for most in (20, 80):
        measured = []
        for draw in range(draws):
            random = Random(draw)
            lesson: list[Example] = []
            asked: list[Example] = []
            for name in random.sample(sorted(train), round(0.75 * len(train))):
                own = random.sample(train[name], len(train[name]))
                held = len(own) // 5
                asked, lesson = asked + own[:held], lesson + own[held : held + most]
            state = taught(lesson).fitted_state()
            is_unknown = state.unknown_rule().applies(state.evidence(asked))
            measured.append({"accepted": 100 * (1 - float(is_unknown.mean()))})
        yield f"at most {most} texts per class", measured


def few(train: Texts, test: Texts, draws: int) -> Iterator[tuple[str, list[dict[str, float]]]]:
    """Few texts, with and without the name."""
    names = [Example(spoken(name), name) for name in train]
    asked = [one for own in test.values() for one in own]
    for count in (0, 1, 2, 5, 10):
        measured = []
        for draw in range(draws):
            random = Random(draw)
            lesson = [one for own in train.values() for one in drawn(random, own, count)]
            alone = accuracy(taught(lesson), asked) if lesson else 0.0
            measured.append({"texts": alone, "texts and name": accuracy(taught([*lesson, *names]), asked)})
        yield f"{count} texts per class", measured


def rare(train: Texts, test: Texts, draws: int) -> Iterator[tuple[str, list[dict[str, float]]]]:
    """Classes of very different size."""
    asked = [one for own in test.values() for one in own]
    measured = []
    for draw in range(draws):
        random = Random(draw)
        sizes = {name: round(60 ** random.random()) for name in sorted(train)}
        lesson = [
            one for name, own in train.items() for one in random.sample(own, min(sizes[name], len(own)))
        ]
        measured.append(
            {
                name: macro_recall(taught(lesson, balanced=balanced), asked)
                for name, balanced in (("texts", False), ("classes", True), ("decided", None))
            }
        )
    yield "1 to 60 texts per class", measured


MEASURES: dict[str, Callable[[Texts, Texts, int], Iterator[tuple[str, list[dict[str, float]]]]]] = {
    "unknown": unknown,
    "promise": promise,
    "few": few,
    "rare": rare,
}


def drawn(random: Random, own: list[Example], most: int) -> list[Example]:
    """At most so many of a class's texts."""
    return random.sample(own, min(most, len(own)))


def taught(examples: list[Example], **settings: Any) -> ContinualClassifier:
    """A classifier that learned them."""
    classifier = ContinualClassifier(method="instant", settings=settings)
    return classifier.fit(examples, [one.label for one in examples])


def accuracy(classifier: ContinualClassifier, asked: list[Example]) -> float:
    """In percent."""
    return 100 * float(np.mean(classifier.predict(asked) == np.array([one.label for one in asked])))


def macro_recall(classifier: ContinualClassifier, asked: list[Example]) -> float:
    """In percent."""
    labels = [one.label for one in asked]
    return 100 * float(recall_score(labels, classifier.predict(asked), average="macro"))


def auroc(known: Any, others: Any) -> float:
    """In percent."""
    is_known = [True] * len(known) + [False] * len(others)
    return 100 * float(roc_auc_score(is_known, [*known, *others]))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="unknown texts, few texts and rare classes")
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--benchmark", action="append", required=True)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
