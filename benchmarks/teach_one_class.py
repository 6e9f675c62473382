"""How long one more class takes: twenty texts taught to a learner of 150 classes.

    python benchmarks/teach_one_class.py [--data-dir DIR] [--method instant] [--classes 150] [--json]

With a data folder the texts are CLINC150's, else made up. A lesson is `partial_fit` as users call it:
embedding, learning, the guard before and after, calibration. Three lessons of one class each; the middle one
counts. One thread; CPU seconds beside wall time, which also counts other programs. Bare embedding is what the
learner's encoder takes for the texts of a lesson, nothing else.
"""

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch

from repcl import ContinualClassifier
from repcl.benchmarks import load_benchmark
from repcl.data import Example
from repcl.model import Embedder

LESSONS = 3
TOPICS = [
    "parcel",
    "invoice",
    "password",
    "refund",
    "voucher",
    "camera",
    "flight",
    "dinner",
    "garden",
    "salary",
]
WISHES = ["where is", "please cancel", "i lost", "how do i change", "who pays for", "tell me about", "i want"]


class Seconds(NamedTuple):
    """How long something took."""

    processor: float
    clock: float


def main() -> None:
    options = read_options()
    torch.set_num_threads(1)
    classes = clinc(options) if options.data_dir else made_up(options.classes, options.texts)
    first, lessons = classes[:-LESSONS], classes[-LESSONS:]
    classifier = ContinualClassifier(options.method, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the guard says is not the question here
        teach(classifier, [example for own in first for example in own])
        taught = [seconds(lambda own=own: teach(classifier, own)) for own in lessons]
    bare = [seconds(lambda own=own: Embedder(classifier.method_.encoder)(own)) for own in lessons]
    middle, alone = statistics.median(taught), statistics.median(bare)
    result = {
        "method": options.method,
        "classes": len(classifier.classes_),
        "texts_of_a_class": len(lessons[-1]),
        "lesson_processor_seconds": middle.processor,
        "lesson_clock_seconds": middle.clock,
        "bare_embedding_processor_seconds": alone.processor,
        "lesson_against_bare_embedding": middle.processor / alone.processor,
    }
    print(
        json.dumps(result) if options.json else "\n".join(f"{key}: {value}" for key, value in result.items())
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="the cost of one more class")
    parser.add_argument("--data-dir", help="holds clinc150/data_full.json")
    parser.add_argument("--method", default="instant")
    parser.add_argument("--classes", type=int, default=150)
    parser.add_argument("--texts", type=int, default=20, help="of each class")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def clinc(options: argparse.Namespace) -> list[list[Example]]:
    """Training texts of CLINC150, class by class."""
    stream = load_benchmark("clinc150", data_dir=options.data_dir, round=0, max_train_per_class=options.texts)
    by_class: dict[str, list[Example]] = {}
    for example in (example for task in stream.tasks for example in task.train):
        by_class.setdefault(example.label, []).append(example)
    return list(by_class.values())[: options.classes]


def made_up(classes: int, texts: int) -> list[list[Example]]:
    """Short texts that differ, class by class."""
    return [
        [
            Example(
                f"{WISHES[text % len(WISHES)]} the {TOPICS[name % len(TOPICS)]} number {name} of day {text}",
                f"class {name}",
            )
            for text in range(texts)
        ]
        for name in range(classes)
    ]


def teach(classifier: ContinualClassifier, examples: list[Example]) -> None:
    classifier.partial_fit(examples, [example.label for example in examples])


def seconds(work: Callable[[], object]) -> Seconds:
    start = Seconds(time.process_time(), time.perf_counter())
    work()
    return Seconds(time.process_time() - start.processor, time.perf_counter() - start.clock)


if __name__ == "__main__":
    main()
