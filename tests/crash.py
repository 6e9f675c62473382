"""A file layer that breaks at the n-th operation, to try every point at which a process can end.

    points = count_operations(folder, action)
    for n in range(points):
        outcome = run_broken(folder, action, Breakage(n, "dies"))

An action is any function; it is run in a forked process, with the functions patched through which Python
changes files. Whatever C code writes by itself is not seen.
"""

import builtins
import errno
import io
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

Way = Literal[
    "dies", "dies half way", "power cut", "full", "full from then on", "broken", "broken from then on"
]
WAYS: tuple[Way, ...] = (
    "dies",
    "dies half way",
    "power cut",
    "full",
    "full from then on",
    "broken",
    "broken from then on",
)
DIED = 77
CHANGES = (
    "mkdir",
    "rmdir",
    "unlink",
    "remove",
    "rename",
    "replace",
    "ftruncate",
    "truncate",
    "link",
    "symlink",
)
SPACE = {"open", "write", "mkdir", "symlink", "link"}
"""What fails on a full disk; renaming, deleting and overwriting bytes that are there need no space."""


@dataclass(frozen=True)
class Breakage:
    """Where and how the layer breaks.

    Attributes:
        at: the operation, counted from 0.
        way: a process ends before the operation, or half way through a write; a power cut also loses bytes
            that were not synced; a disk is full or broken, once or for good.
    """

    at: int
    way: Way


class Operations:
    """Counts what changes files below a folder, and breaks one of the operations."""

    def __init__(self, folder: Path, breakage: Breakage | None) -> None:
        self.folder = os.path.realpath(folder)
        self.breakage = breakage
        self.count = 0
        self.log: list[str] = []
        self.unsynced: set[int] = set()
        self.ours: set[int] = set()  # open files below the folder
        self.real = {name: getattr(os, name) for name in (*CHANGES, "open", "write", "fsync", "close")}

    def step(self, name: str, half: Callable[[], Any] | None = None) -> None:
        """One operation: let it happen, fail it, or end."""
        self.log.append(name)
        number, self.count = self.count, self.count + 1
        broken = self.breakage
        if broken is None or number < broken.at:
            return
        lasting = broken.way.endswith("from then on")
        if number > broken.at and not lasting:
            return
        if broken.way.startswith("full") and name in SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if broken.way.startswith("broken"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if broken.way in ("dies", "dies half way", "power cut"):
            if broken.way == "dies half way" and half is not None:
                half()
            if broken.way == "power cut":
                self._lose_unsynced()
            os._exit(DIED)

    def is_inside(self, path: Any) -> bool:
        """Whether a path is the folder or below it."""
        if isinstance(path, int):
            return path in self.ours
        where = os.path.abspath(os.fsdecode(os.fspath(path)))
        return where == self.folder or where.startswith(self.folder + os.sep)

    # ---- what the patched functions do ----------------------------------------------------------

    def change(self, name: str) -> Callable[..., Any]:
        """A function of `os` that changes names or lengths."""

        def changed(path: Any, *rest: Any, **options: Any) -> Any:
            if self.is_inside(path):
                self.step(name)
            return self.real[name](path, *rest, **options)

        return changed

    def open(self, path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        """`os.open`: an operation where it may create or empty a file."""
        inside = self.is_inside(path)
        if inside and (flags & os.O_TRUNC or (flags & os.O_CREAT and not os.path.lexists(path))):
            self.step("open")
        number: int = self.real["open"](path, flags, mode, **options)
        if inside and flags & (os.O_WRONLY | os.O_RDWR):
            self.ours.add(number)
        return number

    def close(self, number: int) -> None:
        """`os.close`."""
        self.ours.discard(number)
        self.real["close"](number)

    def write(self, number: int, data: Any) -> int:
        """`os.write`."""
        if number in self.ours:
            end = os.lseek(number, 0, os.SEEK_CUR) + len(data)
            self.step(
                "overwrite" if end <= os.fstat(number).st_size else "write",
                lambda: self.real["write"](number, bytes(data)[: len(data) // 2]),
            )
            self.unsynced.add(os.fstat(number).st_ino)
        written: int = self.real["write"](number, data)
        return written

    def fsync(self, number: int) -> None:
        """`os.fsync`."""
        self.step("fsync")
        self.unsynced.discard(os.fstat(number).st_ino)
        self.real["fsync"](number)

    def open_file(self, file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        """`open`: files that are written below the folder are written through `os.write`."""
        if isinstance(file, int) or not set(mode) & set("wax+") or not self.is_inside(file):
            return REAL_OPEN(file, mode, *rest, **options)
        raw = self.Raw(self, file, mode.replace("b", "").replace("t", ""))
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(
            buffered, options.get("encoding"), options.get("errors"), options.get("newline")
        )

    class Raw(io.FileIO):
        """A file whose every write is an operation."""

        def __init__(self, operations: "Operations", file: Any, mode: str) -> None:
            self.operations = operations
            operations.step("open")
            super().__init__(os.fspath(file), mode)

        def write(self, data: Any) -> int:
            """Write some bytes."""
            plain = bytes(data)
            self.operations.step("write", lambda: super(Operations.Raw, self).write(plain[: len(plain) // 2]))
            self.operations.unsynced.add(os.fstat(self.fileno()).st_ino)
            return super().write(plain)

        def truncate(self, size: int | None = None) -> int:
            """Cut the file."""
            self.operations.step("ftruncate")
            return super().truncate(size)

    def _lose_unsynced(self) -> None:
        """What a power cut does to files that were written but not synced: their names are there, empty."""
        for parent, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(parent, name)
                if os.lstat(path).st_ino in self.unsynced:
                    self.real["truncate"](path, 0)


REAL_OPEN = builtins.open


@contextmanager
def breaking(folder: Path, breakage: Breakage | None = None) -> Iterator[Operations]:
    """Count operations below a folder, and break one of them."""
    layer = Operations(folder, breakage)
    with ExitStack() as stack:
        for name in CHANGES:
            stack.enter_context(patch.object(os, name, layer.change(name)))
        for name in ("open", "write", "fsync", "close"):
            stack.enter_context(patch.object(os, name, getattr(layer, name)))
        stack.enter_context(patch.object(builtins, "open", layer.open_file))
        stack.enter_context(patch.object(io, "open", layer.open_file))
        yield layer


def run_broken(
    folder: Path,
    action: Callable[[], Any],
    breakage: Breakage | None,
    expected: tuple[type[Exception], ...] = (),
) -> tuple[str, list[str]]:
    """Run an action in a forked process with a broken file layer.

    Args:
        folder: below it operations are counted.
        action: what is run; it is imported and loaded before, so that the fork is cheap.
        breakage: None to see what an unbroken run does.
        expected: errors that the action may end with, as one sentence for the user.

    Returns:
        "done", "died", "said: ..." for an expected error, or "crashed: ..." with the traceback; and the
        operations up to then, where the process did not die.
    """
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            layer = None
            try:
                try:
                    with breaking(folder, breakage) as layer:
                        action()
                    text = "done"
                except expected as error:
                    text = f"said: {error}"
                except BaseException:
                    text = f"crashed: {traceback.format_exc()}"
                log = " ".join(layer.log) if layer else ""
                os.write(answer.fileno(), f"{log}\n{text}".encode("utf-8", "backslashreplace"))
            finally:
                os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == DIED:
            return "died", []
        answer.seek(0)
        log, _, text = answer.read().decode().partition("\n")
        return text or f"crashed: exit code {status}", log.split()
