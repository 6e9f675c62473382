"""What failed: a line each at the end of a command, the traceback in a file until it succeeds."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from repcl.files import write_whole

if TYPE_CHECKING:
    from repcl.experiments.runs.pool import Failure, Job


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
        if not isinstance(outcome, Failure):
            job.error_log.unlink(missing_ok=True)


def _keep_details(failure: "Failure") -> str:
    log = failure.job.error_log
    try:
        log.parent.mkdir(parents=True, exist_ok=True)  # what fails at once has made no folder
        write_whole(log, failure.details.encode("utf-8", "backslashreplace"), durable=False)
    except OSError:  # as it may have failed because nothing can be written there
        return ""
    return f" (see {log})"
