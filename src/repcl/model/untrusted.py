"""JSON that anyone may have written: read up to a size, refused in a few words."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SHOWN = 80


class Unusable(ValueError):
    """What was found in a file cannot be used; the text is a part of a sentence, without a full stop."""


def shown(value: Any) -> str:
    """A value as it stands in an error: short, in one line."""
    text = " ".join((value if isinstance(value, str) else repr(value)[: 4 * SHOWN]).split())
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def read_bytes(path: Path, limit: int) -> bytes:
    """The bytes of a plain file that is no larger than the limit."""
    if not path.is_file():  # not a folder, and not a pipe, which would wait for ever
        raise Unusable(f"expected a file {path.name}, found none")
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Unusable(f"expected at most {limit >> 20} MB in {path.name}, found more")
    return data


def parse_object(data: bytes, where: str) -> dict[str, Any]:
    """A JSON object from bytes that may be anything."""
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Unusable(f"expected JSON in {where}, found something else") from error
    if not isinstance(found, dict):
        raise Unusable(f"expected a JSON object in {where}, found {shown(type(found).__name__)}")
    return found


def read_object(path: Path, limit: int) -> dict[str, Any]:
    """A JSON object from a file; nothing in it when there is no such file."""
    return parse_object(read_bytes(path, limit), path.name) if path.exists() else {}


def is_number(value: Any, low: int, high: int) -> bool:
    """Whether a value is a whole number in a range, its ends included."""
    return type(value) is int and low <= value <= high


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a value is a number of ordinary size, a short name, or a small list or table of them."""
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        return abs(value) <= LARGEST_NUMBER  # also false for what is no number
    if isinstance(value, str):
        return len(value) <= 60 and all(letter.isalnum() or letter in "_.+-|" for letter in value)
    if depth == 3:
        return False
    if isinstance(value, list | tuple):
        return len(value) < 10_000 and all(is_plain(item, depth + 1) for item in value)
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and is_plain(item, depth + 1) for key, item in value.items()
    )


LARGEST_NUMBER = 10**8
