"""Reads a user's class order: one name per line, or a JSON list of tasks, each a list of names."""

from pathlib import Path
from typing import Any

from repcl.data.rows import require_file
from repcl.errors import InvalidData
from repcl.files import parse_json

LARGEST_FILE = 64 << 20


def read_class_order(path: Path, known: list[str]) -> tuple[list[str], list[list[str]] | None]:
    """The order of all known classes, and the tasks themselves where the file lists them."""
    order, tasks = _parsed(path)
    listed = set(order)
    _refuse(path, "names classes that the data do not have", sorted(listed.difference(known)))
    _refuse(path, "does not name", [name for name in known if name not in listed])
    if len(listed) < len(order):
        _refuse(path, "names more than once", [name for name in known if order.count(name) > 1])
    return order, tasks


def _parsed(path: Path) -> tuple[list[str], list[list[str]] | None]:
    size = require_file(path)
    if size > LARGEST_FILE:
        raise InvalidData(
            f"{path} has {size:,} bytes where at most {LARGEST_FILE:,} are read: give a file with one class "
            "name per line."
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidData(f"{path} is not UTF-8 ({error.reason}): save the file as UTF-8.") from error
    value = _json_list(path, text)
    if value is None:
        return [line.strip() for line in text.splitlines() if line.strip()], None
    if all(isinstance(name, str) for name in value):
        return value, None
    if all(isinstance(task, list) and task and all(isinstance(name, str) for name in task) for task in value):
        return [name for task in value for name in task], value
    raise InvalidData(f"{path} holds something else than class names: write a JSON list of lists of names.")


def _json_list(path: Path, text: str) -> list[Any] | None:
    """The list that a text is in JSON, or None for a text that is plain lines."""
    try:
        value = parse_json(text)
    except ValueError as error:
        if path.suffix.lower() != ".json":
            return None
        raise InvalidData(
            f"{path} is not valid JSON ({error}): write a list of lists of class names."
        ) from error
    return value if isinstance(value, list) else None


def _refuse(path: Path, what: str, names: list[str]) -> None:
    if names:
        shown = ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")
        raise InvalidData(f"{path} {what}: {shown}. Name every class of the data exactly once.")
