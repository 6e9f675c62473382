"""Files that are there whole or not at all, whenever the process or the machine stops."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from repcl.classifier.records import DamagedModel
from repcl.errors import RepclError

PART = ".part-"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}


class CannotWrite(RepclError):
    """A model folder could not be written; what it held before is untouched."""


def write_whole(path: Path, data: bytes) -> None:
    """Write beside the target, then rename: no process ever sees half a file."""
    part = path.with_name(f"{PART}{os.getpid()}-{path.name}")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_durably(path: Path, data: bytes) -> None:
    """The same, with the bytes on the disk before the name: not even a power cut leaves half a file."""
    part = path.with_name(f"{PART}{os.getpid()}-{path.name}")
    try:
        part.write_bytes(data)
        settle(part)
        os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def settle(path: Path) -> None:
    """Bring a file's bytes, or a folder's list of names, to the disk; Windows needs no such call."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def read_whole(path: Path, *, largest: int, where: str) -> bytes:
    """The bytes of a plain file; links, pipes and files larger than expected are refused unread."""
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            raise DamagedModel(f"Expected a plain file at {where}, found something else.")
        if found.st_size > largest:
            raise DamagedModel(
                f"Expected at most {largest:,} bytes in {where}, found {found.st_size:,}: it is damaged."
            )
        return path.read_bytes()
    except FileNotFoundError as error:
        raise DamagedModel(f"Expected a file {where}, found none: it was removed.") from error
    except OSError as error:
        raise DamagedModel(f"{where} cannot be read ({error.strerror}): check its permissions.") from error


@contextmanager
def explained(folder: Path, in_use: int | None) -> Iterator[None]:
    """Turn the operating system's refusal to write into one sentence."""
    try:
        yield
    except OSError as error:
        kept = f"revision {in_use} stays in use" if in_use else "nothing was changed"
        if error.errno in _FULL:
            raise CannotWrite(
                f"There is no space left to write {folder}; {kept}. Free some space and try again."
            ) from error
        if error.errno in _FORBIDDEN:
            raise CannotWrite(
                f"{folder} may not be written ({error.strerror}); {kept}. "
                "Change its permissions, or copy it to a place of your own."
            ) from error
        raise CannotWrite(f"{folder} could not be written ({error}); {kept}.") from error
