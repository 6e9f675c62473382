"""Whatever a user's text looks like, it is printed as it is."""

from io import StringIO

import pytest
from rich.console import Console

from repcl.benchmarks import StreamSpec
from repcl.cli.console import make_console, sentence_console
from repcl.cli.progress import GridProgress
from repcl.cli.tables import print_results, print_table
from repcl.experiments.runs.observers import Ended, StageBegins, StepEnds, TaskBegins
from repcl.experiments.runs.pool import Failure
from repcl.experiments.runs.spec import ResolvedRun, RunPlan, RunSpec
from tests.experiments.made_up import class_names, invent_predictions, write_run

ODD = "[/tmp/x] [enforce fail at alloc_cpu.cpp:117] :car: a\\[b]"


def paper(*, is_terminal: bool = False, width: int = 200) -> Console:
    return Console(file=StringIO(), width=width, force_terminal=is_terminal)


def written(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("make", [make_console, sentence_console])
def test_a_console_prints_brackets_and_colons_as_they_are(capsys, make):
    make().print(ODD)
    assert capsys.readouterr().out == f"{ODD}\n"


def test_a_table_shows_brackets_in_title_head_and_cells():
    console = paper()
    print_table(console, f"title {ODD}", [f"head {ODD}"], [[f"cell {ODD}"]])
    for part in ("title", "head", "cell"):
        assert f"{part} {ODD}" in written(console)


def test_the_table_of_results_names_a_benchmark_with_brackets(tmp_path):
    classes, console = class_names(2, 1), paper()
    tested = invent_predictions(classes, round=0, keeps=0.9)
    print_results([write_run(tmp_path, "fea", tested, classes=classes, benchmark="my [data]")], console)
    assert "my [data], percent" in written(console)


def test_the_reason_of_a_failed_run_is_printed_as_it_is():
    console = paper()
    plan = RunPlan("fea", None, "minilm-l6", "cpu", {}, round=0)
    run = ResolvedRun(RunSpec("fea", StreamSpec("my [data].csv")), "my [data]", plan, None, "")
    progress = GridProgress([run.title], console)
    progress.hear(0, Ended(Failure(run, ODD, "")))
    assert f"my [data] fea round 0: failed, {ODD}\n" in written(console)


def test_a_bar_shows_the_title_of_its_run_as_it_is():
    console = paper(is_terminal=True)
    with GridProgress([f"{ODD} fea round 0"], console) as progress:
        progress.hear(0, TaskBegins(0, 2))
        progress.bars.refresh()
    assert f"{ODD} fea round 0" in written(console)


def test_bar_and_times_stay_where_losses_are_long():
    console = paper(is_terminal=True, width=80)
    with GridProgress(["hwu64 repcl round 0"], console) as progress:
        progress.hear(0, StageBegins("initial learning", 5, 100))
        progress.hear(0, StepEnds({f"a long name of a loss {number}": 0.5 for number in range(9)}))
        progress.bars.refresh()
    line = [line for line in written(console).splitlines() if "hwu64 repcl round 0" in line][-1]
    assert "━" in line
    assert "elapsed" in line
    assert "left" in line


def test_an_error_names_a_path_with_a_backslash_before_a_bracket(repcl, tmp_path):
    output = repcl("report", tmp_path / "odd\\[x]")
    assert output.code == 2
    assert "odd\\[x]; " in output.err
