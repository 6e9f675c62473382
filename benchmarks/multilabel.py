"""Several labels a text: what the learners that can do it make of texts that ask for up to three things.

    REPCL_DATA=/path/to/data python benchmarks/multilabel.py [--benchmark hwu64] [--texts 3000] [--draws 3]

There is no public set of this kind at hand. So texts of round 5 are put together: one, two or three of
different classes make a text with as many labels, and each is used once. Learned in three updates, then asked
about test texts put together in the same way. Beside it stands what a user would build: a logistic regression
for each label on the same embeddings, anew with all texts. REPCL_EMBEDDINGS names a folder for embeddings.
"""

import argparse
import json
import statistics
import warnings
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer

from repcl import ContinualClassifier
from repcl.benchmarks import load_benchmark
from repcl.data import Example

ROUND, UPDATES = 5, 3
METHODS = ("instant", "ncm")


def main() -> None:
    options = read_options()
    draws = [measure(options, draw) for draw in range(options.draws)]
    for name in draws[0]:
        means = {key: statistics.mean(one[name][key] for one in draws) for key in draws[0][name]}
        if options.json:
            print(json.dumps({"learner": name, **means}))
        else:
            spread = {key: statistics.pstdev(one[name][key] for one in draws) for key in means}
            print(f"{name}: " + ", ".join(f"{key} {means[key]:.1f} ± {spread[key]:.1f}" for key in means))


def measure(options: argparse.Namespace, draw: int) -> dict[str, dict[str, float]]:
    """F1 over all labels, its mean over classes, and the share of texts with exactly the right labels."""
    stream, random = load_benchmark(options.benchmark, round=ROUND), Random(draw)
    texts, labels = joined([one for task in stream.tasks for one in task.train], options.texts, random)
    asked, wanted = joined([one for task in stream.tasks for one in task.test], options.texts, random)
    binary = MultiLabelBinarizer().fit([*labels, *wanted])
    truth, found = binary.transform(wanted), {}
    for method in METHODS:
        classifier = ContinualClassifier(method, multilabel=True, tolerance=1.0)
        for part in range(UPDATES):
            classifier.partial_fit(texts[part::UPDATES], labels[part::UPDATES])
        found[method] = scored(truth, binary.transform(classifier.predict(asked)))
        probable = classifier.predict_proba(asked) >= 0.5
        found[f"{method}, one half for every label"] = scored(truth, columns(classifier, binary, probable))
    embed = classifier.method_.embed
    rows, tested = (embed([Example(text, "") for text in own]).numpy() / 2**15 for own in (texts, asked))
    for penalty in (10.0, 100.0):
        model = OneVsRestClassifier(LogisticRegression(C=penalty, max_iter=1000))
        answers = model.fit(rows, binary.transform(labels)).predict(tested)
        found[f"logistic regressions, C = {penalty:g}"] = scored(truth, answers)
    return found


def joined(examples: Sequence[Example], most: int, random: Random) -> tuple[list[str], list[list[str]]]:
    """Texts made of one, two or three texts of different classes."""
    left = random.sample(list(dict.fromkeys(examples)), len(set(examples)))
    texts, labels = [], []
    while len(left) >= 3 and len(texts) < most:
        parts = [left.pop() for _ in range(random.choice((1, 2, 3)))]
        if len({part.label for part in parts}) == len(parts):
            texts.append(". ".join(part.text for part in parts))
            labels.append([part.label for part in parts])
    return texts, labels


def columns(classifier: ContinualClassifier, binary: MultiLabelBinarizer, has_label: Any) -> Any:
    """Answers with a column for each class of the truth."""
    answers = [
        [label for label, is_one in zip(classifier.classes_, row, strict=True) if is_one] for row in has_label
    ]
    return binary.transform(answers)


def scored(truth: Any, found: Any) -> dict[str, float]:
    return {
        "F1": 100 * float(f1_score(truth, found, average="micro")),
        "macro F1": 100 * float(f1_score(truth, found, average="macro", zero_division=0.0)),
        "exact": 100 * float(np.mean((truth == found).all(axis=1))),
    }


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="several labels a text")
    parser.add_argument("--benchmark", default="hwu64")
    parser.add_argument("--texts", type=int, default=3000)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
