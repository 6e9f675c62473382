"""What README and docs tell people to type works: blocks are run in page order, or their options checked.

A fenced block marked `sh` or `python` is run, page by page in one folder, with the real encoder. One below
the comment `no-run` (hours, a network, a browser) has only the options of its commands checked, and so do
indented blocks.
"""

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.main import get_command

from repcl.cli import app, main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCED = re.compile(r"^(<!-- no-run -->\n)?```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
HEREDOC = re.compile(r"cat > (\S+) <<'END'\n(.*?)\nEND\n", flags=re.DOTALL)


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    is_run: bool
    text: str


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for mark, language, body in FENCED.findall(text):
        yield Block(language, not mark, body)


def pages_that_run() -> list[Path]:
    runnable = ("sh", "python")
    return [page for page in PAGES if any(one.is_run and one.language in runnable for one in blocks(page))]


def commands_not_run() -> list[tuple[str, str]]:
    """Page and command, of everything that starts with `repcl` and is not run."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        unfenced = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
        shown = [one.text for one in blocks(page) if one.language == "sh" and not one.is_run]
        lines = "\n".join([*shown, unfenced]).replace("\\\n", " ")
        typed = re.findall(r"^(?:    )?(repcl [a-z][^\n]*)$", lines, flags=re.MULTILINE)
        found += [(page.name, line) for line in dict.fromkeys(typed)]
    return found


@pytest.fixture
def typed(monkeypatch, capsys) -> Callable[[str], None]:
    """Run a command as typed; it has to end well."""

    def run(line: str) -> None:
        monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        assert not code, f"{line}: {capsys.readouterr().err}"

    return run


def run_shell(text: str, typed: Callable[[str], None]) -> None:
    """Files written by `cat`, and `repcl` commands: nothing else may stand in a block that is run."""
    for name, body in HEREDOC.findall(text):
        Path(name).write_text(f"{body}\n", encoding="utf-8")
    for line in HEREDOC.sub("", text).replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            assert line.startswith("repcl "), f"mark the block with no-run: {line}"
            typed(line)


@pytest.mark.parametrize("page", pages_that_run(), ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore")  # small files are worth notes, and these are shown to people
def test_blocks_of_a_page_run_in_order(page, typed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page):
        if block.is_run and block.language == "sh":
            run_shell(block.text, typed)
        elif block.is_run and block.language == "python":
            capsys.readouterr()
            exec(compile(block.text, page.name, "exec"), names)
            printed = capsys.readouterr().out
            for shown in re.findall(r"^print\(.*\)  # (.+)$", block.text, flags=re.MULTILINE):
                assert shown in printed


@pytest.mark.parametrize(("page", "line"), commands_not_run())
def test_commands_that_are_not_run_have_options_that_exist(page, line):
    command, words = get_command(app), shlex.split(line, comments=True)[1:]
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0) if words[0] in command.commands else "list"]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    asked = {word.strip("[]").split("=")[0] for word in words if word.strip("[]").startswith("--")}
    assert asked <= known | {"--debug", "--help"}
