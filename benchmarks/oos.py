"""How well a classifier knows that it does not know: CLINC150's out-of-scope texts against its 150 classes.

    REPCL_DATA=/path/to/data python benchmarks/oos.py [--method instant] [--classes 150] [--rounds 3] [--json]

Classes arrive in tasks of fifteen. Rounds differ in the order of classes and in which texts are held out.
Reported, as mean and standard deviation over rounds: the area under the ROC curve of the confidence, the
share of out-of-scope texts caught when 95 % of in-scope test texts are accepted, and what the automatic
threshold, chosen by held-out training texts, does on both. REPCL_EMBEDDINGS names a folder for embeddings.
"""

import argparse
import json
import os
import statistics
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from repcl import ContinualClassifier
from repcl.benchmarks import load_benchmark


def main() -> None:
    options = read_options()
    rounds = [measure(options, number) for number in range(options.rounds)]
    names = list(rounds[0])
    result = {name: statistics.mean(one[name] for one in rounds) for name in names}
    spread = {
        name: statistics.stdev(one[name] for one in rounds) if len(rounds) > 1 else 0.0 for name in names
    }
    if options.json:
        print(json.dumps({"method": options.method, "rounds": rounds, "mean": result, "deviation": spread}))
        return
    print(f"method: {options.method}, rounds: {len(rounds)}")
    for name in names:
        print(f"{name}: {result[name]:.4g} ± {spread[name]:.2g}")


def measure(options: argparse.Namespace, number: int) -> dict[str, float]:
    """One round."""
    classifier, tests = teach(options, number)
    strangers = out_of_scope(options.data_dir)
    known_confidence = classifier.predict_proba(tests).max(axis=1)
    strange_confidence = classifier.predict_proba(strangers).max(axis=1)
    accuracy = float(np.mean(classifier.predict(tests) == np.array([one.label for one in tests])))
    automatic = classifier.fitted_state().unknown_rule().least
    return {
        "classes": len(classifier.classes_),
        "in_scope": len(tests),
        "out_of_scope": len(strangers),
        "accuracy": accuracy,
        **rates(known_confidence, strange_confidence, automatic),
    }


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CLINC150 out-of-scope detection")
    parser.add_argument("--method", default="instant")
    parser.add_argument("--classes", type=int, default=150)
    parser.add_argument("--train-per-class", type=int, default=100)
    parser.add_argument("--holdout-per-class", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--data-dir", default=os.environ.get("REPCL_DATA"))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def teach(options: argparse.Namespace, number: int) -> tuple[ContinualClassifier, list[Any]]:
    """A classifier that learned the classes task by task, and the test texts of all of them."""
    stream = load_benchmark(
        "clinc150", data_dir=options.data_dir, round=number, max_train_per_class=options.train_per_class
    )
    classifier = ContinualClassifier(options.method, holdout_per_class=options.holdout_per_class, seed=number)
    tests: list[Any] = []
    for task in stream.tasks[: options.classes // 15]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier.partial_fit(task.train, [example.label for example in task.train])
        tests += task.test
    return classifier, tests


def out_of_scope(data_dir: str) -> list[str]:
    path = Path(data_dir) / "clinc150" / "data_full.json"
    return [text for text, _ in json.loads(path.read_text(encoding="utf-8"))["oos_test"]]


def rates(known: np.ndarray, strange: np.ndarray, automatic: float) -> dict[str, float]:
    """Detection by confidence: threshold-free, at 95 % acceptance, and with the automatic threshold."""
    labels = np.r_[np.ones(len(known)), np.zeros(len(strange))]
    at_95 = np.quantile(known, 0.05, method="lower")
    return {
        "auroc": float(roc_auc_score(labels, np.r_[known, strange])),
        "caught_at_95_percent_acceptance": float((strange < at_95).mean()),
        "automatic_threshold": automatic,
        "accepted_by_automatic_threshold": float((known >= automatic).mean()),
        "caught_by_automatic_threshold": float((strange < automatic).mean()),
    }


if __name__ == "__main__":
    main()
