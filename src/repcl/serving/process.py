"""The learning process as the service sees it: started when needed, kept for the next job, killed at will."""

import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from repcl.serving.worker import Assignment, Failed, Finished, Message, work

GRACE_SECONDS = 5.0


class LearningProcess:
    """One process that carries out one assignment at a time."""

    def __init__(self) -> None:
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._starting = threading.Lock()

    @property
    def number(self) -> int | None:
        """Its process id, where it runs."""
        process = self._process
        return process.pid if process is not None and process.is_alive() else None

    def messages(self, assignment: Assignment) -> Iterator[Message]:
        """Give it an assignment and hear what it says about it; it ends with an outcome, or without one."""
        connection = self._started()
        try:
            connection.send(assignment)
            while True:
                message: Message = connection.recv()
                yield message
                if isinstance(message, Finished | Failed):
                    return
        except (EOFError, OSError):  # it was killed, by us or by someone else
            self.kill()

    def allow(self, may_write: bool) -> None:
        """Answer its question whether what it learned may be written."""
        with suppress(OSError):
            if self._connection is not None:
                self._connection.send(may_write)

    def kill(self) -> None:
        """End it at once; a model folder is whole at every moment."""
        with self._starting:
            if self._process is not None:
                self._process.kill()
                self._process.join(GRACE_SECONDS)

    def _started(self) -> Connection:
        with self._starting:
            if self._connection is None or self._process is None or not self._process.is_alive():
                context = multiprocessing.get_context("spawn")
                self._connection, theirs = context.Pipe()
                self._process = context.Process(target=work, args=(theirs,), name="learner", daemon=True)
                self._process.start()
                theirs.close()  # so that its end is noticed here
            return self._connection
