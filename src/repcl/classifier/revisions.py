"""Reading a model folder: its revisions, which one is in use, and the way out of damage."""

from contextlib import suppress
from pathlib import Path

import torch

from repcl.classifier.blobs import BlobFolder
from repcl.classifier.durable import read_whole
from repcl.classifier.knowledge import Knowledge
from repcl.classifier.records import Current, DamagedModel, Revision, read_record
from repcl.classifier.snapshot import unpack
from repcl.errors import MissingData, RepclError

CURRENT, REVISIONS, BLOBS = "current.json", "revisions", "blobs"
LARGEST_RECORD = 1 << 26


class Revisions:
    """The revisions of one classifier in a folder, to be looked at.

    Args:
        path: of the folder; it need not exist yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        """Whether there is a model."""
        return (self.path / CURRENT).exists() or bool(self.numbers())

    def numbers(self) -> list[int]:
        """All revisions, oldest first."""
        files = (self.path / REVISIONS).glob("*.json")
        return sorted(int(file.stem) for file in files if file.stem.isdecimal() and len(file.stem) < 10)

    def current(self) -> int:
        """The number of the revision in use."""
        self._check_exists()
        return self._read_current().revision

    def revision(self, number: int) -> Revision:
        """The record of a revision."""
        self._check_exists()
        if number not in self.numbers():
            known = ", ".join(map(str, self.numbers())) or "none"
            raise MissingData(f"{self.path} has no revision {number}; there are: {known}.")
        where = self._revision_path(number)
        data = read_whole(where, largest=LARGEST_RECORD, where=str(where))
        revision: Revision = read_record(data, Revision, str(where))
        if revision.number != number:
            raise DamagedModel(f"{where} holds revision {revision.number}, not {number}.")
        return revision

    def history(self) -> list[Revision]:
        """All revisions whose records can be read, oldest first."""
        found = []
        for number in self.numbers():
            with suppress(DamagedModel):
                found.append(self.revision(number))
        return found

    def unreadable(self) -> list[int]:
        """Revisions whose records are damaged; no one knows what they hold."""
        return sorted(set(self.numbers()) - {revision.number for revision in self.history()})

    def open(
        self, number: int | None = None, *, device: torch.device | str | None = None
    ) -> tuple[Revision, Knowledge]:
        """A revision (the one in use, if none is named) with what it knows."""
        for _ in range(3):  # a purge may take files away while they are read; then another revision is in use
            chosen = number if number is not None else self.current()
            try:
                revision = self.revision(chosen)
                blobs = BlobFolder(self.path / BLOBS)
                return revision, unpack(revision.contents, blobs, device=device)
            except DamagedModel as error:
                failure = error
                if number is not None or self.current() == chosen:
                    break
        raise DamagedModel(f"{self.path}: {failure} {self._way_out(chosen)}") from failure

    def check(self, number: int) -> Revision:
        """Read every file of a revision and compare it with its hash."""
        revision = self.revision(number)
        blobs = BlobFolder(self.path / BLOBS)
        for blob in revision.contents.blobs():
            blobs.get(blob)
        return revision

    def _check_exists(self) -> None:
        if not self.exists:
            raise MissingData(
                f"There is no model in {self.path}: check the path, or make one with `repcl learn`."
            )

    def _revision_path(self, number: int) -> Path:
        return self.path / REVISIONS / f"{number:06}.json"

    def _read_current(self) -> Current:
        where = self.path / CURRENT
        if not where.exists():  # the very first process was killed a moment before the switch
            sound = [revision.number for revision in self.history() if not revision.is_refused]
            if sound:
                return Current(revision=sound[-1], last=max(self.numbers()))
        try:
            found: Current = read_record(
                read_whole(where, largest=LARGEST_RECORD, where=str(where)), Current, str(where)
            )
        except DamagedModel as error:
            raise DamagedModel(f"{error} {self._way_out(0)}") from error
        return found

    def _way_out(self, damaged: int) -> str:
        """What to do about damage: the newest whole revision, those that the guard accepted first."""
        good = [number for number in reversed(self.numbers()) if number != damaged and self._is_whole(number)]
        accepted = [number for number in good if not self.revision(number).is_refused]
        for number in [*accepted, *good][:1]:
            return (
                f"The last good revision is {number}: `repcl rollback {self.path} {number}` goes back to it."
            )
        return "No other revision is whole: restore the folder from a copy."

    def _is_whole(self, number: int) -> bool:
        try:
            self.check(number)
        except RepclError:
            return False
        return True
