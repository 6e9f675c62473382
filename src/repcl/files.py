"""Files that are there whole or not at all, whenever the process stops; links are never followed."""

import errno
import json
import os
import re
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

PART = ".part-"
"""How the names of files begin that are still being written."""
UNFINISHED = rf"{re.escape(PART)}[0-9a-f]{{12}}-"
"""The same as a pattern, up to the name that they are to have."""
LONGEST_SHOWN = 300
LONGEST_NAME = 255  # in bytes, of a file
DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
LARGEST_NUMBER = 1e100
"""In a JSON file, so that sums, squares and means of many numbers can still be computed."""
_BINARY: int = getattr(os, "O_BINARY", 0)

Number = TypeVar("Number", int, float)


class NotPlainFile(OSError):
    """Something else is where a plain file was expected: a link, a folder, a pipe."""


class TooLarge(ValueError):
    """A file has more bytes than what it should hold can need."""

    def __init__(self, largest: int, size: int) -> None:
        super().__init__(f"expected at most {largest:,} bytes, found {size:,}")
        self.size = size


def write_whole(path: Path, data: bytes | str, *, durable: bool = True) -> None:
    """Write a file under another name, then rename it: no process ever sees half of it.

    Args:
        path: of the file; its folder exists.
        data: text is written as UTF-8.
        durable: bring the bytes to the disk before the name, so that not even a power cut leaves half a file;
            what nobody needs after one may do without.
    """
    part = write_part(path, [data.encode() if isinstance(data, str) else data])
    try:
        if durable:
            settle(part)
        os.replace(part, path)
    except BaseException:
        remove_quietly(part)
        raise


def write_part(path: Path, pieces: Iterable[bytes]) -> Path:
    """Write what is to become a file beside it, and say where; the caller renames or removes it."""
    part = part_of(path)
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | _BINARY, 0o666)
    try:
        try:
            for piece in pieces:
                _write_all(number, piece)
        finally:
            os.close(number)
    except BaseException:
        remove_quietly(part)
        raise
    return part


def reuse_space(spare: Path, path: Path, data: bytes) -> None:
    """Write a file whole and durably into the space of another one, which is gone then.

    A full disk has no room for new bytes, but a file may be overwritten where it lies.

    Args:
        spare: a plain file at least as large as the data, in the folder of the new one.
        path: of the new file.
        data: its bytes.
    """
    part = part_of(path)
    os.replace(spare, part)
    try:
        number = os.open(part, os.O_WRONLY | NO_LINK | _BINARY)
        try:
            _write_all(number, data)
            os.ftruncate(number, len(data))
        finally:
            os.close(number)
        settle(part)
        os.replace(part, path)
    except BaseException:
        remove_quietly(part)
        raise


def part_of(path: Path) -> Path:
    """A name beside a file that nobody else uses, for what is to become the file; of a long one the end."""
    mark, name = f"{PART}{uuid.uuid4().hex[:12]}-", path.name
    while len(os.fsencode(mark + name)) > LONGEST_NAME:
        name = name[1:]
    return path.with_name(mark + name)


def parse_json(data: bytes | str) -> Any:
    """The value of a JSON text; whatever is wrong with it is a `ValueError`.

    So are too many brackets, half characters, which could not be written or shown, and numbers beyond
    `LARGEST_NUMBER`.
    """
    text = data if isinstance(data, str) else data.decode("utf-8-sig")
    try:
        found = json.loads(
            text,
            parse_int=lambda digits: _bounded(int(digits)),
            parse_float=lambda digits: _bounded(float(digits)),
        )
        if "\\ud" in text.lower():
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None
    return found


def _bounded(value: Number) -> Number:
    if abs(value) > LARGEST_NUMBER:
        raise ValueError(f"a number is beyond {LARGEST_NUMBER:.0e}")
    return value


def settle(path: Path) -> None:
    """Bring a file's bytes, or a folder's list of names, to the disk; Windows needs no such call."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def open_plain(path: Path) -> Iterator[BufferedReader]:
    """Open a file to read it; `NotPlainFile` for a link, a folder, or a pipe, which would block."""
    if stat.S_ISLNK(os.lstat(path).st_mode):  # not every system can be told when opening
        raise NotPlainFile(f"{shown(path)} is a link")
    number = os.open(path, os.O_RDONLY | NO_LINK | _BINARY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise NotPlainFile(f"{shown(path)} is no plain file")
        with open(number, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(number)


def read_plain(path: Path, largest: int) -> bytes:
    """The bytes of a plain file; `NotPlainFile` as above, `TooLarge` for more bytes than expected, unread."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest:
            raise TooLarge(largest, size)
        return file.read(size)


def is_plain(path: Path) -> bool:
    """Whether there is a plain file, not a link to one."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def remove_quietly(path: Path) -> None:
    """Remove a file of which it does not matter whether it stays."""
    with suppress(OSError):
        os.unlink(path)


def about(error: OSError) -> str:
    """What the operating system refused, as a sentence for the user."""
    where = shown(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else "A file"
    if error.errno in DISK_IS_FULL:
        return f"{where} could not be written, for the disk is full: make room, then run the command again."
    reason = error.strerror or shown(str(error)) or type(error).__name__
    return f"{where} could not be read or written ({reason}): check the path, permissions and the disk."


def shown(path: str | Path) -> str:
    """A path as a sentence shows it: bytes that are no text are escaped, and a long one is cut."""
    text = str(path).encode("utf-8", "backslashreplace").decode()
    text = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _write_all(number: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(number, rest) :]
