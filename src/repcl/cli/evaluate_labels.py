"""`repcl evaluate` for models that give a text several labels: how many are found, missed and added."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from repcl.cli.label_cells import labels_in
from repcl.data.label_cells import cell_of_labels

if TYPE_CHECKING:
    from repcl.classifier import ContinualClassifier
    from repcl.classifier.judging import JudgedText
    from repcl.data.files import Read


def label_sets(
    classifier: "ContinualClassifier", rows: "Sequence[Read]", threshold: str
) -> "list[JudgedText[Read]]":
    """Ask a model about rows whose cells hold several labels; labels that it does not know do not count."""
    from repcl.classifier.judging import JudgedText

    known = {str(label) for label in classifier.classes_}
    probabilities = classifier.predict_proba([row.example for row in rows])
    names = [str(label) for label in classifier.classes_]
    has_label = classifier.fitted_state().has_labels(probabilities, threshold, names)
    judged = []
    for row, has, found in zip(rows, has_label, probabilities, strict=True):
        wanted = frozenset(wanted_labels(classifier, row, has_several=True)) & known
        answer = frozenset(name for name, is_one in zip(names, has, strict=True) if is_one)
        judged.append(JudgedText(row, wanted, answer, float(found.max())))
    return judged


def wanted_labels(classifier: "ContinualClassifier", row: "Read", *, has_several: bool) -> list[str]:
    """The label in a row's cell, or all of them, under the names that the model knows them by."""
    cell = row.example.label
    return [str(classifier.label_of(label)) for label in (labels_in(cell) if has_several else [cell])]


def scores_of_labels(judged: "Sequence[JudgedText[Read]]") -> dict[str, Any]:
    """Recall and precision of each label, F1 over all, and the share of texts that get exactly theirs."""
    from repcl.classifier.judging import scores_by_label

    scores = scores_by_label(judged)
    right = sum(len(one.wanted & one.found) for one in judged)
    either = sum(len(one.wanted) + len(one.found) for one in judged)
    return {
        "accuracy": sum(one.is_right for one in judged) / len(judged),
        "f1": 2 * right / either,
        "macro_f1": sum(one.f1 for one in scores) / len(scores),
        "macro_recall": sum(one.recall for one in scores) / len(scores),
        "texts": len(judged),
        "classes": [
            {
                "class": one.label,
                "texts": one.texts,
                "recall": one.recall,
                "precision": one.precision,
                "f1": one.f1,
            }
            for one in scores
        ],
    }


def confused_pairs(judged: "Sequence[JudgedText[Read]]") -> "list[tuple[Read, str, float]]":
    """For each wrong row what was missed, with what was added in its place."""
    return [
        (one.asked._replace(example=replace(one.asked.example, label=missed)), added, one.confidence)
        for one in judged
        for missed, added in one.confusions()
    ]


def found_cell(one: "JudgedText[Read]") -> str:
    """The labels that a row gets, as a cell."""
    return cell_of_labels(sorted(one.found))
