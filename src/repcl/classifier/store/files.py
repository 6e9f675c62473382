"""The files of a model folder: read with checks, named by their hash, written by one process at a time."""

import errno
import io
import json
import os
import re
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import BufferedReader
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from filelock import FileLock, Timeout

from repcl.classifier.store.records import (
    BLOB_NAME,
    LARGEST_LINE,
    MEGABYTE,
    Blob,
    DamagedModel,
    ExamplesRecord,
    now,
    one_line,
    parse_json,
)
from repcl.data.examples import Example, InputKind
from repcl.data.files import input_kind
from repcl.errors import RepclError
from repcl.files import (
    NO_LINK,
    NotPlainFile,
    TooLarge,
    open_plain,
    read_plain,
    remove_quietly,
    settle,
    shown,
    write_part,
)

LOCK = "lock"
PAUSE = 0.1
CHUNK = 4 * MEGABYTE
LARGEST_UNCHECKED = 64 * MEGABYTE
"""Bytes that are read before their hash is compared; larger files are hashed piece by piece first."""
LONGEST_SIGN = 4096
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}


class CannotWrite(RepclError):
    """A model folder could not be written; what it held before is untouched."""


class ModelIsLocked(RepclError):
    """Another process is changing the model folder.

    Attributes:
        without_options: the same for those who have no command line at hand.
    """

    def __init__(self, by_whom: str) -> None:
        super().__init__(f"{by_whom} Try again when it has ended, or wait for it with --wait SECONDS.")
        self.without_options = f"{by_whom} Try again when it has ended."


# ---- reading ------------------------------------------------------------------------------------


def read_whole(path: Path, *, largest: int, where: str) -> bytes:
    """The bytes of a plain file; links, pipes and files larger than expected are refused unread."""
    try:
        with reading(where):
            return read_plain(path, largest)
    except TooLarge as error:
        raise DamagedModel(
            f"Expected at most {largest:,} bytes in {where}, found {error.size:,}: it is damaged."
        ) from error


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Turn the operating system's refusal to read a file into one sentence."""
    try:
        yield
    except NotPlainFile as error:
        raise DamagedModel(
            f"Expected a plain file at {where}, found something else (links are not followed): put the file "
            "itself there."
        ) from error
    except FileNotFoundError as error:
        raise DamagedModel(f"Expected a file {where}, found none: it was removed.") from error
    except OSError as error:
        raise DamagedModel(f"{where} cannot be read ({error.strerror}): check its permissions.") from error


# ---- files named by the sha256 of their bytes: nothing is stored twice, and damage is seen ------


Data = bytes | Iterable[bytes]
"""Bytes, or pieces that are made anew each time they are asked for, so that not all have to fit at once."""


class Blobs(Protocol):
    """Somewhere to put bytes and to get them back."""

    def put(self, data: Data, ending: str) -> Blob:
        """Keep bytes."""

    def get(self, blob: Blob) -> bytes:
        """The bytes again."""

    def fill(self, memory: memoryview, blob: Blob) -> None:
        """The last bytes again, so many as the memory has, into which they go without a copy on the way."""

    def view(self, blob: Blob) -> memoryview:
        """The bytes where they lie, without a copy."""

    def beginning(self, blob: Blob, length: int) -> bytes:
        """The first bytes, unchecked, to see what the rest would be."""

    def lines(self, blob: Blob) -> Iterator[bytes]:
        """The lines, with their ends; the last one comes when all were checked."""


