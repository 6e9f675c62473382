"""The files of a model folder: read with checks, named by their hash, written by one process at a time."""

import errno
import json
import os
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from repcl.classifier.store.records import Blob, DamagedModel, ExamplesRecord, now, parse_json
from repcl.data.examples import Example
from repcl.errors import RepclError
from repcl.files import settle, write_whole

LOCK = "lock"
PAUSE = 0.1
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}


class CannotWrite(RepclError):
    """A model folder could not be written; what it held before is untouched."""


class ModelIsLocked(RepclError):
    """Another process is changing the model folder."""


# ---- reading ------------------------------------------------------------------------------------


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


# ---- files named by the sha256 of their bytes: nothing is stored twice, and damage is seen ------


class Blobs(Protocol):
    """Somewhere to put bytes and to get them back."""

    def put(self, data: bytes, ending: str) -> Blob:
        """Keep bytes."""

    def get(self, blob: Blob) -> bytes:
        """The bytes again."""


class BlobsInMemory:
    """Bytes kept in this process, for pickling."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, data: bytes, ending: str) -> Blob:
        """Keep bytes."""
        blob = _blob(data, ending)
        self.kept[blob.file] = data
        return blob

    def get(self, blob: Blob) -> bytes:
        """The bytes again."""
        return self.kept[blob.file]


class BlobFolder:
    """Bytes kept as files of one folder.

    Attributes:
        added: the files written by this object, to be taken back if the rest goes wrong.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.added: list[Path] = []

    def put(self, data: bytes, ending: str) -> Blob:
        """Write bytes unless they are there."""
        blob = _blob(data, ending)
        path = self.folder / blob.file
        if not path.is_file() or path.read_bytes() != data:  # a damaged file is repaired
            self.folder.mkdir(parents=True, exist_ok=True)
            self.added.append(path)
            write_whole(path, data)
        return blob

    def get(self, blob: Blob) -> bytes:
        """The bytes again, checked against their name."""
        where = f"{self.folder.name}/{blob.file}"
        data = read_whole(self.folder / blob.file, largest=blob.bytes, where=where)
        if sha256(data).hexdigest() != blob.digest:
            raise DamagedModel(f"{where} is damaged: its bytes do not have the sha256 in its name.")
        return data

    def settle(self) -> None:
        """Bring the new files to the disk, all together, which is much faster than one by one."""
        for path in self.added:
            settle(path)
        if self.added:
            settle(self.folder)

    def take_back(self) -> None:
        """Remove what this object added."""
        for path in self.added:
            path.unlink(missing_ok=True)


def put_examples(examples: Iterable[Example], blobs: Blobs) -> ExamplesRecord:
    """Keep examples, one JSON object per line."""
    rows = [example.to_json() for example in examples]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return ExamplesRecord(file=blobs.put(text.encode(), "jsonl"), count=len(rows))


def get_examples(record: ExamplesRecord, blobs: Blobs, classes: Sequence[str]) -> list[Example]:
    """The examples again; all of them have to be of these classes."""
    where = f"blobs/{record.file.file}"
    *lines, rest = blobs.get(record.file).split(b"\n")  # str.splitlines would cut texts at U+2028
    if rest or len(lines) != record.count:
        raise DamagedModel(f"Expected {record.count} examples in {where}, found {len(lines)}.")
    found, known = [_example(parse_json(line, where), where) for line in lines], set(classes)
    for example in found:
        if example.label not in known:
            raise DamagedModel(f"{where} holds an example of a class that the revision does not have.")
    return found


def _example(row: Any, where: str) -> Example:
    try:
        return Example.from_json(row)
    except ValueError as error:
        raise DamagedModel(f"{where} has a row that is not an example ({error}).") from error


def _blob(data: bytes, ending: str) -> Blob:
    return Blob(file=f"{sha256(data).hexdigest()}.{ending}", bytes=len(data))


# ---- writing ------------------------------------------------------------------------------------


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
                "Change its permissions, or copy it to a folder of your own."
            ) from error
        raise CannotWrite(f"{folder} could not be written ({error}); {kept}.") from error


@contextmanager
def locked(
    folder: Path, purpose: str, *, wait: float = 0.0, tell: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold a folder's lock; the operating system frees it however the holder ends, so it is never stale.

    Args:
        folder: made if it does not exist.
        purpose: what the holder does, for those who wait.
        wait: seconds to wait for another holder.
        tell: hears once who is waited for.
    """
    # a soft lock, which filelock would take where a file system knows no other, outlives its process
    lock = FileLock(folder / LOCK, fallback_to_soft=False)
    _acquire(lock, folder, wait, tell)
    try:
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": now(), "doing": purpose}
        _sign(folder, json.dumps(holder))
        yield
    finally:
        _sign(folder, "")
        lock.release()


def _holder(folder: Path) -> str:
    """Who holds the lock, for a sentence."""
    try:
        found = json.loads((folder / LOCK).read_text(encoding="utf-8"))
        return f"process {found['pid']} on {found['host']} ({found['doing']} since {found['since']})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"


def _acquire(lock: FileLock, folder: Path, wait: float, tell: Callable[[str], None] | None) -> None:
    deadline = time.monotonic() + wait
    while True:
        # filelock's own waiting would not make the folder again, which a holder takes away if it stays empty
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(Timeout, FileNotFoundError):
            lock.acquire(blocking=False)
            return
        holder = _holder(folder)
        if time.monotonic() >= deadline:
            raise ModelIsLocked(
                f"{folder} is being changed by {holder}. Try again when it has ended, or wait for it "
                "with --wait SECONDS."
            )
        if tell is not None:
            tell(f"Waiting for {holder}.")
            tell = None
        time.sleep(PAUSE)


def _sign(folder: Path, text: str) -> None:
    """Write into the lock who holds it; a courtesy only, so a full disk does not matter here."""
    with suppress(OSError), (folder / LOCK).open("r+", encoding="utf-8") as file:
        file.truncate(0)
        file.write(text)
