"""Runs the command line: whatever happens ends in one sentence and an exit code, not in a traceback."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress

from rich.text import Text

from repcl.cli.console import sentence_console
from repcl.errors import BadRows, RepclError, printable
from repcl.files import about

USER_ERROR = 2
UNFORESEEN = 70
INTERRUPTED = 130
BROKEN_PIPE = 1
LONGEST_REASON = 300

RESUMES = "Finished runs and tasks are kept, and the same command resumes."
WHOLE = "The model was changed as a whole or not at all; `repcl history` shows which."
PURGE = "--purge"
PURGED = "The same command again deletes what it has not deleted yet."
KEPT = {
    "bench": RESUMES,
    "reproduce": RESUMES,
    "tune": "Finished trials are kept, and the same command resumes.",
    "analyze": "Finished analyses are kept, and the same command resumes.",
    "learn": WHOLE,
    "forget": WHOLE,
    **{f"classes {change}": WHOLE for change in ("rename", "merge", "remove", "describe")},
}
"""What Ctrl-C leaves, by command."""

REPORT_TO = "https://github.com/repcl/repcl/issues"


def run_guarded(app: Callable[[Sequence[str]], object], arguments: Sequence[str] | None = None) -> None:
    """Run an app with what was typed; errors become a sentence, `--debug` or REPCL_DEBUG=1 adds their trace.

    Exit codes: 2 for what the user can fix, 130 after Ctrl-C, 1 if the reader of a pipe has gone,
    70 for a defect of this program.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    words, is_debugging = _without_debug(typed)
    _accept_all_characters()
    try:
        try:
            app(words)
        except SystemExit as end:
            if _was_interrupted(end):
                raise KeyboardInterrupt from end
            _flush()
            raise
        _flush()
    except SystemExit:
        raise
    except BaseException as error:  # all of them: a panic of a library in Rust is no Exception
        if is_debugging:
            traceback.print_exc()
        sentence, code = _sentence(error, words)
        _end(sentence, code, error.shown if isinstance(error, BadRows) else ())


def _without_debug(typed: list[str]) -> tuple[list[str], bool]:
    """What was typed without `--debug`, which may stand anywhere before `--`."""
    end = typed.index("--") if "--" in typed else len(typed)
    words = [word for index, word in enumerate(typed) if word != "--debug" or index > end]
    return words, len(words) < len(typed) or os.environ.get("REPCL_DEBUG", "0") not in ("", "0")


def _accept_all_characters() -> None:
    """Write what an output's encoding lacks with backslashes; failing there would lose all the work."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # a stream may be replaced, closed or None
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _flush() -> None:
    """Let a full disk or a closed pipe be noticed here, not when Python ends."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def _was_interrupted(end: SystemExit) -> bool:
    """Whether Ctrl-C is behind an end that the command line's library has made of it."""
    error: BaseException | None = end if end.code else None
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _sentence(error: BaseException, words: Sequence[str]) -> tuple[str | None, int]:
    """What to say about an error of what was typed, and the exit code."""
    if isinstance(error, BadRows) and error.shown:
        return error.summary, USER_ERROR
    if isinstance(error, RepclError):
        return str(error), USER_ERROR
    if isinstance(error, KeyboardInterrupt):
        return f"Stopped. {_what_is_kept(words)}", INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return None, BROKEN_PIPE
    if isinstance(error, OSError):
        return about(error), USER_ERROR
    if _is_out_of_memory(error):
        return (
            "There is not enough memory for this: give fewer or shorter texts, a smaller encoder, or "
            "fewer runs at a time.",
            USER_ERROR,
        )
    return (
        f"Something happened that repcl did not foresee ({type(error).__name__}: {_beginning(error)}): "
        f"please report it at {REPORT_TO} with what you typed and what the same command says with --debug.",
        UNFORESEEN,
    )


def _what_is_kept(words: Sequence[str]) -> str:
    """What Ctrl-C leaves of a command."""
    command = " ".join(words[:2] if words[:1] == ["classes"] else words[:1])
    kept = KEPT.get(command, "What was finished before is kept.")
    return f"{kept} {PURGED}" if PURGE in words else kept


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, as Python, numpy, pyarrow or torch say it."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)


def _beginning(error: BaseException) -> str:
    text = str(error)
    return printable(text[:LONGEST_REASON]) + "…" * (len(text) > LONGEST_REASON)


def _end(sentence: str | None, code: int, problems: Sequence[str] = ()) -> None:
    """Say a sentence, below it what it consists of, and end; where nothing can be said, end all the same."""
    with suppress(OSError, ValueError):
        if sentence is not None:
            label = "" if code == INTERRUPTED else "Error: "
            console = sentence_console(stderr=True)
            console.print(Text.assemble((label, "bold red"), printable(sentence)))
            for problem in problems:
                console.print(f"  {problem}")
    _drop_outputs_that_fail()
    sys.exit(code)


def _drop_outputs_that_fail() -> None:
    """Point outputs that cannot be written elsewhere, or Python would complain about them at its very end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            with suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
