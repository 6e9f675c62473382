"""Names that come from data, as a benchmark's from its file, and become names of files: they stay inside."""

import os
from pathlib import Path

from repcl.errors import InvalidData, shortened

LONGEST_NAME = 200
"""In bytes; file systems take 255, and endings are added."""
SEPARATORS = "/\\:\0"


def plain_name(name: str) -> str:
    """The name itself, if a file of that name is inside whichever folder it is looked for in."""
    if not isinstance(name, str) or not name.strip(". ") or any(sign in name for sign in SEPARATORS):
        raise InvalidData(
            f"{shortened(name)} cannot name a folder of results: use a name without slashes, backslashes and "
            "colons that is more than dots."
        )
    if not _fits(name):
        raise InvalidData(
            f"{shortened(name)} cannot name a folder of results: use at most {LONGEST_NAME} bytes of "
            "valid Unicode."
        )
    return name


def _fits(name: str) -> bool:
    try:
        return len(os.fsencode(name)) <= LONGEST_NAME
    except UnicodeEncodeError:
        return False


def inside(folder: Path, *names: str) -> Path:
    """The path of plain names below a folder; no name and no symbolic link on the way leads out of it."""
    path = folder.joinpath(*map(plain_name, names))
    # not Path.resolve, which raises where links go round
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise InvalidData(
            f"{path} leads out of {folder} by a symbolic link: remove the link, or choose another folder."
        )
    return path
