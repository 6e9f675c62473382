"""TOML files of a user: read up to a size, and whatever is wrong with one is a sentence."""

import sys
from pathlib import Path
from typing import Any

from repcl.data.rows import require_file
from repcl.errors import InvalidSetting

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Shipped presets have less than ten thousand bytes.
LARGEST_FILE = 100_000
# Python's TOML reader takes quadratic time for a key of many parts.
MOST_DOTS_IN_A_LINE = 200


def read_text(path: Path, what: str) -> str:
    """The text of a small file.

    Args:
        path: of the file.
        what: the file is, at the beginning of a sentence.
    """
    size = require_file(path)
    if size > LARGEST_FILE:
        raise InvalidSetting(
            f"{what} has {size:,} bytes where at most {LARGEST_FILE:,} are read: "
            "give a TOML file with settings."
        )
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSetting(
            f"{what} is not UTF-8 (byte 0x{error.object[error.start]:02x} at {error.start}): "
            "save the file as UTF-8."
        ) from error


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """The tables of a TOML text; `what` it is begins the sentence about what is wrong."""
    if any(line.count(".") > MOST_DOTS_IN_A_LINE for line in text.splitlines()):
        raise InvalidSetting(f"{what} has a line with over {MOST_DOTS_IN_A_LINE} dots: shorten it.")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, lists of great depth
        raise InvalidSetting(f"{what} is not valid TOML: {error}.") from error
