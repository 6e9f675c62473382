"""The table that a command prints at its end."""

import re
from io import StringIO

import pytest
from rich.console import Console

from repcl.cli.tables import print_results, print_table
from tests.experiments.made_up import class_names, invent_predictions, write_run


def printed(out, *runs: tuple[str, int, int], width: int = 200) -> dict[str, list[str]]:
    """The printed cells by row, of runs given as row, round and number of tasks, all of them right."""
    results = []
    for row, round, tasks in runs:
        classes = class_names(tasks, 1)
        tested = invent_predictions(classes, round=round, keeps=1.0)
        results.append(write_run(out, row, tested, classes=classes, round=round))
    console = Console(file=StringIO(), width=width)
    print_results(results, console)
    lines = [line for line in console.file.getvalue().splitlines() if line[:1] in "│┃"]
    cells = [[cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")] for line in lines]
    return {first: others for first, *others in cells}


HEAD = ["rounds", "T1", "T2", "T3", "accuracy", "forgetting"]


@pytest.mark.parametrize("order", [("fea", "ncm"), ("ncm", "fea")])
def test_methods_with_different_numbers_of_tasks_stand_under_the_right_heads(tmp_path, order):
    tasks = {"fea": 2, "ncm": 3}
    table = printed(tmp_path, *((row, 0, tasks[row]) for row in order))
    assert table["method"] == HEAD
    assert table["fea"] == ["1", "100.0", "100.0", "–", "100.0", "0.0"]
    assert table["ncm"] == ["1", "100.0", "100.0", "100.0", "100.0", "0.0"]


def test_rounds_with_different_numbers_of_tasks_share_a_row(tmp_path):
    table = printed(tmp_path, ("fea", 0, 2), ("fea", 1, 3))
    assert table["method"] == HEAD
    assert table["fea"] == ["2", "100.0", "100.0", "100.0", "100.0 ± 0.0", "0.0 ± 0.0"]


def test_a_narrow_terminal_shows_rounds_accuracy_and_forgetting(tmp_path):
    table = printed(tmp_path, ("repcl@no-xmlm", 0, 10), ("repcl@no-xmlm", 1, 10), width=80)
    assert table["method"] == ["rounds", "accuracy", "forgetting"]
    assert table["repcl@no-xmlm"] == ["2", "100.0 ± 0.0", "0.0 ± 0.0"]


def test_a_report_of_rounds_with_different_numbers_of_tasks_is_written(repcl, tmp_path):
    printed(tmp_path, ("fea", 0, 2), ("fea", 1, 3), ("ncm", 0, 2))
    output = repcl("report", tmp_path)
    assert output.code == 0, output.err


def test_a_narrow_table_breaks_headings_of_numbers_and_leaves_room_for_words():
    console = Console(file=StringIO(), width=50)
    columns = ["revision", "what", "old before", "old after"]
    print_table(console, "desk", columns, [["1", "learned refund and track", "100.0%", "98.5%"]])
    rows = [re.split("[│┃]", line)[1:-1] for line in console.file.getvalue().splitlines() if line[:1] in "│┃"]
    cells = [" ".join(" ".join(lines).split()) for lines in zip(*rows, strict=True)]
    assert cells == [
        "revision 1",
        "what learned refund and track",
        "old before 100.0%",
        "old after 98.5%",
    ]
