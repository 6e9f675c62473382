"""The model folder: numbered revisions, one of them in use, switched by one atomic rename."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from repcl import __version__
from repcl.classifier.blobs import BlobFolder
from repcl.classifier.durable import PART, explained, settle, write_durably
from repcl.classifier.folder_readme import README, folder_readme
from repcl.classifier.guard import now
from repcl.classifier.knowledge import Knowledge
from repcl.classifier.lock import LOCK, locked
from repcl.classifier.records import Current, DamagedModel, Revision, to_json
from repcl.classifier.revisions import BLOBS, CURRENT, REVISIONS, Revisions
from repcl.classifier.snapshot import pack
from repcl.errors import MissingData, RepclError


class ModelFolder(Revisions):
    """The same, to be changed; everything below but `lock` itself is done under the lock."""

    @contextmanager
    def lock(
        self, purpose: str, *, wait: float = 0.0, tell: Callable[[str], None] | None = None
    ) -> Iterator[None]:
        """Keep other writers out; a folder in which nothing came about is taken away again."""
        self._check_place()
        with ExitStack() as stack:
            with explained(self.path, None):
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self.path, purpose, wait=wait, tell=tell))
            try:
                yield
            finally:
                if not self.exists:
                    self._clear_away()

    def commit(
        self,
        knowledge: Knowledge,
        parameters: Mapping[str, Any],
        *,
        parent: int | None,
        make_current: bool = True,
    ) -> Revision:
        """Write a new revision beside the others and, if wanted, switch to it."""
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
                    updates=tuple(knowledge.updates),
                    contents=pack(knowledge, parameters, blobs),
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
            write_durably(self.path / README, folder_readme(self.history()).encode())

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

    def _next_number(self) -> int:
        last = self._read_current().last if self.exists else 0
        return max([last, *self.numbers()]) + 1

    def _write_revision(self, revision: Revision) -> None:
        path = self._revision_path(revision.number)
        path.parent.mkdir(exist_ok=True)
        write_durably(path, to_json(revision))
        settle(path.parent)
        write_durably(self.path / README, folder_readme(self.history()).encode())

    def _switch(self, number: int) -> None:
        """The one moment at which the folder changes for everybody."""
        last = max([number, *self.numbers()])
        with suppress(DamagedModel):
            last = max(last, self._read_current().last)
        write_durably(self.path / CURRENT, to_json(Current(revision=number, last=last)))
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

    def _check_place(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise MissingData(f"{self.path} is a file: give the path of a model folder, or of a new one.")
        ours = {CURRENT, REVISIONS, BLOBS, README, LOCK}
        strangers = [entry.name for entry in self.path.glob("*") if entry.name not in ours]
        if strangers and not self.exists:
            raise MissingData(
                f"Expected a model folder or an empty one, found {self.path} with {strangers[0]!r} in it: "
                "choose another path."
            )
