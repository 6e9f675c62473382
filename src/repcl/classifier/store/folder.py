"""`ModelFolder`: numbered revisions of a classifier, one of them in use, switched by one atomic rename."""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeVar

from repcl import __version__
from repcl.classifier.store.collected import COLLECTED, SERVICE, collected_count
from repcl.classifier.store.files import (
    LOCK,
    BlobFolder,
    Blobs,
    explained,
    is_full,
    is_named_by_its_bytes,
    is_own_lock,
    locked,
    read_whole,
)
from repcl.classifier.store.records import (
    BLOB_NAME,
    LARGEST_FILE,
    LARGEST_GAP,
    LARGEST_NUMBER,
    MEGABYTE,
    Contents,
    Current,
    DamagedModel,
    Export,
    Revision,
    Update,
    now,
    read_record,
    to_json,
)
from repcl.errors import MissingData, RepclError
from repcl.files import (
    UNFINISHED,
    is_plain,
    open_plain,
    remove_quietly,
    reuse_space,
    settle,
    shown,
    write_whole,
)

CURRENT, REVISIONS, BLOBS, README = "current.json", "revisions", "blobs", "README.md"
EXPORT, GRAPH = "export.json", ".onnx"
LARGEST_RECORD = 32 * MEGABYTE
ATTEMPTS = 3
SHOWN = 20

_BLOB = BLOB_NAME.strip("^$")
_REVISION = r"[0-9]{6}\.json"
LEFTOVERS = {
    "": re.compile(rf"{UNFINISHED}({re.escape(CURRENT)}|{re.escape(EXPORT)}|{re.escape(README)})"),
    REVISIONS: re.compile(UNFINISHED + _REVISION),
    BLOBS: re.compile(UNFINISHED + _BLOB),
}
"""What files that were never finished are called, folder by folder."""

Read = TypeVar("Read")


class Kept(NamedTuple):
    """How many of the newest revisions are kept; None for all."""

    newest: int | None


