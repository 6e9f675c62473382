"""Texts that the model was not sure of, kept beside it for review: bounded, written whole, erasable."""

import logging
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256

from repcl.classifier import ModelFolder
from repcl.classifier.store.collected import COLLECTED, CollectedText, Collection, read_collection
from repcl.classifier.store.files import CannotWrite
from repcl.classifier.store.records import now, to_json
from repcl.data import Example
from repcl.data.examples import SPANS
from repcl.errors import RepclError
from repcl.serving.place import Place

MOST_TEXTS = 1000
MOST_CHARACTERS = 2_000_000
PAUSE_SECONDS = 2.0

log = logging.getLogger("repcl.serving")


class Collector:
    """Keeps the newest texts that the model was not sure of, each once.

    A crash loses what came in during the last seconds; what was erased is gone from the disk at once, or an
    error says that it is not.

    Args:
        place: where they are written.
        folder: whose README counts them.
    """

    def __init__(self, place: Place, folder: ModelFolder) -> None:
        self.place = place
        self.folder = folder
        self.version = 0
        self._texts = {one.id: one for one in read_collection(folder.path).texts}
        self._lock = threading.Lock()
        self._is_written = True
        self._is_counted = not self._texts
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    def start(self) -> None:
        """Write what comes in, every few seconds."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is left."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        self.write()

    def texts(self) -> list[CollectedText]:
        """All collected texts, oldest first."""
        with self._lock:
            return list(self._texts.values())

    def add(self, examples: Iterable[Example]) -> None:
        """Keep examples, and let go of the oldest where there are too many."""
        with self._lock:
            for example in examples:
                one = _collected(example)
                if one.id not in self._texts:
                    self._texts[one.id] = one
                    self._has_changed()
            size = sum(len(one.text) for one in self._texts.values())
            while len(self._texts) > MOST_TEXTS or size > MOST_CHARACTERS:
                size -= len(self._texts.pop(next(iter(self._texts))).text)

    def erase(self, ids: Sequence[str] | None) -> int:
        """Erase texts, all of them if None; how many there were.

        Raises:
            CannotWrite: they are erased here, but not on the disk yet.
        """
        with self._lock:
            doomed = list(self._texts) if ids is None else [one for one in set(ids) if one in self._texts]
            for one in doomed:
                del self._texts[one]
            if doomed:
                self._has_changed()
        try:
            self._write()
        except OSError as error:
            raise CannotWrite(
                f"The erased texts are still on the disk, which cannot be written ({error.strerror}). The "
                "service tries again every few seconds: see to the disk before you stop it."
            ) from error
        return len(doomed)

    def write(self) -> None:
        """Write what has changed, as far as that is possible now."""
        try:
            self._write()
        except OSError as error:
            log.error("collected texts could not be written: %s", error.strerror)

    def _write(self) -> None:
        """Write what has changed, and let the README count it where nobody holds the folder's lock."""
        with self._lock:
            if not self._is_written:
                self.place.write(COLLECTED, to_json(Collection(texts=tuple(self._texts.values()))))
                self._is_written = True
            if self._is_counted:
                return
        # a job that holds the lock writes the README itself; else the next turn does
        with suppress(RepclError, OSError), self.folder.lock("counting collected texts"):
            self.folder.refresh_readme()
            self._is_counted = True

    def _has_changed(self) -> None:
        self.version += 1
        self._is_written = self._is_counted = False

    def _run(self) -> None:
        while not self._ending.wait(PAUSE_SECONDS):
            self.write()


def _collected(example: Example) -> CollectedText:
    spans = {name: getattr(example, name) for name in SPANS}
    pairs = {name: (span.start, span.end) for name, span in spans.items() if span is not None}
    key = sha256(repr((example.text, sorted(pairs.items()))).encode("utf-8", "backslashreplace")).hexdigest()
    return CollectedText(id=key[:16], when=now(), text=example.text, **pairs)
