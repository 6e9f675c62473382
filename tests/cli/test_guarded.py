"""Whatever happens in a command ends in one sentence and an exit code."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import typer

from repcl.cli.guarded import run_guarded
from repcl.errors import InvalidData

GUARDED = "from repcl.cli.main import app; from repcl.cli.guarded import run_guarded; run_guarded(app)"
BUFFERED = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
NO_TRACE = ("Traceback", "Exception ignored", 'File "')


class Panic(BaseException):
    """As a library in Rust raises it."""


def app_that(raises: BaseException | None):
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    def command(word: str = "") -> None:
        if raises is not None:
            raise raises

    return app


def run(app, capsys, *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as end:
        run_guarded(app, words)
    error = capsys.readouterr().err
    assert not any(part in error for part in NO_TRACE)
    code = end.value.code
    return (0 if code is None else int(code)), error.strip()


FULL = OSError(errno.ENOSPC, "No space left on device", "groups.csv")


@pytest.mark.parametrize(
    ("raised", "code", "sentence"),
    [
        (InvalidData("A row is bad: mend it."), 2, "Error: A row is bad: mend it."),
        (KeyboardInterrupt(), 130, "Stopped. What was finished before is kept."),
        (FULL, 2, "groups.csv could not be written, for the disk is full"),
        (OSError(errno.EDQUOT, "Quota"), 2, "A file could not be written, for the disk is full"),
        (
            PermissionError(errno.EACCES, "Permission denied", "x"),
            2,
            "x could not be read or written (Permission",
        ),
        (OSError("nothing known"), 2, "A file could not be read or written (nothing known)"),
        (OSError(), 2, "(OSError)"),
        (MemoryError(), 2, "There is not enough memory"),
        (torch.OutOfMemoryError("CUDA out of memory"), 2, "There is not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 4 TB"), 2, "not enough memory"),
        (BrokenPipeError(), 1, ""),
        (KeyError("x"), 70, "did not foresee (KeyError: 'x'): please report it at https://"),
        (RecursionError("too deep"), 70, "did not foresee (RecursionError: too deep)"),
        (RuntimeError("\x1b[2J\n" * 1_000_000), 70, "RuntimeError: \\x1b[2J\\n"),
        (UnicodeEncodeError("ascii", "\ud800", 0, 1, "why"), 70, "UnicodeEncodeError"),
        (Panic("called unwrap on None"), 70, "did not foresee (Panic: called unwrap on None)"),
        (AssertionError(), 70, "AssertionError"),
        (typer.Exit(3), 3, ""),
        (None, 0, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_an_error_becomes_one_sentence_with_its_exit_code(capsys, raised, code, sentence):
    found, said = run(app_that(raised), capsys)
    assert found == code
    assert sentence in said
    assert len(said.splitlines()) == (1 if sentence else 0)
    assert len(said) < 2100


def test_a_report_of_the_unforeseen_says_what_to_send(capsys):
    said = run(app_that(ZeroDivisionError("x")), capsys)[1]
    assert said.endswith("with what you typed and what the same command says with --debug.")


@pytest.mark.parametrize("words", [["--debug"], ["--word", "a", "--debug"]])
def test_debug_shows_the_trace_and_the_same_exit_code(capsys, words):
    with pytest.raises(SystemExit) as end:
        run_guarded(app_that(ZeroDivisionError("x")), words)
    error = capsys.readouterr().err
    assert end.value.code == 70
    assert "Traceback" in error
    assert "did not foresee" in error


def test_debug_can_be_asked_for_by_the_environment(capsys, monkeypatch):
    monkeypatch.setenv("REPCL_DEBUG", "1")
    with pytest.raises(SystemExit):
        run_guarded(app_that(InvalidData("x")), [])
    assert "Traceback" in capsys.readouterr().err


def test_after_two_dashes_debug_is_a_word_like_others(capsys):
    seen = []
    run_guarded(seen.append, ["predict", "--", "--debug"])
    assert seen == [["predict", "--", "--debug"]]


def test_a_wrong_option_is_said_by_the_command_line_itself(capsys):
    with pytest.raises(SystemExit) as end:
        run_guarded(app_that(None), ["--nonsense"])
    assert end.value.code == 2
    assert "--nonsense" in capsys.readouterr().err


# ---- in a process of its own --------------------------------------------------------------------


def repcl(*words: object, **options) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, **options.pop("env", {})}
    ended = subprocess.run(
        [sys.executable, "-c", GUARDED, *map(str, words)],
        stderr=subprocess.PIPE,
        env=environment,
        timeout=100,
        **options,
    )
    assert not any(part.encode() in ended.stderr for part in NO_TRACE), ended.stderr.decode()
    return ended


def test_a_full_disk_behind_the_output_is_said():
    with Path("/dev/full").open("w") as full:
        ended = repcl("list", "methods", stdout=full)
    assert ended.returncode == 2
    assert b"the disk is full" in ended.stderr


def test_a_closed_pipe_ends_quietly():
    reading, writing = os.pipe()
    os.close(reading)
    ended = repcl("list", "methods", stdout=writing)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_a_closed_output_ends_without_traceback():
    ended = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -c "{GUARDED}" list methods >&-'], stderr=subprocess.PIPE
    )
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_an_output_of_any_encoding_takes_every_table(encoding):
    ended = repcl("list", "methods", stdout=subprocess.PIPE, env={"PYTHONIOENCODING": encoding})
    assert ended.returncode == 0, ended.stderr
    assert "repcl" in ended.stdout.decode(encoding)


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_an_error_about_a_path_that_is_not_utf8_is_said(tmp_path, encoding):
    path = os.fsencode(tmp_path) + b"/n\xffwhere"
    ended = subprocess.run(
        [sys.executable, "-c", GUARDED, "history", path],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert ended.returncode == 2
    assert b"n\\udcffwhere" in ended.stderr


def test_control_c_ends_with_130_and_a_sentence():
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error.decode().strip() == "Stopped. What was finished before is kept."


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("bench", "Finished runs and tasks are kept, and the same command resumes."),
        ("learn", "The model was changed as a whole or not at all; `repcl history` shows which."),
        ("classes merge", "The model was changed as a whole or not at all; `repcl history` shows which."),
        (
            "forget --purge",
            "The model was changed as a whole or not at all; `repcl history` shows which. The same command "
            "again deletes what it has not deleted yet.",
        ),
        ("evaluate", "What was finished before is kept."),
        ("classes list", "What was finished before is kept."),
    ],
)
def test_control_c_says_what_the_command_leaves(capsys, command, kept):
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit):
        run_guarded(stop, [*command.split(), "more"])
    assert capsys.readouterr().err.strip() == f"Stopped. {kept}"


WAITING = """
import signal, sys, typer
signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background are started without it
from repcl.cli.guarded import run_guarded
app = typer.Typer()
@app.command()
def wait():
    print("ready", flush=True)
    sys.stdin.read()
run_guarded(app, [])
"""

PRINTING = """
import typer
from repcl.cli.guarded import run_guarded
app = typer.Typer()
@app.command()
def say():
    print("a word")
run_guarded(app, [])
"""


def test_what_is_still_to_be_written_at_the_end_may_fail_too():
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", PRINTING], stdout=full, stderr=subprocess.PIPE, text=True, env=BUFFERED
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("Error: A file could not be written, for the disk is full")
    assert len(ended.stderr.splitlines()) == 1


ENDING = """
import sys
from repcl.cli.guarded import run_guarded
def app(words):
    print("a word")
    raise SystemExit({code})
run_guarded(app, [])
"""


@pytest.mark.parametrize("code", [0, 3])
def test_what_a_command_that_ends_itself_has_not_written_yet_may_fail_too(code):
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", ENDING.format(code=code)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=BUFFERED,
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("Error: A file could not be written, for the disk is full")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("code", [0, 3])
def test_a_command_that_ends_itself_has_its_own_exit_code(code):
    ended = subprocess.run([sys.executable, "-c", ENDING.format(code=code)], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "a word\n", "")
