"""CSV files to be labeled by hand and learned: texts, a column for labels, and marked spans."""

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from repcl.data import Example, Span


def label_table(examples: "Sequence[Example]", labels: Sequence[str]) -> str:
    """Texts, what the label column says of each, and marked spans."""
    from repcl.data.examples import SPANS

    spans = [name for name in SPANS if any(getattr(example, name) for example in examples)]
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(["text", "label", *spans])
    for example, label in zip(examples, labels, strict=True):
        rows.writerow([example.text, label, *(_cell(getattr(example, name)) for name in spans)])
    return text.getvalue()


def _cell(span: "Span | None") -> str:
    return "" if span is None else f"[{span.start}, {span.end}]"
