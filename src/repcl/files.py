"""Files that are there whole or not at all, whenever the process stops."""

import json
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

PART = ".part-"
"""How the names of files begin that are still being written."""


def write_whole(path: Path, data: bytes | str, *, durable: bool = False) -> None:
    """Write a file under another name, then rename it: no process ever sees half of it.

    Args:
        path: of the file; its folder exists.
        data: text is written as UTF-8.
        durable: bring the bytes to the disk before the name, so that not even a power cut leaves half a file.
    """
    part = part_of(path)
    try:
        part.write_bytes(data.encode() if isinstance(data, str) else data)
        if durable:
            settle(part)
        os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def part_of(path: Path) -> Path:
    """A name beside a file that nobody else uses, for what is to become the file."""
    return path.with_name(f"{PART}{uuid.uuid4().hex[:12]}-{path.name}")


def parse_json(data: bytes | str) -> Any:
    """The value of a JSON text; whatever is wrong with it is a `ValueError`, too many brackets as well."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None


def settle(path: Path) -> None:
    """Bring a file's bytes, or a folder's list of names, to the disk; Windows needs no such call."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
