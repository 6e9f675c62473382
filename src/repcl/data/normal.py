"""When two texts, or two labels, are the same: blanks around them do not count, nor ways to write é."""

from dataclasses import replace
from itertools import pairwise
from typing import Any, Final
from unicodedata import is_normalized, normalize

from repcl.data.examples import SPANS, Example, Span

FORM: Final = "NFC"


def normal_label(label: str) -> str:
    """A label in Unicode's composed form, without blanks around it."""
    return normalize(FORM, label).strip()


def normal_example(example: Example) -> Example:
    """The example with its text in Unicode's composed form and without blanks around it.

    Marked spans move along; what is inside a span is never cut off. The label stays as it is.
    """
    text = example.text
    if is_normalized(FORM, text) and text == text.strip():
        return example
    spans = {name: span for name in SPANS if (span := getattr(example, name)) is not None}
    bounds = {bound for span in spans.values() for bound in (span.start, span.end)}
    start = min([len(text) - len(text.lstrip()), *bounds])
    end = max([len(text.rstrip()), *bounds])
    cuts = sorted({start, end, *bounds})
    # piece by piece, so that every bound keeps its place between the same characters
    pieces = [normalize(FORM, text[one:other]) for one, other in pairwise(cuts)]
    new_index, at = {start: 0}, 0
    for cut, piece in zip(cuts[1:], pieces, strict=True):
        at += len(piece)
        new_index[cut] = at
    moved: dict[str, Any] = {
        name: Span(new_index[span.start], new_index[span.end]) for name, span in spans.items()
    }
    return replace(example, text="".join(pieces), **moved)
