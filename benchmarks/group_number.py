"""How many groups `discover` suggests for texts of unlearned classes, against how many classes there are.

    REPCL_DATA=/path/to/data python benchmarks/group_number.py [--benchmark banking77] [--draws 5] [--json]

A draw learns 20 texts of half of the classes and groups texts of the other half: 20 of each, 5 of each, or
uneven numbers (log-normal, half of the classes between 5 and 18). By default training texts, by which
constants were chosen; with --test the benchmark's test texts. Said are the suggested number over the true one
(geometric mean and range over draws), the share of draws within 25 %, the adjusted Rand index, and the share
of the largest group. REPCL_EMBEDDINGS names a folder for embeddings.
"""

import argparse
import json
import os
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from repcl import ContinualClassifier
from repcl.benchmarks import load_benchmark
from repcl.classifier.grouping import group_vectors, learned_guide
from repcl.classifier.vectors import embed, kept, of_last_layer
from repcl.data import Example

CASES = ("20 of each", "5 of each", "uneven")


def main() -> None:
    options = read_options()
    stream = load_benchmark(options.benchmark, data_dir=options.data_dir, round=0)
    train = unique([one for task in stream.tasks for one in task.train])
    asked = unique([one for task in stream.tasks for one in task.test]) if options.test else train
    draws = [measure(options, train, asked, number) for number in range(options.draws)]
    if options.json:
        print(json.dumps({"options": vars(options), "draws": draws}))
        return
    print(f"{options.benchmark}, {'test' if options.test else 'training'} texts, {options.draws} draws")
    for case in CASES:
        found = [draw[case] for draw in draws]
        ratios = np.array([one["suggested"] / one["classes"] for one in found])
        near = np.mean(abs(ratios - 1) <= 0.25)
        print(
            f"{case}: {np.exp(np.log(ratios).mean()):.2f} times the right number "
            f"({ratios.min():.2f} to {ratios.max():.2f}), within 25 %: {near:.0%}, "
            f"index {np.mean([one['index'] for one in found]):.2f}, "
            f"largest group at most {max(one['largest'] for one in found):.0%}"
        )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="number of groups suggested for unlearned classes")
    parser.add_argument("--benchmark", default="banking77")
    parser.add_argument("--method", default="instant", help="decides what is kept of classes")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--test", action="store_true", help="group test texts")
    parser.add_argument("--data-dir", default=os.environ.get("REPCL_DATA"))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure(
    options: argparse.Namespace, train: list[Example], asked: list[Example], number: int
) -> dict[str, Any]:
    draw = np.random.default_rng(number)
    names = draw.permutation(sorted({one.label for one in train})).tolist()
    learned, others = names[: len(names) // 2], names[len(names) // 2 :]
    start = some_of_each(train, learned, [20] * len(learned), draw)
    classifier = ContinualClassifier(options.method, holdout_per_class=0, memory_per_class=20)
    classifier.fit(start, [one.label for one in start])
    state = classifier.fitted_state()
    vectors, labels = kept(state)
    guide = learned_guide(of_last_layer(state, vectors), labels)
    uneven = np.exp(draw.normal(2.3, 0.9, len(others))).astype(int).clip(min=1).tolist()
    result = {}
    for case, counts in zip(CASES, ([20] * len(others), [5] * len(others), uneven), strict=True):
        strangers = some_of_each(asked, others, counts, draw)
        groups, _ = group_vectors(of_last_layer(state, embed(state, strangers)), guide=guide)
        result[case] = {
            "classes": len(others),
            "texts": len(strangers),
            "suggested": len(np.unique(groups)),
            "index": float(adjusted_rand_score([one.label for one in strangers], groups)),
            "largest": float(np.bincount(groups).max() / len(strangers)),
        }
    return result


def unique(examples: list[Example]) -> list[Example]:
    return list({one.text: one for one in examples}.values())


def some_of_each(
    examples: list[Example], names: list[str], counts: list[int], draw: np.random.Generator
) -> list[Example]:
    chosen = []
    for name, count in zip(names, counts, strict=True):
        own = [one for one in examples if one.label == name]
        chosen += [own[index] for index in draw.permutation(len(own))[:count]]
    return chosen


if __name__ == "__main__":
    main()
