"""Reading runs for a report: their order, and metrics that are those of their predictions."""

import shutil

import pytest

from repcl.errors import ResultMismatch
from repcl.evaluation import read_predictions, write_predictions
from repcl.experiments.reports.grouping import load_runs, row_names
from tests.experiments.made_up import only, two_tasks, write_grid, write_run


def test_benchmarks_and_methods_stand_in_the_papers_order_between_the_bounds(tmp_path):
    for benchmark in ("demo", "hwu64", "fewrel"):
        write_grid(tmp_path, dict.fromkeys(("joint", "repcl", "instant", "fea"), 0.9), benchmark=benchmark)
    write_grid(tmp_path, {"sequential": 0.9, "repcl@no-con": 0.9})
    benchmarks = load_runs(tmp_path)
    assert [runs.name for runs in benchmarks] == ["fewrel", "hwu64", "demo"]
    assert row_names(benchmarks) == ["sequential", "fea", "repcl", "repcl@no-con", "instant", "joint"]


def test_a_changed_metric_is_found(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=[["old"], ["new"]])
    path = next(tmp_path.rglob("result.json"))
    path.write_text(path.read_text().replace('"final_accuracy": 1.0', '"final_accuracy": 0.9'))
    with pytest.raises(ResultMismatch, match=r"final_accuracy = 0\.9, its predictions give 1\.0"):
        load_runs(tmp_path)


def test_lost_predictions_are_found(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True], [True, True]), classes=[["old"], ["new"]])
    path = next(tmp_path.rglob("predictions.jsonl.gz"))
    write_predictions(path, read_predictions(path)[:-1])
    with pytest.raises(ResultMismatch, match="number of test examples = 4, its predictions give 3"):
        load_runs(tmp_path)


def test_only_what_became_of_classes_is_kept_of_the_predictions(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, False], [True, True]), classes=[["old"], ["new"]])
    [run] = only(tmp_path).methods[0].runs
    assert run.forgetting == {"old": 0.5}
    assert run.last_guesses == {"old": {"old": 1, "new": 1}, "new": {"new": 2}}


def test_a_copy_of_a_round_under_another_name_is_no_round(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=[["old"], ["new"]])
    shutil.copytree(tmp_path / "demo/fea/round-0", tmp_path / "demo/fea/round-0-old")
    assert len(only(tmp_path).methods[0].runs) == 1


def test_rounds_from_other_files_are_not_compared(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=[["old"], ["new"]])
    write_run(tmp_path, "aca", two_tasks([True, True]), classes=[["old"], ["new"]])
    write_run(tmp_path, "crl", two_tasks([True, True]), classes=[["old"], ["new"]], file_hash="1" * 64)
    runs = only(tmp_path)
    fea = runs.find("fea")
    assert [len(fea.comparable_runs(runs.find(name))) for name in ("aca", "crl")] == [1, 0]


def test_a_run_without_stored_predictions_is_read_too(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=[["old"], ["new"]])
    next(tmp_path.rglob("predictions.jsonl.gz")).unlink()
    [run] = only(tmp_path).methods[0].runs
    assert run.forgetting == {}
