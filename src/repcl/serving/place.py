"""The folder inside a model folder that one writing service has for itself; links are not followed."""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from repcl.classifier.store.collected import COLLECTED, SERVICE
from repcl.classifier.store.files import read_whole
from repcl.errors import RepclError
from repcl.files import UNFINISHED, is_plain, shown, write_whole

LOCK, JOBS = "lock", "jobs.json"
LEFTOVER = re.compile(rf"{UNFINISHED}({re.escape(COLLECTED)}|{re.escape(JOBS)})")
"""What files that were never finished are called."""


class Place:
    """Where a service keeps its jobs and collected texts.

    Args:
        model: the model folder, which exists.
    """

    def __init__(self, model: Path) -> None:
        self.path = model / SERVICE
        self._lock = FileLock(self.path / LOCK, fallback_to_soft=False, thread_local=False)

    def claim(self) -> None:
        """Be the one service that writes here, until the process ends."""
        try:
            with suppress(FileExistsError):
                os.mkdir(self.path, 0o700)  # strangers' words are nobody else's to read
            self._check_plain()
            self._lock.acquire(timeout=0)
            self._sweep()
        except Timeout as error:
            raise RepclError(
                f"Another service writes to {shown(self.path.parent)}: end it first, or start this one with "
                "--read-only."
            ) from error
        except (OSError, NotImplementedError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise RepclError(
                f"{shown(self.path)} cannot be written ({reason}): give this user the right to write there, "
                "or start the service with --read-only."
            ) from error

    def release(self) -> None:
        """Let another service write here."""
        self._lock.release()

    def read(self, name: str, largest: int) -> bytes | None:
        """The bytes of a file; None where there is none."""
        if not os.path.lexists(self.path / name):
            return None
        return read_whole(self.path / name, largest=largest, where=shown(self.path / name))

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole."""
        write_whole(self.path / name, data)

    def _check_plain(self) -> None:
        lock = self.path / LOCK
        is_folder = stat.S_ISDIR(os.lstat(self.path).st_mode)
        if not is_folder or (os.path.lexists(lock) and not is_plain(lock)):
            raise RepclError(
                f"Expected a folder of repcl at {shown(self.path)}, found something else (links are not "
                "followed): move it away."
            )

    def _sweep(self) -> None:
        """Remove what a service that was killed had not finished writing."""
        for name in os.listdir(self.path):
            if LEFTOVER.fullmatch(name) and is_plain(self.path / name):
                os.unlink(self.path / name)
