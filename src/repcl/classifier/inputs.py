"""What users hand in: texts and labels of any sequence type, checked and turned into examples."""

import json
import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repcl.classifier.store.records import LabelType
from repcl.data import Example, InputKind, Span
from repcl.data.examples import SPANS, check_spans
from repcl.data.files import input_kind
from repcl.data.normal import normal_example
from repcl.errors import InvalidData, listed, shortened

Label = str | int


class InvalidInput(InvalidData, ValueError):
    """Texts or labels are not what a classifier takes; also a ValueError, as scikit-learn expects."""


def as_examples(texts: Any) -> list[Example]:
    """Examples from a sequence of str or of `Example`, or from a table; labels of plain texts are empty.

    A table is what has named columns, as a pandas DataFrame has: `text`, and for relations `head` and `tail`,
    for events `trigger`, each a pair [start, end] of characters.
    """
    if isinstance(texts, str | bytes | Example):
        raise InvalidInput(
            f"Expected a sequence of texts, found the single text {shortened(texts)}: put it in a list."
        )
    if hasattr(texts, "columns"):
        return _from_table(texts)
    if getattr(texts, "ndim", 1) != 1:
        raise InvalidInput(
            f"Expected one text per row, found an array of shape {tuple(texts.shape)}: give one column."
        )
    return [_as_example(value, index) for index, value in enumerate(_items(texts, "texts"))]


def are_empty(examples: Sequence[Example]) -> NDArray[np.bool_]:
    """Which texts hold nothing but spaces."""
    return np.array([not example.text.strip() for example in examples], dtype=np.bool_)


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


def as_label(name: str, kind: LabelType) -> Label:
    """A label in the type that labels were given in, from its class's name."""
    return int(name) if kind == "number" else name


def as_classes(names: Iterable[str], kind: LabelType) -> Any:
    """Sorted labels as an array of the type they were given in."""
    if kind == "text":
        return np.array(sorted(names), dtype=np.str_)
    return np.array(sorted(int(name) for name in names), dtype=np.int64)


def check_texts(examples: Sequence[Example]) -> None:
    """Refuse empty texts, from which nothing can be learned."""
    for index, example in enumerate(examples):
        if not example.text.strip():
            raise InvalidInput(
                f"Expected texts, found an empty one ({example.text!r}) at position {index}: leave it out."
            )


def labeled(examples: Sequence[Example], labels: Sequence[Label]) -> list[Example]:
    """The examples with these labels, in an order that does not depend on the order given.

    Texts come without blanks around them and in one form of Unicode, so that a text is known when it comes
    again.
    """
    check_texts(examples)
    found = [
        replace(normal_example(example), label=str(label))
        for example, label in zip(examples, labels, strict=True)
    ]
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


def _from_table(table: Any) -> list[Example]:
    names = [str(name) for name in table.columns]
    if "text" not in names:
        raise InvalidInput(
            f"Expected a column 'text', found {listed(map(shortened, names), 20) or 'no column'}: rename the "
            "column of the texts, or give that column alone."
        )
    if ("head" in names) != ("tail" in names):
        raise InvalidInput("Expected both columns 'head' and 'tail', found one: add the other, or remove it.")
    examples = [_as_example(text, index) for index, text in enumerate(table["text"])]
    for mark in (name for name in SPANS if name in names):
        pairs = list(zip(table[mark], examples, strict=True))
        examples = [
            _marked(example, mark, cell, index) if example.text.strip() else example
            for index, (cell, example) in enumerate(pairs)
        ]
    return examples


def _marked(example: Example, mark: str, cell: Any, index: int) -> Example:
    spans: dict[str, Any] = {mark: _as_span(cell, mark, index, example.text)}
    return replace(example, **spans)


def _as_span(value: Any, mark: str, index: int, text: str) -> Span:
    """A span from a table's cell: a pair in any sequence, also as JSON text, or a `Span`."""
    pair = (value.start, value.end) if isinstance(value, Span) else value
    try:
        start, end = map(operator.index, json.loads(pair) if isinstance(pair, str) else pair)
    except (TypeError, ValueError, RecursionError):
        start = end = -1
    if not 0 <= start < end <= len(text):
        raise InvalidInput(
            f"Expected a pair [start, end] of characters within the text at position {index} of column "
            f"{mark!r}, found {shortened(value)}: count from 0, the end not included."
        )
    return Span(start, end)


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
    if example is not None:
        _check_marks(example, index)
    return example or Example(str(text), "")


def _check_marks(example: Example, index: int) -> None:
    """Refuse marks that no method can learn, before anything is changed."""
    marks = {name: getattr(example, name) for name in SPANS}
    for name, mark in marks.items():
        is_span = isinstance(mark, Span) and isinstance(mark.start, int) and isinstance(mark.end, int)
        if mark is not None and not is_span:
            raise InvalidInput(
                f"Expected a Span of two whole numbers as {name} at position {index}, "
                f"found {shortened(mark)}: write Span(start, end)."
            )
    try:
        check_spans(example.text, {name: mark and (mark.start, mark.end) for name, mark in marks.items()})
    except ValueError as error:
        raise InvalidInput(
            f"Expected marks within the text at position {index}, found that {error}: correct the Example."
        ) from error


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
