"""How well unknown texts are grouped: half of BANKING77's classes are learned, the others' texts discovered.

    REPCL_DATA=/path/to/data python benchmarks/discover.py [--method instant] [--classes 38] [--json]

How unknown texts are grouped was chosen on training texts of four benchmarks (benchmarks/group_number.py).
Test texts of all classes are shown to `discover`, as a user would: it has to find those it does not know, and
group them. The adjusted Rand index (1: the true groups, 0: chance) is taken over the unknown texts that it
found, with known classes that slipped in counted as the classes they are; also when all texts of unlearned
classes, and only those, are grouped.
"""

import argparse
import json
import os
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from repcl import ContinualClassifier
from repcl.benchmarks import load_benchmark
from repcl.classifier.discovery import discover
from repcl.classifier.grouping import group_vectors, learned_guide
from repcl.classifier.vectors import embed, kept, of_last_layer
from repcl.data import Example


def main() -> None:
    options = read_options()
    stream = load_benchmark("banking77", data_dir=options.data_dir, round=0)
    names = [name for task in stream.tasks for name in task.classes]
    learned = set(names[: options.classes])
    train = [one for task in stream.tasks for one in task.train if one.label in learned]
    tests = [one for task in stream.tasks for one in task.test]
    classifier = ContinualClassifier(options.method)
    classifier.fit(
        few_of_each(train, options.texts), [one.label for one in few_of_each(train, options.texts)]
    )
    result = {
        "method": options.method,
        "learned_classes": len(learned),
        "unlearned_classes": len(names) - len(learned),
        **found_among_all(classifier, tests, learned),
        **grouped_alone(classifier, [one for one in tests if one.label not in learned]),
    }
    print(
        json.dumps(result)
        if options.json
        else "\n".join(f"{key}: {show(one)}" for key, one in result.items())
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="grouping of unknown texts on BANKING77")
    parser.add_argument("--method", default="instant")
    parser.add_argument("--classes", type=int, default=38, help="to learn; the others are to be found")
    parser.add_argument("--texts", type=int, default=40, help="learned of each class")
    parser.add_argument("--data-dir", default=os.environ.get("REPCL_DATA"))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def few_of_each(examples: list[Example], count: int) -> list[Example]:
    by_class: dict[str, list[Example]] = {}
    for example in examples:
        by_class.setdefault(example.label, []).append(example)
    return [example for own in by_class.values() for example in own[:count]]


def found_among_all(
    classifier: ContinualClassifier, tests: list[Example], learned: set[str]
) -> dict[str, Any]:
    """What `repcl discover` makes of texts of learned and unlearned classes."""
    label_of = {example.text: example.label for example in tests}
    found = discover(classifier, tests)
    groups = [number for number, group in enumerate(found.groups) for _ in group.texts]
    labels = [label_of[text] for group in found.groups for text in group.texts]
    strangers = sum(example.label not in learned for example in tests)
    caught = sum(label not in learned for label in labels)
    return {
        "texts_shown": len(tests),
        "unknown_found": len(labels),
        "share_of_unlearned_found": caught / strangers,
        "share_of_found_that_is_unlearned": caught / max(len(labels), 1),
        "classes_among_found": len(set(labels)),
        "groups_suggested": len(found.groups),
        "adjusted_rand_index": float(adjusted_rand_score(labels, groups)),
    }


def grouped_alone(classifier: ContinualClassifier, strangers: list[Example]) -> dict[str, Any]:
    """The grouping by itself: every text of an unlearned class, and no other."""
    state = classifier.fitted_state()
    vectors, labels = of_last_layer(state, embed(state, strangers)), [example.label for example in strangers]
    learned, classes = kept(state)
    guide = learned_guide(of_last_layer(state, learned), classes)
    suggested, separation = group_vectors(vectors, guide=guide)
    told, _ = group_vectors(vectors, len(set(labels)))
    return {
        "alone_groups_suggested": len(np.unique(suggested)),
        "alone_adjusted_rand_index": float(adjusted_rand_score(labels, suggested)),
        "alone_adjusted_rand_index_with_the_true_number": float(adjusted_rand_score(labels, told)),
        "alone_separation": separation,
    }


def show(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
