"""Several contenders in one process, one slice of work each in turn, so that a slow minute hits all alike."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

SliceEnds = Callable[[str], None]
Contender = Callable[[SliceEnds], None]


class Slice(NamedTuple):
    """A piece of work without a pause."""

    stage: str
    seconds: float


class _Turn:
    """A contender in a thread of its own, which works only while it is its turn."""

    def __init__(self, contender: Contender) -> None:
        self._contender = contender
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._stage = ""
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def take(self) -> Slice:
        """Let it work until it says that a slice ends."""
        start = time.process_time()  # all other threads wait
        self._go.release()
        self._done.acquire()
        found = Slice(self._stage, time.process_time() - start)
        if self._stage == "end":
            self._thread.join()
        if self.error is not None:
            raise self.error
        return found

    def _work(self) -> None:
        torch.set_num_threads(1)
        self._go.acquire()
        try:
            self._contender(self._slice_ends)
        except BaseException as error:  # it is raised again where turns are given
            self.error = error
        self._stage = "end"
        self._done.release()

    def _slice_ends(self, stage: str) -> None:
        self._stage = stage
        self._done.release()
        self._go.acquire()


def in_turns(contenders: Mapping[str, Contender]) -> dict[str, list[Slice]]:
    """The slices of each contender; a contender is a function that says when a slice ends, and of what."""
    turns = {name: _Turn(contender) for name, contender in contenders.items()}
    found: dict[str, list[Slice]] = {name: [] for name in contenders}
    while any(not turn.is_over for turn in turns.values()):
        for name, turn in turns.items():
            if not turn.is_over:
                found[name].append(turn.take())
    return found
