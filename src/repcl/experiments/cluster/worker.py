"""One run on a Ray worker: in the driver's output folder if it is seen there, else in a folder of its own."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from repcl.experiments.checkpoint import remove_checkpoints
from repcl.experiments.failure import Failure
from repcl.experiments.grid import perform
from repcl.experiments.keeping import remove_kept
from repcl.experiments.result import RESULT, Result
from repcl.experiments.run import run_folder
from repcl.experiments.run_request import RunRequest

from repcl.data import TaskStream
from repcl.experiments.cluster.mail import Postbox

MARK = ".driver"


@dataclass(frozen=True)
class Driver:
    """What workers know about the process that asked for their runs.

    Attributes:
        mark: what it wrote into its output folder.
        working_folder: where it was started; relative paths begin there.
    """

    mark: str
    working_folder: str

    def shares(self, folder: Path) -> bool:
        """Whether a folder here is the driver's, and not another one of the same name."""
        try:
            return (folder / MARK).read_text(encoding="utf-8") == self.mark
        except OSError:
            return False


@dataclass(frozen=True)
class FinishedRun:
    """What a task came to, and the files of its folder where the driver cannot see them."""

    outcome: Result | Failure
    files: Mapping[str, bytes]


def perform_on_worker(
    number: int, request: RunRequest, stream: TaskStream, mailbox: Any, driver: Driver
) -> FinishedRun:
    """Make one run here; what happens is told through the mailbox."""
    with suppress(OSError):  # on a machine without that folder, relative paths lead nowhere
        os.chdir(driver.working_folder)
    tell = Postbox(mailbox, number).tell
    if driver.shares(Path(request.options["out"])):
        return FinishedRun(perform(request, tell, stream), {})
    with TemporaryDirectory(prefix="repcl-") as place:
        moved = replace(request, options={**request.options, "out": Path(place)})
        outcome = perform(moved, tell, stream)
        if isinstance(outcome, Failure):
            return FinishedRun(outcome, {})
        return FinishedRun(outcome, _read_files(run_folder(place, stream, request.plan(stream))))


def write_back(files: Mapping[str, bytes], folder: Path) -> None:
    """Lay the files of a run down as if it had been made here; its result appears last and whole."""
    if not files:
        return
    remove_kept(folder)
    for name in sorted(files, key=lambda name: name == RESULT):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_bytes(files[name])
        os.replace(part, path)
    remove_checkpoints(folder)


def _read_files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
