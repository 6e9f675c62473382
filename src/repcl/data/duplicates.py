"""Texts that are nearly the same: they differ in case, accents' codes, spaces or punctuation only."""

import unicodedata
from collections.abc import Iterable
from dataclasses import replace

from repcl.data.examples import Example


def without_duplicates(examples: Iterable[Example]) -> list[Example]:
    """Examples in their order, of nearly equal ones of a class the first; marked spans have to be equal."""
    found: dict[Example, Example] = {}
    for example in examples:
        found.setdefault(replace(example, text=plain_text(example.text)), example)
    return list(found.values())


def plain_text(text: str) -> str:
    """A text's letters and digits in lower case, one space between words; what has none, as it is."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(sign if sign.isalnum() or _is_mark(sign) else " " for sign in folded).split()
    return " ".join(words) or folded.strip()


def _is_mark(sign: str) -> bool:
    """Whether a sign belongs to the letter before it, as vowels do in many scripts."""
    return unicodedata.category(sign).startswith("M")