class ModelFolder:
    """The folder that a classifier lives in; it knows records and files, but not what tensors mean.

    Reading needs no lock. Everything that writes is done while `lock` is held. Nothing is changed or deleted
    that was not written here, and no link inside the folder is followed.

    Args:
        path: of the folder; it need not exist yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    # ---- reading --------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether there is a model."""
        return self._found(CURRENT) is not None or bool(self.numbers())

    def numbers(self) -> list[int]:
        """All revisions, oldest first."""
        return sorted(int(name[:6]) for name in self._names(REVISIONS) if re.fullmatch(_REVISION, name))

    def current(self) -> int:
        """The number of the revision in use."""
        self._check_exists()
        return self._read_current().revision

    def revision(self, number: int) -> Revision:
        """The record of a revision."""
        self._check_exists()
        known = self.numbers()
        if number not in known:
            listed = ", ".join(map(str, known[-SHOWN:])) or "none"
            raise MissingData(f"{shown(self.path)} has no revision {number}; there are: {listed}.")
        return self._read_revision(number)

    def in_use(self) -> Revision:
        """The record of the revision in use, also while another process switches and purges."""
        return self.open(lambda *_: None)[0]

    def history(self) -> list[Revision]:
        """All revisions whose records can be read, oldest first."""
        found = []
        for number in self.numbers():
            with suppress(DamagedModel):
                found.append(self._read_revision(number))
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
            except MissingData as error:  # purged since it was said to be in use
                if number is not None or self.current() == chosen:
                    raise
                failure: RepclError = error
            except DamagedModel as error:
                failure = error
                if number is not None or self.current() == chosen:
                    break
        raise DamagedModel(f"{shown(self.path)}: {failure} {self._way_out(chosen)}") from failure

    def export(self) -> Export | None:
        """The record of the export; None where there is none."""
        if self._found(EXPORT) is None:
            return None
        found: Export = read_record(self._read(EXPORT), Export, shown(self.path / EXPORT))
        return found

    def check(self, number: int) -> Revision:
        """Read every file of a revision and compare it with its hash."""
        revision = self.revision(number)
        blobs = BlobFolder(self.path / BLOBS)
        for blob in dict.fromkeys(revision.contents.blobs()):
            blobs.check(blob)
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
        is_new = self._found("") is None
        with ExitStack() as stack:
            with explained(self.path, None):
                stack.enter_context(locked(self.path, purpose, wait=wait, tell=tell))
            try:
                yield
            finally:
                if not self.exists:
                    self._clear_away(with_folder=is_new)

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
                blobs.publish()
                self._write_revision(revision)
            except BaseException:
                self._take_back(number, blobs)
                raise
            if make_current or in_use is None:
                self._switch(number)
                with suppress(OSError):
                    self.sweep()  # what only the revision in use needs
        with suppress(OSError, RepclError):  # the revision is there, whatever becomes of old ones
            if outdated := self._outdated():
                self.purge(outdated)
        return revision

    def write_export(self, write: Callable[[Blobs], Export]) -> Export:
        """Put an export beside the revisions, in place of an older one.

        Args:
            write: puts the graph into a file and says what it is.
        """
        blobs = BlobFolder(self.path / BLOBS)
        with explained(self.path, self.current()):
            self.sweep()
            try:
                export = write(blobs)
                blobs.publish()
                write_whole(self.path / EXPORT, to_json(export), durable=True)
            except BaseException:
                with suppress(OSError):
                    blobs.take_back()
                raise
            with suppress(OSError):
                settle(self.path)
                self.sweep()  # the older one
        return export

    def rollback(self, number: int) -> Revision:
        """Use another revision; its files are checked first. Works on a full disk."""
        revision = self.check(number)
        with explained(self.path, None):
            self._switch(number)
        return revision

    def refused(self) -> Revision:
        """The newest update of the revision in use that the guard refused and that waits for a decision."""
        current = self.current()
        waiting = [one for one in self.history() if one.is_refused and one.parent == current]
        if not waiting:
            raise MissingData(
                f"No refused update of revision {current} waits in {shown(self.path)}: `repcl history` shows "
                "its revisions, `repcl rollback` uses another one."
            )
        return waiting[-1]

    def accept(self) -> Revision:
        """Use the update that the guard refused."""
        return self.rollback(self.refused().number)

    def discard(self) -> Revision:
        """Delete the update that the guard refused."""
        revision = self.refused()
        self.purge([revision.number])
        return revision

    def keep_last(self, count: int | None) -> list[int]:
        """Keep so many of the newest revisions from now on, and the one in use; delete the others.

        Args:
            count: how many; None to keep all.

        Returns:
            The revisions that were deleted now.
        """
        self._check_exists()
        pointer = self._read_current()
        if pointer.keep_last != count:
            with explained(self.path, pointer.revision):
                self._switch(pointer.revision, Kept(count))
        gone = self._outdated()
        self.purge(gone)
        return gone

    def _outdated(self) -> list[int]:
        """Revisions that are older than those to keep and not in use."""
        pointer = self._read_current()
        if pointer.keep_last is None:
            return []
        return [number for number in self.numbers()[: -pointer.keep_last] if number != pointer.revision]

    def purge(self, numbers: Iterable[int]) -> None:
        """Delete revisions that are not in use, and the files that no other revision needs.

        Works on a full disk: what is deleted makes room for what is written.
        """
        self._check_exists()
        pointer, doomed = self._read_current(), sorted(set(numbers))
        if pointer.revision in doomed:
            raise RepclError(f"Revision {pointer.revision} is in use: roll back to another one first.")
        with explained(self.path, pointer.revision):
            if doomed and doomed[-1] > pointer.last:  # its number must not be given again
                self._switch(pointer.revision)
            listed: set[str] = set()
            for number in doomed:
                with suppress(RepclError):
                    contents = self._read_revision(number).contents
                    listed |= {blob.file for blob in [*contents.blobs(), *contents.derived.values()]}
                if is_plain(self._revision_path(number)):
                    os.unlink(self._revision_path(number))
            settle(self.path / REVISIONS)
            self.sweep(listed)
            self.refresh_readme()

    def sweep(self, listed: Collection[str] = ()) -> None:
        """Remove what was written here and no revision names: leftovers of a process that was killed.

        Args:
            listed: names of files in `blobs` that a deleted revision had.
        """
        for folder, pattern in LEFTOVERS.items():
            for name in self._names(folder):
                if pattern.fullmatch(name) and is_plain(self.path / folder / name):
                    os.unlink(self.path / folder / name)
        revisions = self.history()
        if len(revisions) < len(self.numbers()):
            return  # a damaged record may name any of the files
        needed = {blob.file for revision in revisions for blob in revision.contents.blobs()}
        in_use = self._read_current().revision if self.exists else 0
        derived = {one.number: {blob.file for blob in one.contents.derived.values()} for one in revisions}
        needed |= derived.get(in_use, set()) | self._exported(revisions, in_use)
        listed = {*listed, *(name for names in derived.values() for name in names)}
        # how many bytes are hashed at most: a stranger's folder may hold more than anyone can read
        unread = LARGEST_FILE
        for name in self._names(BLOBS):
            if name not in needed and self._is_own_blob(name, listed, unread):
                unread -= os.lstat(self.path / BLOBS / name).st_size
                os.unlink(self.path / BLOBS / name)

    def _exported(self, revisions: Sequence[Revision], in_use: int) -> set[str]:
        """The files of the export; it is removed where it belongs to no revision that is left.

        What it solved again goes, as everything derived, when another revision is in use.
        """
        try:
            export = self.export()
        except DamagedModel:  # it may name any graph
            return {name for name in self._names(BLOBS) if name.endswith(GRAPH)}
        if export is None:
            return set()
        if not any(export.fits(revision.contents) for revision in revisions):
            os.unlink(self.path / EXPORT)  # what was purged could be found out from it
            return set()
        solved = (export.solved_from(one.contents) for one in revisions if one.number == in_use)
        return {
            blob.file for blobs in (export.files, *(found.values() for found in solved)) for blob in blobs
        }

    def refresh_readme(self) -> None:
        """Write the README if there is room: none at all is better than one that is out of date."""
        try:
            self._write_readme()
        except OSError:
            if self._is_own_readme():
                remove_quietly(self.path / README)
            with suppress(OSError):
                self._write_readme()

    # ---- inside: what is there ------------------------------------------------------------------

    def _found(self, name: str) -> os.stat_result | None:
        """What is at a name in the folder, itself and not what it leads to; None for nothing."""
        try:
            return os.lstat(self.path / name) if name else os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise MissingData(f"{shown(self.path)} cannot be opened ({reason}): check the path.") from error

    def _names(self, folder: str = "") -> list[str]:
        """What is in the folder or in one of its own; a link is not followed."""
        found = self._found(folder)
        if found is None:
            return []
        if not stat.S_ISDIR(found.st_mode):
            raise DamagedModel(
                f"Expected a folder at {shown(self.path / folder)}, found something else (links are not "
                "followed): put the folder itself there."
            )
        try:
            return sorted(os.listdir(self.path / folder))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise MissingData(
                f"{shown(self.path / folder)} cannot be read ({error.strerror}): check its permissions."
            ) from error

    def _check_exists(self) -> None:
        if not self.exists:
            raise MissingData(
                f"There is no model in {shown(self.path)}: check the path, or make one with `repcl learn`."
            )

    def _check_is_ours(self) -> None:
        """Refuse to write where something is that was not written here."""
        found = self._found("")
        if found is not None and not stat.S_ISDIR(found.st_mode):
            raise MissingData(
                f"{shown(self.path)} is a file: give the path of a model folder, or of a new one."
            )
        self._check_plain()
        if self._is_model():
            return
        strangers = [name for name in self._names() if not self._is_leftover(name)]
        if CURRENT in strangers and REVISIONS in strangers:
            self._read_current()  # a model that is damaged all over says so itself
        if strangers:
            raise MissingData(
                f"Expected a model folder or an empty one, found {shown(self.path)} with {strangers[0]!r} in "
                "it: choose another path."
            )

    def _check_plain(self) -> None:
        """Refuse links and pipes in place of what is written."""
        for name in (LOCK, CURRENT, EXPORT):
            found = self._found(name)
            if found is not None and not stat.S_ISREG(found.st_mode):
                raise DamagedModel(
                    f"Expected a plain file at {shown(self.path / name)}, found something else (links are "
                    "not followed): remove it, or put the file itself there."
                )
        for name in (REVISIONS, BLOBS):
            self._names(name)

    def _is_model(self) -> bool:
        """Whether there is a record that was written here; names alone prove nothing."""
        with suppress(DamagedModel):
            read_record(self._read(CURRENT), Current, CURRENT)
            return True
        return bool(self.history())

    def _is_leftover(self, name: str) -> bool:
        """Whether a process that made a new folder and was killed left this."""
        if name == LOCK:
            return is_own_lock(self.path / LOCK)
        if name == README:
            return self._is_own_readme()
        if name in (REVISIONS, BLOBS):
            return is_own_lock(self.path / LOCK) and all(
                LEFTOVERS[name].fullmatch(inner)
                or (name == BLOBS and self._is_own_blob(inner))
                or self._found(f"{name}/{inner}") is None  # its process lives, and has just renamed it
                for inner in self._names(name)
            )
        return LEFTOVERS[""].fullmatch(name) is not None

    def _is_own_blob(self, name: str, listed: Collection[str] = (), largest: int = LARGEST_FILE) -> bool:
        """Whether a file in `blobs` was written here: a record names it, or its bytes do."""
        path = self.path / BLOBS / name
        return (name in listed and is_plain(path)) or is_named_by_its_bytes(path, largest=largest)

    def _is_own_readme(self) -> bool:
        """Whether the README is as it was written here, so that no word of a user is lost with it."""
        try:
            with open_plain(self.path / README) as file:
                text = file.read(LARGEST_RECORD).decode()
        except (OSError, ValueError):
            return False
        body, mark, _ = text.rpartition(MARK)
        if mark:
            return text == _sealed(body)
        head, tail = TEMPLATE.split("{rows}")  # the first folders have no mark, nor hashes
        ends = tuple(
            tail.format(held_out=FIRST_HELD_OUT, hashes=hashes, collected="") for hashes in (HASHES, "")
        )
        return text.startswith(head) and text.endswith(ends)

    # ---- inside: records ------------------------------------------------------------------------

    def _revision_path(self, number: int) -> Path:
        return self.path / REVISIONS / f"{number:06}.json"

    def _read(self, name: str) -> bytes:
        return read_whole(self.path / name, largest=LARGEST_RECORD, where=shown(self.path / name))

    def _read_revision(self, number: int) -> Revision:
        name = f"{REVISIONS}/{number:06}.json"
        where = shown(self.path / name)
        revision: Revision = read_record(self._read(name), Revision, where)
        if revision.number != number:
            raise DamagedModel(f"{where} holds revision {revision.number}, not {number}.")
        return revision

    def _read_current(self) -> Current:
        where = shown(self.path / CURRENT)
        if self._found(CURRENT) is None:  # the very first process was killed a moment before the switch
            sound = [revision.number for revision in self.history() if not revision.is_refused]
            if sound:
                return Current(revision=sound[-1], last=max(self.numbers()))
        try:
            found: Current = read_record(self._read(CURRENT), Current, where)
            highest = max([found.revision, *self.numbers()])
            if found.last > highest + LARGEST_GAP:
                raise DamagedModel(
                    f"{where} is not what repcl writes: it counts to {found.last}, revisions to {highest}."
                )
        except DamagedModel as error:
            raise DamagedModel(f"{error} {self._way_out(0)}") from error
        return found

    def _way_out(self, damaged: int) -> str:
        """What to do about damage: the newest whole revision, those that the guard accepted first."""
        good = [number for number in reversed(self.numbers()) if number != damaged and self._is_whole(number)]
        accepted = [number for number in good if not self._read_revision(number).is_refused]
        for number in [*accepted, *good][:1]:
            return (
                f"The last good revision is {number}: `repcl rollback {shown(self.path)} {number}` goes back "
                "to it."
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
        number = max([last, *self.numbers()]) + 1
        if number > LARGEST_NUMBER:
            raise RepclError(
                f"Expected revisions up to {LARGEST_NUMBER}, found that {shown(self.path)} has used them up: "
                "save to a new folder."
            )
        return number

    # ---- inside: writing ------------------------------------------------------------------------

    def _write_revision(self, revision: Revision) -> None:
        path = self._revision_path(revision.number)
        with suppress(FileExistsError):
            os.mkdir(path.parent)
        write_whole(path, to_json(revision), durable=True)
        settle(path.parent)
        self._write_readme()

    def _take_back(self, number: int, blobs: BlobFolder) -> None:
        """Remove a revision that could not be finished; its files stay where its record cannot be removed."""
        path = self._revision_path(number)
        with suppress(OSError):
            if os.path.lexists(path):
                os.unlink(path)
                settle(path.parent)
            blobs.take_back()

    def _write_readme(self) -> None:
        """Say which texts the folder holds, unless there is a README that someone else wrote."""
        if self._found(README) is not None and not self._is_own_readme():
            return
        rows = "\n".join(_readme_row(revision) for revision in self.history())
        text = TEMPLATE.format(
            rows=rows, held_out=HELD_OUT, hashes=HASHES, collected=_collected_line(self.path)
        )
        write_whole(self.path / README, _sealed(text), durable=True)

    def _switch(self, number: int, kept: "Kept | None" = None) -> None:
        """The one moment at which the folder changes for everybody.

        Args:
            number: the revision to use.
            kept: how many revisions to keep from now on; as before if not given.
        """
        last, keep_last = max([number, *self.numbers()]), None
        with suppress(DamagedModel):
            pointer = self._read_current()
            last, keep_last = max(last, pointer.last), pointer.keep_last
        data = to_json(Current(revision=number, last=last, keep_last=kept.newest if kept else keep_last))
        try:
            write_whole(self.path / CURRENT, data, durable=True)
        except OSError as error:
            if not is_full(error) or not self._is_own_readme():
                raise
            reuse_space(self.path / README, self.path / CURRENT, data)  # it can be written again, later
            self.refresh_readme()
        with suppress(OSError):  # everybody sees the change by now: to say that it failed would be wrong
            settle(self.path)

    def _clear_away(self, *, with_folder: bool) -> None:
        """Remove what is left of a model that was never made."""
        with suppress(OSError, RepclError):
            self.sweep()
            if self._is_own_readme():
                os.unlink(self.path / README)
            for name in (BLOBS, REVISIONS):
                if self._found(name) is not None:
                    os.rmdir(self.path / name)
            if is_own_lock(self.path / LOCK):
                os.unlink(self.path / LOCK)
            if with_folder:
                os.rmdir(self.path)


HASHES = """\
- Of every text that was learned there is a hash, made with a key that the revision holds, unless
  `memory_per_class` and `holdout_per_class` are 0. No text can be read from it, but who has a text and this
  folder can find out whether it was learned.
"""

COLLECTION = f"""\
- *Collected texts*: {{count}} that a service was asked about and was not sure of, kept word for word in
  `{SERVICE}/{COLLECTED}` because it was started with `--collect`. The page's Review and
  `POST /v1/unknown/erase` erase them.
"""

HELD_OUT = """\
- *Held-out texts* are kept word for word to measure whether an update harms old classes, and to calibrate
  confidence. Methods that can leave a text out by arithmetic (`instant`, `ncm` and `lda`, as long as they
  keep embeddings) learn from these texts too; other methods never learn from them.
"""

FIRST_HELD_OUT = """\
- *Held-out texts* were given for learning but are never learned from; they are kept word for word to measure
  whether an update harms old classes, and to calibrate confidence.
"""
"""What the READMEs without a mark say instead."""

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
{held_out}\
- Both are in `blobs/*.jsonl`, with their labels. Names of classes are in `revisions/*.json`.
{collected}\
{hashes}\
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


MARK = "\n<!-- written by repcl; sha256 of the text above: "
"""Begins the last line of the README, by which it is known again."""


def _sealed(text: str) -> str:
    """A text with its hash: where both no longer agree, someone else wrote in it."""
    return f"{text}{MARK}{sha256(text.encode()).hexdigest()} -->\n"


def _collected_line(folder: Path) -> str:
    """How many texts a service has collected, where one has."""
    count = collected_count(folder)
    if count == 0:
        return ""
    return COLLECTION.format(count="an unknown number" if count is None else count)


def _readme_row(revision: Revision) -> str:
    held = revision.contents
    return (
        f"| {revision.number} | {revision.when} | {len(held.classes)} "
        f"| {held.memory.count} | {held.held_out.count} |"
    )
