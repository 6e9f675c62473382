"""`repcl evaluate` for models that give a text several labels: how many are found, missed and added."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from repcl.cli.label_cells import labels_in
from repcl.data.label_cells import cell_of_labels

if TYPE_CHECKING:
    from repcl.classifier import ContinualClassifier
    from repcl.data.files import Read

NONE = "–"
"""Stands in a confusion where a label was missed and none added, or the other way round."""


class Sets(NamedTuple):
    """A row with the labels that it has and those that it gets."""

    row: "Read"
    wanted: frozenset[str]
    found: frozenset[str]
    confidence: float

    @property
    def is_right(self) -> bool:
        """Whether it gets exactly its labels."""
        return self.wanted == self.found


def label_sets(classifier: "ContinualClassifier", rows: "Sequence[Read]", threshold: str) -> list[Sets]:
    """Ask a model about rows whose cells hold several labels; labels that it does not know do not count."""
    known = {str(label) for label in classifier.classes_}
    probabilities = classifier.predict_proba([row.example for row in rows])
    names = [str(label) for label in classifier.classes_]
    has_label = classifier.fitted_state().has_labels(probabilities, threshold, names)
    sets = []
    for row, has, found in zip(rows, has_label, probabilities, strict=True):
        wanted = frozenset(wanted_labels(classifier, row, has_several=True)) & known
        answer = frozenset(name for name, is_one in zip(names, has, strict=True) if is_one)
        sets.append(Sets(row, wanted, answer, float(found.max())))
    return sets


def wanted_labels(classifier: "ContinualClassifier", row: "Read", *, has_several: bool) -> list[str]:
    """The label in a row's cell, or all of them, under the names that the model knows them by."""
    cell = row.example.label
    return [str(classifier.label_of(label)) for label in (labels_in(cell) if has_several else [cell])]


def scores_of_labels(sets: Sequence[Sets]) -> dict[str, Any]:
    """Recall and precision of each label, F1 over all, and the share of texts that get exactly theirs."""
    classes = [_class_scores(name, sets) for name in sorted({name for one in sets for name in one.wanted})]
    right = sum(len(one.wanted & one.found) for one in sets)
    either = sum(len(one.wanted) + len(one.found) for one in sets)
    return {
        "accuracy": sum(one.is_right for one in sets) / len(sets),
        "f1": 2 * right / either,
        "macro_f1": sum(one["f1"] for one in classes) / len(classes),
        "macro_recall": sum(one["recall"] for one in classes) / len(classes),
        "texts": len(sets),
        "classes": classes,
    }


def confused_pairs(sets: Sequence[Sets]) -> "list[tuple[Read, str, float]]":
    """For each wrong row what was missed, with what was added in its place."""
    return [
        (one.row._replace(example=replace(one.row.example, label=missed)), added, one.confidence)
        for one in sets
        for missed, added in product(
            sorted(one.wanted - one.found) or [NONE], sorted(one.found - one.wanted) or [NONE]
        )
        if not one.is_right
    ]


def found_cell(one: Sets) -> str:
    """The labels that a row gets, as a cell."""
    return cell_of_labels(sorted(one.found))


def _class_scores(name: str, sets: Sequence[Sets]) -> dict[str, Any]:
    wanted, found = sum(name in one.wanted for one in sets), sum(name in one.found for one in sets)
    right = sum(name in one.wanted and name in one.found for one in sets)
    return {
        "class": name,
        "texts": wanted,
        "recall": right / wanted,
        "precision": right / found if found else None,
        "f1": 2 * right / (wanted + found),
    }
