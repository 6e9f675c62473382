"""What failed: a line each at the end of a command, the traceback in a file until it succeeds."""

from collections.abc import Iterable, Sequence

import typer
from rich.console import Console

from repcl.experiments.failure import Failure, Request


def list_failures(failures: Sequence[Failure], console: Console) -> None:
    """Say what failed and why, and write the tracebacks down."""
    for failure in failures:
        line = f"Failed: {failure.request.title}: {failure.reason}{_keep_details(failure)}"
        console.print(line, style="red", highlight=False, soft_wrap=True)


def end_with(failures: Sequence[Failure]) -> None:
    """The exit code: 2 if the user can mend all that failed, else 1."""
    if failures:
        raise typer.Exit(2 if all(failure.is_users_to_mend for failure in failures) else 1)


def forget_failures(outcomes: Iterable[tuple[Request, object]]) -> None:
    """Delete what an earlier failure left of those that have succeeded now."""
    for request, outcome in outcomes:
        if not isinstance(outcome, Failure):
            request.error_log.unlink(missing_ok=True)


def _keep_details(failure: Failure) -> str:
    log = failure.request.error_log
    try:
        log.parent.mkdir(parents=True, exist_ok=True)  # what fails at once has made no folder
        log.write_text(failure.details, encoding="utf-8")
    except OSError:  # as it may have failed because nothing can be written there
        return ""
    return f" (see {log})"
