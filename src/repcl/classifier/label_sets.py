"""Several labels per text: what users hand in for them, and what they get back."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from repcl.classifier.inputs import InvalidInput, Label, as_labels, check_texts
from repcl.data import Example
from repcl.data.label_cells import SEPARATOR, labels_of_cell
from repcl.errors import shortened


def each_label(examples: Sequence[Example], y: Any) -> tuple[list[Example], list[Label]]:
    """Texts and labels, a text as often as it has labels, each once.

    Args:
        examples: the texts.
        y: for each a collection of labels, or a text such as `a|b`, or a single number.
    """
    sets = as_label_sets(y, len(examples))
    check_texts(examples)
    pairs = dict.fromkeys(
        (example, label) for example, labels in zip(examples, sets, strict=True) for label in labels
    )
    return [example for example, _ in pairs], [label for _, label in pairs]


def as_label_sets(y: Any, count: int) -> list[list[Label]]:
    """The labels of each text, checked."""
    if y is None or isinstance(y, str | bytes):
        raise InvalidInput(f"Expected the labels of each text, found {shortened(y)}: give a list of lists.")
    if getattr(y, "ndim", 1) > 1:
        raise InvalidInput(
            f"Expected the labels of each text, found a table of shape {tuple(y.shape)}: give "
            "lists of labels (MultiLabelBinarizer.inverse_transform turns columns of 0 and 1 into them)."
        )
    given = list(y)
    if len(given) != count:
        raise InvalidInput(
            f"Expected as many lists of labels as texts, found {len(given)} for {count} texts: pair them up."
        )
    return [_labels(value, index) for index, value in enumerate(given)]


def as_answers(classes: Any, has_label: Any) -> Any:
    """For each text the tuple of its labels, in the order of the classes, as an array."""
    answers = np.empty(len(has_label), dtype=object)
    for index, row in enumerate(has_label):
        answers[index] = tuple(label.item() for label in classes[row])
    return answers


def refuse_separator(labels: Iterable[Label]) -> None:
    """Refuse labels that would be two in a cell of a file."""
    for label in labels:
        if isinstance(label, str) and SEPARATOR in label:
            raise InvalidInput(
                f"Expected labels without {SEPARATOR!r}, which stands between several labels of a text, "
                f"found {shortened(label)}: give it another name."
            )


def _labels(value: Any, index: int) -> list[Label]:
    if isinstance(value, str):
        found: Collection[Any] = labels_of_cell(value)
    elif isinstance(value, Collection) or getattr(value, "ndim", 0) == 1:
        found = sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)
    else:
        found = [value]
    if not len(found):
        raise InvalidInput(
            f"Expected at least one label at position {index}, found none: leave the text out, or give "
            "such texts a label of their own."
        )
    labels = as_labels(list(found), len(found))
    refuse_separator(labels)
    return list(dict.fromkeys(labels))
