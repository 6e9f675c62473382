"""One writer at a time: a lock that ends with the process that holds it, and says who that is."""

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from repcl.classifier.guard import now
from repcl.errors import RepclError

LOCK = "lock"
PAUSE = 0.1


class ModelIsLocked(RepclError):
    """Another process is changing the model folder."""


@contextmanager
def locked(
    folder: Path, purpose: str, *, wait: float = 0.0, tell: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold a folder's lock; the operating system frees it however the holder ends, so it is never stale.

    Args:
        folder: exists.
        purpose: what the holder does, for those who wait.
        wait: seconds to wait for another holder.
        tell: hears once who is waited for.
    """
    path = folder / LOCK
    number = _acquire(path, wait, tell)
    try:
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": now(), "doing": purpose}
        os.truncate(number, 0)
        os.write(number, json.dumps(holder).encode())
        yield
    finally:
        with suppress(OSError):
            os.truncate(number, 0)
        os.close(number)


def holder_of(folder: Path) -> str:
    """Who holds the lock, in words."""
    try:
        found = json.loads((folder / LOCK).read_text(encoding="utf-8"))
        return f"process {found['pid']} on {found['host']} ({found['doing']} since {found['since']})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"


def _acquire(path: Path, wait: float, tell: Callable[[str], None] | None) -> int:
    deadline = time.monotonic() + wait
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)  # the holder may have taken an empty folder away
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if _try_lock(number) and _is_still_there(path, number):
            return number
        os.close(number)
        holder = holder_of(path.parent)
        if time.monotonic() >= deadline:
            raise ModelIsLocked(
                f"{path.parent} is being changed by {holder}. Try again when it has ended, or wait for it "
                "with --wait SECONDS."
            )
        if tell is not None:
            tell(f"Waiting for {holder}.")
            tell = None
        time.sleep(PAUSE)


def _is_still_there(path: Path, number: int) -> bool:
    """Whether the locked file is still the one with that name; a cleared-away folder takes its lock along."""
    with suppress(OSError):
        return os.path.samestat(os.stat(path), os.fstat(number))
    return False


if sys.platform == "win32":
    import msvcrt

    def _try_lock(number: int) -> bool:
        try:
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(number: int) -> bool:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