class BlobsInMemory:
    """Bytes kept in this process, for pickling."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, data: Data, ending: str) -> Blob:
        """Keep bytes."""
        blob = _blob(data, ending)
        self.kept[blob.file] = b"".join(_pieces(data))
        return blob

    def get(self, blob: Blob) -> bytes:
        """The bytes again."""
        return self.kept[blob.file]

    def fill(self, memory: memoryview, blob: Blob) -> None:
        """The last bytes again, in memory that is there."""
        memory[:] = self.kept[blob.file][blob.bytes - len(memory) :]

    def view(self, blob: Blob) -> memoryview:
        """The bytes where they lie."""
        return memoryview(self.kept[blob.file])

    def beginning(self, blob: Blob, length: int) -> bytes:
        """The first bytes."""
        return self.kept[blob.file][:length]

    def lines(self, blob: Blob) -> Iterator[bytes]:
        """The lines, with their ends."""
        yield from io.BytesIO(self.kept[blob.file])


class BlobFolder:
    """Bytes kept as files of one folder.

    New files have names of their own until `publish`, so that a file under its final name is always whole.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._staged: dict[str, Path] = {}
        self._added: list[Path] = []

    def put(self, data: Data, ending: str) -> Blob:
        """Write bytes unless they are there."""
        blob = _blob(data, ending)
        if blob.file not in self._staged and not self._holds(blob, data):  # a damaged file is repaired
            with suppress(FileExistsError):
                os.mkdir(self.folder)
            self._staged[blob.file] = write_part(self.folder / blob.file, _pieces(data))
        return blob

    def get(self, blob: Blob) -> bytes:
        """The bytes again, checked against their name."""
        if blob.bytes > LARGEST_UNCHECKED:
            self.check(blob)
        with self._opened(blob) as file:
            data = file.read(blob.bytes)
        self._compare(blob, sha256(data).hexdigest())
        return data

    def fill(self, memory: memoryview, blob: Blob) -> None:
        """The last bytes again, in memory that is there, all of the file checked against its name."""
        if blob.bytes > LARGEST_UNCHECKED:
            self.check(blob)
        with self._opened(blob) as file:
            digest = sha256(file.read(blob.bytes - len(memory)))
            for start in range(0, len(memory), CHUNK):
                file.readinto(memory[start : start + CHUNK])
                digest.update(memory[start : start + CHUNK])
        self._compare(blob, digest.hexdigest())

    def view(self, blob: Blob) -> memoryview:
        """The bytes where they lie, checked against their name; they take no memory of this process."""
        with self._opened(blob) as file:
            data = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ) if blob.bytes else b"")
        self._compare(blob, sha256(data).hexdigest())
        return data

    def check(self, blob: Blob) -> None:
        """Compare a file with its name, without holding more than a piece of it."""
        with self._opened(blob) as file:
            self._compare(blob, hash_of(file))

    def beginning(self, blob: Blob, length: int) -> bytes:
        """The first bytes, unchecked, to see what the rest would be."""
        with self._opened(blob) as file:
            return file.read(length)

    def lines(self, blob: Blob) -> Iterator[bytes]:
        """The lines, with their ends; only after the last one the file is known to be what its name says."""
        digest = sha256()
        with self._opened(blob) as file:
            while line := file.readline(LARGEST_LINE + 1):
                if len(line) > LARGEST_LINE:
                    raise DamagedModel(f"{self._where(blob)} has a line of more than {LARGEST_LINE:,} bytes.")
                digest.update(line)
                yield line
        self._compare(blob, digest.hexdigest())

    def publish(self) -> None:
        """Bring the new files to the disk, all together, which is much faster, then give them their names."""
        is_anything_new = bool(self._staged)
        for part in self._staged.values():
            settle(part)
        for name, part in list(self._staged.items()):
            path = self.folder / name
            is_new = not os.path.lexists(path)
            os.replace(part, path)
            del self._staged[name]
            if is_new:
                self._added.append(path)
        if is_anything_new:
            settle(self.folder)

    def take_back(self) -> None:
        """Remove what this object added; what it repaired stays."""
        for path in [*self._staged.values(), *self._added]:
            remove_quietly(path)

    @contextmanager
    def _opened(self, blob: Blob) -> Iterator[BufferedReader]:
        where = self._where(blob)
        with reading(where), open_plain(self._staged.get(blob.file, self.folder / blob.file)) as file:
            size = os.fstat(file.fileno()).st_size
            if size != blob.bytes:
                raise DamagedModel(
                    f"Expected {blob.bytes:,} bytes in {where}, found {size:,}: it is damaged."
                )
            yield file

    def _holds(self, blob: Blob, data: Data) -> bool:
        """Whether the bytes are there; what is not a plain file is nothing that may be replaced."""
        path = self.folder / blob.file
        if not os.path.lexists(path):
            return False
        with reading(self._where(blob)), open_plain(path) as file:
            if os.fstat(file.fileno()).st_size != blob.bytes:
                return False
            return all(file.read(len(piece)) == piece for piece in _pieces(data))

    def _compare(self, blob: Blob, found: str) -> None:
        if found != blob.digest:
            raise DamagedModel(
                f"{self._where(blob)} is damaged: its bytes do not have the sha256 in its name."
            )

    def _where(self, blob: Blob) -> str:
        return f"{self.folder.name}/{blob.file}"


def hash_of(file: BinaryIO) -> str:
    """The sha256 of an open file, read in pieces."""
    digest = sha256()
    while piece := file.read(CHUNK):
        digest.update(piece)
    return digest.hexdigest()


def is_named_by_its_bytes(path: Path, *, largest: int) -> bool:
    """Whether a file has the sha256 of its own bytes for a name: nothing else makes such files here."""
    if not re.fullmatch(BLOB_NAME, path.name):
        return False
    try:
        with open_plain(path) as file:
            if os.fstat(file.fileno()).st_size > largest:
                return False
            return hash_of(file) == path.name.partition(".")[0]
    except OSError:
        return False


