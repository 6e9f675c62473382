"""What `suggest` is worth: accuracy after labeling 20, 40 and 60 suggested texts, against as many at random.

    REPCL_DATA=/path/to/data python benchmarks/suggest.py [--benchmark hwu64] [--draws 5] [--json]

Training texts only. A draw learns a few texts of half of the classes, holds 1,000 training texts of all
classes for measuring, and takes texts to label from a pool of further training texts of all classes, 20 at a
time; after each 20 the classifier learns them. REPCL_EMBEDDINGS names a folder for embeddings.
"""

import argparse
import json
import os
import statistics
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from repcl import ContinualClassifier
from repcl.benchmarks import load_benchmark
from repcl.data import Example

Choice = Callable[[ContinualClassifier, list[Example], np.random.Generator], list[int]]
STEPS, AT_A_TIME = 3, 20


def main() -> None:
    options = read_options()
    stream = load_benchmark(options.benchmark, data_dir=options.data_dir, round=0)
    texts = list({one.text: one for task in stream.tasks for one in task.train}.values())
    draws = [measure(options, texts, number) for number in range(options.draws)]
    if options.json:
        print(json.dumps({"options": vars(options), "draws": draws}))
        return
    print(
        f"{options.benchmark}, {options.method}, {options.draws} draws; accuracy in percent, mean ± deviation"
    )
    print("labeled: " + " ".join(f"{AT_A_TIME * step:>12}" for step in range(STEPS + 1)))
    for name in draws[0]:
        print(
            f"{name:8} " + " ".join(shown([draw[name][step] for draw in draws]) for step in range(STEPS + 1))
        )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="texts to label next, against a random choice")
    parser.add_argument("--benchmark", default="hwu64")
    parser.add_argument("--method", default="instant")
    parser.add_argument("--texts", type=int, default=5, help="learned of each class at the start")
    parser.add_argument(
        "--share", type=float, default=0.5, help="of the classes that are learned at the start"
    )
    parser.add_argument("--pool", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--data-dir", default=os.environ.get("REPCL_DATA"))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure(options: argparse.Namespace, texts: list[Example], number: int) -> dict[str, list[float]]:
    """Accuracies at the start and after each step, by way of choosing."""
    draw = np.random.default_rng(number)
    names = sorted({one.label for one in texts})
    learned = set(draw.permutation(names)[: round(options.share * len(names))].tolist())
    shuffled = [texts[index] for index in draw.permutation(len(texts))]
    tests, rest = shuffled[:1000], shuffled[1000:]
    start = [one for name in sorted(learned) for one in [e for e in rest if e.label == name][: options.texts]]
    known = set(start)
    pool = [one for one in rest if one not in known][: options.pool]
    return {
        "random": run(options, start, pool, tests, at_random, number),
        "suggest": run(options, start, pool, tests, suggested, number),
    }


def run(
    options: argparse.Namespace,
    start: list[Example],
    pool: list[Example],
    tests: list[Example],
    choose: Choice,
    number: int,
) -> list[float]:
    draw, left = np.random.default_rng([number, 1]), list(pool)
    classifier = ContinualClassifier(options.method, seed=number)
    learn(classifier, start)
    accuracies = [accuracy(classifier, tests)]
    for _ in range(STEPS):
        chosen = set(choose(classifier, left, draw))
        learn(classifier, [left[index] for index in sorted(chosen)])
        left = [one for index, one in enumerate(left) if index not in chosen]
        accuracies.append(accuracy(classifier, tests))
    return accuracies


def at_random(_: ContinualClassifier, pool: list[Example], draw: np.random.Generator) -> list[int]:
    return [int(index) for index in draw.permutation(len(pool))[:AT_A_TIME]]


def suggested(classifier: ContinualClassifier, pool: list[Example], _: np.random.Generator) -> list[int]:
    return [one.index for one in classifier.suggest([example.text for example in pool], AT_A_TIME)]


def learn(classifier: ContinualClassifier, examples: list[Example]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.partial_fit(examples, [one.label for one in examples])


def accuracy(classifier: ContinualClassifier, tests: list[Example]) -> float:
    return float(np.mean(classifier.predict(tests) == np.array([one.label for one in tests])))


def shown(values: list[Any]) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{100 * statistics.mean(values):6.1f} ± {100 * deviation:3.1f}"


if __name__ == "__main__":
    main()
