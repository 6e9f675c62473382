"""`ModelFolder`: numbered revisions of a classifier, one of them in use, switched by one atomic rename."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from repcl import __version__
from repcl.classifier.store.files import LOCK, BlobFolder, Blobs, explained, locked, read_whole
from repcl.classifier.store.records import (
    Contents,
    Current,
    DamagedModel,
    Revision,
    Update,
    now,
    read_record,
    to_json,
)
from repcl.errors import MissingData, RepclError
from repcl.files import PART, settle, write_whole

CURRENT, REVISIONS, BLOBS, README = "current.json", "revisions", "blobs", "README.md"
LARGEST_RECORD = 1 << 26
ATTEMPTS = 3

Read = TypeVar("Read")


class ModelFolder:
    """The folder that a classifier lives in; it knows records and files, but not what tensors mean.

    Reading needs no lock. Everything that writes is done while `lock` is held.

    Args:
        path: of the folder; it need not exist yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    # ---- reading --------------------------------------------------------------------------------

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

    def holding(self, name: str, origins: Sequence[str]) -> list[int]:
        """Revisions that hold a class, under this name or one it had before, and those no one can read."""
        wanted = set(origins)
        found = [
            revision.number
            for revision in self.history()
            if any(
                record.name == name or wanted & set(record.origins) for record in revision.contents.classes
            )
        ]
        return sorted([*found, *self.unreadable()])

    def open(
        self, read: Callable[[Contents, Blobs], Read], number: int | None = None
    ) -> tuple[Revision, Read]:
        """A revision with what a function reads from its files.

        Args:
            read: gets the revision's contents and its files.
            number: the revision in use if not given.
        """
        for _ in range(ATTEMPTS):  # a purge may delete files while they are read; then another one is in use
            chosen = number if number is not None else self.current()
            try:
                revision = self.revision(chosen)
                return revision, read(revision.contents, BlobFolder(self.path / BLOBS))
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

    # ---- writing --------------------------------------------------------------------------------

    @contextmanager
    def lock(
        self, purpose: str, *, wait: float = 0.0, tell: Callable[[str], None] | None = None
    ) -> Iterator[None]:
        """Keep other writers out; a folder in which no model was made is removed again.

        Args:
            purpose: what is done, for those who wait.
            wait: seconds to wait for another process.
            tell: hears once who is waited for.
        """
        self._check_is_ours()
        with ExitStack() as stack:
            with explained(self.path, None):
                stack.enter_context(locked(self.path, purpose, wait=wait, tell=tell))
            try:
                yield
            finally:
                if not self.exists:
                    self._clear_away()

    def commit(
        self,
        write: Callable[[Blobs], Contents],
        updates: Sequence[Update],
        *,
        parent: int | None,
        make_current: bool = True,
    ) -> Revision:
        """Write a new revision beside the others.

        Args:
            write: puts the classifier into files and says which.
            updates: what was done since the parent.
            parent: the revision that the classifier comes from.
            make_current: whether to switch to the new revision; the first one is always used.
        """
        in_use = self.current() if self.exists else None
        blobs = BlobFolder(self.path / BLOBS)
        with explained(self.path, in_use):
            self.sweep()
            number = self._next_number()
            try:
                revision = Revision(
                    number=number,
                    parent=parent,
                    when=now(),
                    version=__version__,
                    updates=tuple(updates),
                    contents=write(blobs),
                )
                blobs.settle()
                self._write_revision(revision)
            except BaseException:
                with suppress(OSError):
                    self._revision_path(number).unlink(missing_ok=True)
                    blobs.take_back()
                raise
            if make_current or in_use is None:
                self._switch(number)
        return revision

    def rollback(self, number: int) -> Revision:
        """Use another revision; its files are checked first."""
        revision = self.check(number)
        with explained(self.path, None):
            self._switch(number)
        return revision

    def purge(self, numbers: Iterable[int]) -> None:
        """Delete revisions that are not in use, and the files that no other revision needs."""
        in_use = self.current()
        with explained(self.path, in_use):
            for number in numbers:
                if number == in_use:
                    raise RepclError(f"Revision {number} is in use: roll back to another one first.")
                self._revision_path(number).unlink(missing_ok=True)
            settle(self.path / REVISIONS)
            self.sweep()
            self._write_readme()

    def sweep(self) -> None:
        """Remove what no revision names: leftovers of a process that was killed."""
        for folder in (self.path, self.path / REVISIONS, self.path / BLOBS):
            for leftover in folder.glob(f"{PART}*"):
                leftover.unlink(missing_ok=True)
        revisions = self.history()
        if len(revisions) < len(self.numbers()):
            return  # a damaged record may name any of the files
        needed = {blob.file for revision in revisions for blob in revision.contents.blobs()}
        for file in (self.path / BLOBS).glob("*"):
            if file.name not in needed:
                file.unlink(missing_ok=True)

    # ---- inside ---------------------------------------------------------------------------------

    def _check_exists(self) -> None:
        if not self.exists:
            raise MissingData(
                f"There is no model in {self.path}: check the path, or make one with `repcl learn`."
            )

    def _check_is_ours(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise MissingData(f"{self.path} is a file: give the path of a model folder, or of a new one.")
        ours = {CURRENT, REVISIONS, BLOBS, README, LOCK}
        strangers = [entry.name for entry in self.path.glob("*") if entry.name not in ours]
        if strangers and not self.exists:
            raise MissingData(
                f"Expected a model folder or an empty one, found {self.path} with {strangers[0]!r} in it: "
                "choose another path."
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

    def _next_number(self) -> int:
        last = self._read_current().last if self.exists else 0
        return max([last, *self.numbers()]) + 1

    def _write_revision(self, revision: Revision) -> None:
        path = self._revision_path(revision.number)
        path.parent.mkdir(exist_ok=True)
        write_whole(path, to_json(revision), durable=True)
        settle(path.parent)
        self._write_readme()

    def _write_readme(self) -> None:
        rows = "\n".join(_readme_row(revision) for revision in self.history())
        write_whole(self.path / README, TEMPLATE.format(rows=rows), durable=True)

    def _switch(self, number: int) -> None:
        """The one moment at which the folder changes for everybody."""
        last = max([number, *self.numbers()])
        with suppress(DamagedModel):
            last = max(last, self._read_current().last)
        write_whole(self.path / CURRENT, to_json(Current(revision=number, last=last)), durable=True)
        settle(self.path)

    def _clear_away(self) -> None:
        with suppress(OSError):
            self.sweep()
            (self.path / README).unlink(missing_ok=True)
            for folder in (self.path / BLOBS, self.path / REVISIONS):
                if folder.exists():
                    folder.rmdir()
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()


TEMPLATE = """\
# A text classifier made by repcl

This folder was written by `repcl`. Open it with `ContinualClassifier.load(...)` or `repcl predict`.
It holds weights (safetensors), JSON and JSONL; nothing in it is executed when it is opened.

## Which texts of users it holds

| revision | made (UTC) | classes | exemplars | held-out texts |
|---|---|---|---|---|
{rows}

- *Exemplars* are training texts, kept word for word so that old classes can be rehearsed when new ones are
  learned.
- *Held-out texts* were given for learning but are never learned from; they are kept word for word to measure
  whether an update harms old classes, and to calibrate confidence.
- Both are in `blobs/*.jsonl`, with their labels. Names of classes are in `revisions/*.json`.
- Trained weights can carry traces of the texts they were trained on; statistics of the frozen learners
  (`instant`, `lda`, `ncm`, `refit`) are computed from them.

Who may read this folder may read these texts. `repcl classes remove MODEL CLASS --purge` removes a class and
every revision that holds it. To hold no text at all, use a method without exemplars (`instant`, `ncm`, `lda`,
`refit`) with `memory_per_class=0` and `holdout_per_class=0`.

## How it is laid out

`current.json` says which revision is in use; `revisions/NNNNNN.json` lists the files of each; files in
`blobs/` are named by the sha256 of their bytes and shared between revisions. Do not edit them; use
`repcl classes`, `repcl rollback` and `repcl history`.
"""


def _readme_row(revision: Revision) -> str:
    held = revision.contents
    return (
        f"| {revision.number} | {revision.when} | {len(held.classes)} "
        f"| {held.memory.count} | {held.held_out.count} |"
    )
