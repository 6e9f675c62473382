"""Files that a user names for a command to write: never lost, never half written, never elsewhere."""

import os
import stat
from pathlib import Path
from typing import Annotated

import typer

from repcl.errors import InvalidData
from repcl.files import write_whole

Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]


def require_writable(path: Path, option: str, *, force: bool, sources: tuple[Path | None, ...] = ()) -> None:
    """Refuse a file that could not or should not be written, before the work for it is done.

    A symbolic link is refused even with `--force`: to write through it changes a file that was not named, and
    to replace it breaks what someone has set up.

    Args:
        path: of the file.
        option: that it was named with.
        force: whether a file that exists may be replaced.
        sources: files that the command reads, which are not replaced by what it finds in them.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        found = None
    except (OSError, ValueError) as error:
        raise _cannot_write(path, option, error) from error
    if found is None:
        _require_folder(path, option)
    elif stat.S_ISLNK(found.st_mode):
        raise InvalidData(f"{path} is a symbolic link: name the file itself with {option}.")
    elif not stat.S_ISREG(found.st_mode):
        raise InvalidData(f"{path} is a folder or a device: give another {option}.")
    elif any(source is not None and source.exists() and source.samefile(path) for source in sources):
        raise InvalidData(f"{path} is what is read here: give another {option}.")
    elif not force:
        raise InvalidData(f"{path} exists: give another {option}, or --force to replace it.")


def write_named(path: Path, text: str, option: str, *, force: bool) -> None:
    """Write a file whole or not at all; one that has appeared in the meantime is not replaced either."""
    require_writable(path, option, force=force)
    try:
        write_whole(path, text, durable=True)
    except OSError as error:
        raise _cannot_write(path, option, error) from error


def _require_folder(path: Path, option: str) -> None:
    if not path.parent.is_dir():
        raise InvalidData(f"There is no folder {path.parent}: make it, or give another {option}.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InvalidData(f"{path.parent} may not be written to: give another {option}.")


def _cannot_write(path: Path, option: str, error: Exception) -> InvalidData:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return InvalidData(f"{path} cannot be written ({reason}): give another {option}, or make room.")