def put_examples(examples: Iterable[Example], blobs: Blobs) -> ExamplesRecord:
    """Keep examples, one JSON object per line."""
    rows = [example.to_json() for example in examples]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return ExamplesRecord(file=blobs.put(text.encode(), "jsonl"), count=len(rows))


def get_examples(
    record: ExamplesRecord, blobs: Blobs, classes: Sequence[str], kind: InputKind | None = None
) -> list[Example]:
    """The examples again; all have to be of these classes, and of this kind of input if one is given."""
    where, known = f"blobs/{record.file.file}", set(classes)
    found: list[Example] = []
    for line in blobs.lines(record.file):  # str.splitlines would cut texts at U+2028
        example = _example(parse_json(line, where), where)
        if example.label not in known:
            raise DamagedModel(f"{where} holds an example of a class that the revision does not have.")
        if kind is not None and input_kind(example) != kind:
            raise DamagedModel(f"{where} holds an example that is no {kind} input.")
        found.append(example)
        if len(found) > record.count:
            raise DamagedModel(f"Expected {record.count} examples in {where}, found {len(found)} or more.")
        if not line.endswith(b"\n"):
            raise DamagedModel(
                f"Expected {record.count} examples in {where}, found one without an end of line."
            )
    if len(found) < record.count:
        raise DamagedModel(f"Expected {record.count} examples in {where}, found {len(found)}.")
    return found


def _example(row: Any, where: str) -> Example:
    try:
        example = Example.from_json(row)
        for span in (example.head, example.tail, example.trigger):
            if span is not None and not 0 <= span.start < span.end <= len(example.text):
                raise ValueError(f"characters {span.start} to {span.end} are not in the text")
        example.text.encode()
    except ValueError as error:
        raise DamagedModel(f"{where} has a row that is not an example ({one_line(error)}).") from error
    return example


def _blob(data: Data, ending: str) -> Blob:
    digest, size = sha256(), 0
    for piece in _pieces(data):
        digest.update(piece)
        size += len(piece)
    return Blob(file=f"{digest.hexdigest()}.{ending}", bytes=size)


def _pieces(data: Data) -> Iterable[bytes]:
    return [data] if isinstance(data, bytes) else data


# ---- writing ------------------------------------------------------------------------------------


@contextmanager
def explained(folder: Path, in_use: int | None) -> Iterator[None]:
    """Turn the operating system's refusal to write into one sentence."""
    try:
        yield
    except OSError as error:
        kept = f"revision {in_use} stays in use" if in_use else "nothing was changed"
        if is_full(error):
            raise CannotWrite(
                f"There is no space left to write {shown(folder)}; {kept}. Free some space and try again."
            ) from error
        if error.errno in _FORBIDDEN:
            raise CannotWrite(
                f"{shown(folder)} may not be written ({error.strerror}); {kept}. "
                "Change its permissions, or copy it to a folder of your own."
            ) from error
        reason = error.strerror or one_line(error)
        raise CannotWrite(f"{shown(folder)} could not be written ({reason}); {kept}.") from error


def is_full(error: OSError) -> bool:
    """Whether something could not be written for lack of space."""
    return error.errno in _FULL


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


def is_own_lock(path: Path) -> bool:
    """Whether a lock is empty or signed: another file of that name is locked, but never written."""
    try:
        with open_plain(path) as file:
            return _is_signed(file.read(LONGEST_SIGN))
    except OSError:
        return False


def _is_signed(text: bytes) -> bool:
    return not text or text.startswith(b'{"pid": ')


def _holder(folder: Path) -> str:
    """Who holds the lock, for a sentence."""
    try:
        found = json.loads(read_whole(folder / LOCK, largest=LONGEST_SIGN, where=LOCK).decode())
        return one_line(
            f"process {found['pid']} on {found['host']} ({found['doing']} since {found['since']})"
        )
    except (RepclError, ValueError, KeyError, TypeError, RecursionError):
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
            raise ModelIsLocked(f"{shown(folder)} is being changed by {holder}.")
        if tell is not None:
            tell(f"Waiting for {holder}.")
            tell = None
        time.sleep(PAUSE)


def _sign(folder: Path, text: str) -> None:
    """Write into the lock who holds it; a courtesy only, so a full disk does not matter here."""
    with suppress(OSError):
        number = os.open(folder / LOCK, os.O_RDWR | NO_LINK)
        try:
            if stat.S_ISREG(os.fstat(number).st_mode) and _is_signed(os.read(number, LONGEST_SIGN)):
                os.ftruncate(number, 0)
                os.lseek(number, 0, os.SEEK_SET)
                os.write(number, text.encode())
        finally:
            os.close(number)
