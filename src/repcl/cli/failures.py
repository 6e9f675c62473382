"""What failed: a line each at the end of a command, the traceback in a file until it succeeds."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from repcl.files import open_plain, remove_quietly, write_whole

if TYPE_CHECKING:
    from repcl.experiments.runs.pool import Failure, Job

BEGINNING = b"repcl wrote this, and deletes it when the same command succeeds.\n\n"
"""How a file begins that says why something failed."""


def list_failures(failures: "Sequence[Failure]", console: Console) -> None:
    """Say what failed and why, and write the tracebacks down."""
    for failure in failures:
        line = f"Failed: {failure.job.title}: {failure.reason}{_keep_details(failure)}"
        console.print(line, style="red", highlight=False, soft_wrap=True)


def end_with(failures: "Sequence[Failure]") -> None:
    """The exit code: 2 if the user caused all that failed, else 1."""
    if failures:
        raise typer.Exit(2 if all(failure.is_user_error for failure in failures) else 1)


def forget_failures(outcomes: "Iterable[tuple[Job, object]]") -> None:
    """Delete what an earlier failure left of those that have succeeded now."""
    from repcl.experiments.runs.pool import Failure

    for job, outcome in outcomes:
        if not isinstance(outcome, Failure) and _is_ours(job.error_log):
            remove_quietly(job.error_log)


def _is_ours(log: Path) -> bool:
    """Whether a file is what is kept of a failure: a user's own of that name is not."""
    try:
        with open_plain(log) as file:
            return file.read(len(BEGINNING)) == BEGINNING
    except OSError:
        return False


def _keep_details(failure: "Failure") -> str:
    log = failure.job.error_log
    if os.path.lexists(log) and not _is_ours(log):
        return ""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)  # what fails at once has made no folder
        details = failure.details.encode("utf-8", "backslashreplace")
        write_whole(log, BEGINNING + details, durable=False)
    except OSError:  # as it may have failed because nothing can be written there
        return ""
    return f" (see {log})"
