"""The top of a report: the verdict in a sentence, when and how the runs were made."""

import json

import pytest

from repcl.evaluation import TestedExample
from repcl.experiments.reports.grouping import load_runs
from repcl.experiments.reports.html import Folded, Listing
from repcl.experiments.reports.verdict import report_header, verdict
from repcl.experiments.runs.result import Seconds
from tests.experiments.made_up import only, two_tasks, write_grid, write_run

CLASSES = [["old"], ["new"]]
ALL, HALF = [[True, True], [True, True]], [[True, True], [True, False]]


def test_the_best_method_is_named_with_accuracy_forgetting_and_the_next(tmp_path):
    write_run(tmp_path, "fea", two_tasks(*ALL), classes=CLASSES)
    write_run(tmp_path, "aca", two_tasks(*HALF), classes=CLASSES)
    assert verdict(only(tmp_path)) == (
        "On demo, fea ends best: 100.0% accuracy after the last task, with 0.0 points forgotten; "
        "aca follows with 75.0%. They share fewer than two rounds, so the difference may be chance."
    )


def test_methods_that_read_the_same_are_level(tmp_path):
    for row in ("fea", "aca", "emar"):
        write_run(tmp_path, row, two_tasks(*ALL), classes=CLASSES)
    assert verdict(only(tmp_path)) == ("On demo, emar, fea and aca are level at 100.0% after the last task.")


def test_the_upper_bound_does_not_win_but_is_told(tmp_path):
    write_run(tmp_path, "joint", two_tasks(*ALL), classes=CLASSES)
    write_run(tmp_path, "fea", two_tasks(*HALF), classes=CLASSES)
    told = verdict(only(tmp_path))
    assert told.startswith("On demo, fea ends best: 75.0")
    assert told.endswith("For comparison, joint, which keeps all training texts, reaches 100.0%.")


def test_only_the_upper_bound_is_told_without_a_winner(tmp_path):
    write_run(tmp_path, "joint", two_tasks(*ALL), classes=CLASSES)
    assert verdict(only(tmp_path)) == "For comparison, joint, which keeps all training texts, reaches 100.0%."


@pytest.mark.parametrize(("keeps", "told"), [(0.2, "unlikely to be chance"), (0.95, "may be chance")])
def test_several_rounds_say_whether_the_difference_may_be_chance(tmp_path, keeps, told):
    write_grid(tmp_path, {"repcl": 0.97, "fea": keeps}, rounds=5, each=3)
    assert told in verdict(only(tmp_path))


def test_a_winner_that_is_behind_in_the_rounds_that_both_have_is_told(tmp_path):
    for row, rights in (("fea", [70, 71, 72, 99, 99]), ("repcl", [80, 81, 83])):
        for round, right in enumerate(rights):
            tested = [TestedExample(str(n), 0, "a", ("a" if n < right else "b",)) for n in range(100)]
            write_run(tmp_path, row, tested, classes=[["a", "b"]], round=round)
    assert "fea ends best: 82.2% accuracy" in verdict(only(tmp_path))
    assert verdict(only(tmp_path)).endswith(
        "But over the 3 rounds that both have, repcl is not below fea: the order rests on other rounds."
    )


def test_data_that_were_left_out_are_told(tmp_path):
    write_run(tmp_path, "fea", two_tasks(*ALL), classes=CLASSES, capped=True)
    assert verdict(only(tmp_path)).endswith("see the notes below the results.")


def test_date_duration_and_command_are_facts(tmp_path):
    spent = Seconds(tasks=[{"replay": 90.0}] * 2, all=180.0, processor_tasks=[], processor_all=60.0)
    write_run(tmp_path, "fea", two_tasks(*ALL), classes=CLASSES, seconds=spent)
    (path,) = tmp_path.rglob("result.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"finished": "2026-01-02T03:04:05Z"}))
    made, typed = report_header(load_runs(tmp_path)).facts
    assert made.text == (
        "Last result: 2026-01-02 03:04 UTC. The run took 3.0 min of wall time, 60 s of processor time."
    )
    assert typed == Listing(["repcl bench --benchmark demo --method fea"])


def test_results_without_a_date_get_none(tmp_path):
    write_run(tmp_path, "fea", two_tasks(*ALL), classes=CLASSES)
    assert report_header(load_runs(tmp_path)).facts[0].text.startswith("The run took")


def test_many_commands_are_folded(tmp_path):
    for row in ("fea", "aca", "emar", "repcl"):
        write_run(tmp_path, row, two_tasks(*ALL), classes=CLASSES)
    typed = report_header(load_runs(tmp_path)).facts[1]
    assert isinstance(typed, Folded)
    assert typed.summary == "The 4 commands that made this"
