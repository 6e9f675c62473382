"""Every `--help` ends with an example that works, and options stand under headings."""

import shlex

import pytest
from typer.main import get_command

from repcl.cli import app
from repcl.cli.examples import EXAMPLES


def command_names() -> list[str]:
    found = []
    for name, command in get_command(app).commands.items():
        found.append(name)
        found += [f"{name} {inner}" for inner in getattr(command, "commands", {})]
    return found


@pytest.mark.parametrize("name", command_names())
def test_the_help_of_every_command_ends_with_an_example(repcl, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = repcl(*name.split(), "--help").out
    assert EXAMPLES[name][-1] in shown.rsplit("Example", 1)[1]


@pytest.mark.parametrize("example", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_are_commands_with_options_that_exist(example):
    program, *words = shlex.split(example)
    assert program == "repcl"
    command = get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0) if words[0] in command.commands else "list"]
    command.make_context(command.name, words)


@pytest.mark.parametrize("example", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_fit_a_line_of_a_terminal(example):
    assert len(example) <= 78


@pytest.mark.parametrize("heading", ["Data", "How it is run"])
def test_options_of_bench_stand_under_headings(repcl, heading):
    assert heading in repcl("bench", "--help").out
