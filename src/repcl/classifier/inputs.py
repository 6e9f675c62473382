"""What users hand in: texts and labels of any sequence type, checked and turned into examples."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from repcl.classifier.store.records import LabelType
from repcl.data import Example, InputKind
from repcl.data.files import input_kind
from repcl.errors import InvalidData, shortened

Label = str | int


class InvalidInput(InvalidData, ValueError):
    """Texts or labels are not what a classifier takes; also a ValueError, as scikit-learn expects."""


def as_examples(texts: Any) -> list[Example]:
    """Examples from a sequence of str or of `Example`; labels of plain texts are empty."""
    if isinstance(texts, str | bytes | Example):
        raise InvalidInput(
            f"Expected a sequence of texts, found the single text {shortened(texts)}: put it in a list."
        )
    if getattr(texts, "ndim", 1) != 1:
        raise InvalidInput(
            f"Expected one text per row, found an array of shape {tuple(texts.shape)}: give one column."
        )
    return [_as_example(value, index) for index, value in enumerate(_items(texts, "texts"))]


def as_labels(labels: Any, count: int) -> list[Label]:
    """Labels as plain str or int, one per text."""
    if labels is None:
        raise InvalidInput(
            "Expected labels, found None: learning requires y to be passed, but the target y is None."
        )
    if getattr(labels, "ndim", 1) == 2 and labels.shape[1] == 1:
        labels = np.ravel(labels)
    if isinstance(labels, str | bytes) or getattr(labels, "ndim", 1) != 1:
        raise InvalidInput(f"Expected one label per text, found {shortened(labels)}: give a flat list.")
    found = [_as_label(value, index) for index, value in enumerate(_items(labels, "labels"))]
    if len(found) != count:
        raise InvalidInput(
            f"Expected as many labels as texts, found {len(found)} labels for {count} texts: pair them up."
        )
    return found


def label_type(labels: Iterable[Label], known: LabelType | None = None) -> LabelType:
    """Whether labels are text or numbers; a mixture is refused, for 1 and '1' would become one class."""
    wanted = known
    for label in labels:
        found: LabelType = "text" if isinstance(label, str) else "number"
        if wanted is not None and found != wanted:
            raise InvalidInput(
                f"Expected every label to be {_TYPE_NAMES[wanted]}, found {_shown(label)}: "
                "convert the labels."
            )
        wanted = found
    return wanted or "text"


def as_classes(names: Iterable[str], kind: LabelType) -> Any:
    """Sorted labels as an array of the type they were given in."""
    if kind == "text":
        return np.array(sorted(names), dtype=np.str_)
    return np.array(sorted(int(name) for name in names), dtype=np.int64)


def labeled(examples: Sequence[Example], labels: Sequence[Label]) -> list[Example]:
    """The examples with these labels, in an order that does not depend on the order given."""
    found = [replace(example, label=str(label)) for example, label in zip(examples, labels, strict=True)]
    for index, example in enumerate(found):
        if not example.text.strip():
            raise InvalidInput(
                f"Expected texts, found an empty one ({example.text!r}) at position {index}: leave it out."
            )
    return sorted(found, key=lambda example: (example.label, example.text, repr(example)))


def common_kind(examples: Sequence[Example], known: InputKind | None = None) -> InputKind:
    """The input kind of all examples; sentences, relations and events cannot be mixed."""
    wanted = known
    for example in examples:
        found = input_kind(example)
        if wanted is not None and found != wanted:
            raise InvalidInput(
                f"Expected {wanted} input, found {found} input in {shortened(example.text)}: a classifier "
                "takes one kind; mark head and tail for relations, the trigger for events."
            )
        wanted = found
    return wanted or "sentence"


_TYPE_NAMES = {"text": "text (str)", "number": "a whole number (int)"}


def _shown(value: Any) -> str:
    """A label in a sentence; Python refuses to write numbers of thousands of digits."""
    try:
        return shortened(value)
    except ValueError:
        return "a number of thousands of digits"


def _items(values: Any, what: str) -> list[Any]:
    try:
        return list(values)
    except TypeError as error:
        raise InvalidInput(f"Expected a sequence of {what}, found {shortened(values)}.") from error


def _as_example(value: Any, index: int) -> Example:
    example = value if isinstance(value, Example) else None
    text = value.text if example else value
    if not isinstance(text, str):
        raise InvalidInput(
            f"Expected a text (str) or an Example at position {index}, found {shortened(value)} "
            f"({type(value).__name__}): convert it, or leave it out."
        )
    if not text.isascii():
        _check_unicode(text, index)
    return example or Example(str(text), "")


def _check_unicode(text: str, index: int) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"Expected valid Unicode at position {index}, found {shortened(text)}: "
            "remove the half of a surrogate pair."
        ) from error


def _as_label(value: Any, index: int) -> Label:
    if isinstance(value, str) and value.strip() and "\0" not in value:
        _check_unicode(value, index)
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool | np.bool_) and abs(int(value)) < 2**63:
        return int(value)
    what = "a continuous value" if isinstance(value, float) else type(value).__name__
    raise InvalidInput(
        f"Expected a label (str that is not empty, or int of 64 bits) at position {index}, "
        f"found {_shown(value)} ({what}): give every text a label."
    )
