"""One training of a duet gives the rows of its trained method and of both duets."""

from pathlib import Path

import pytest

from repcl.experiments import RunStore, run_experiment
from tests.conftest import tiny_encoder
from tests.experiments.runs.test_run import Stop, StopAtTask, toy_stream, without_times

CHEAP = {"initial_epochs": 1, "replay_epochs": 1, "warmup_epochs": 0}
FEATURES = {"features": 32, "maps": 2}
ROWS = ("repcl", "duet", "duet@statistics")


def run(method: str, out: Path, **options: object) -> None:
    settings = CHEAP | (FEATURES if method == "duet@statistics" else {}) | options.pop("settings", {})  # type: ignore[operator]
    run_experiment(method, toy_stream(), encoder=tiny_encoder(), settings=settings, out=out, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("shared")
    run("duet@statistics", out, with_parts=True)
    return out


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("apart")
    for row in ROWS:
        run(row, out)
    return out


@pytest.mark.parametrize("row", ["repcl", "duet@statistics"])
def test_a_row_from_a_shared_training_equals_that_of_a_run_of_its_own(
    row: str, shared: Path, apart: Path
) -> None:
    ours, theirs = (folder / "toy" / row / "round-1" for folder in (shared, apart))
    assert (ours / "predictions.jsonl.gz").read_bytes() == (theirs / "predictions.jsonl.gz").read_bytes()
    assert without_times(ours / "result.json") == without_times(theirs / "result.json")


def test_the_strict_duet_brings_the_duet_of_the_other_track(tmp_path: Path, apart: Path) -> None:
    run("duet", tmp_path, with_parts=True)
    assert sorted(path.name for path in (tmp_path / "toy").iterdir()) == sorted(ROWS)
    for row in ("repcl", "duet"):
        ours, theirs = (folder / "toy" / row / "round-1" for folder in (tmp_path, apart))
        assert without_times(ours / "result.json") == without_times(theirs / "result.json")


def test_a_shared_training_that_was_stopped_goes_on_with_all_its_rows(tmp_path: Path, shared: Path) -> None:
    with pytest.raises(Stop):
        run("duet@statistics", tmp_path, with_parts=True, observer=StopAtTask(2, "initial learning"))
    run("duet@statistics", tmp_path, with_parts=True)
    for row in ("repcl", "duet@statistics"):
        ours, theirs = (folder / "toy" / row / "round-1" for folder in (tmp_path, shared))
        assert without_times(ours / "result.json") == without_times(theirs / "result.json")


def test_a_training_that_began_without_parts_does_not_write_their_rows(tmp_path: Path) -> None:
    with pytest.raises(Stop):
        run("duet", tmp_path, observer=StopAtTask(1, "initial learning"))
    run("duet", tmp_path, with_parts=True)
    assert [stored.result.row for stored in RunStore(tmp_path).runs()] == ["duet"]


def test_time_of_the_frozen_part_is_not_counted_for_the_trained_method(shared: Path) -> None:
    by_row = {stored.result.row: stored.result.seconds.tasks[0] for stored in RunStore(shared).runs()}
    assert "solving" in by_row["duet@statistics"]
    assert "solving" not in by_row["repcl"]


def test_a_run_of_a_row_that_is_there_already_is_not_made_again(shared: Path) -> None:
    run("repcl", shared, observer=StopAtTask(0, "initial learning"))


def test_rows_beside_a_run_have_processor_time_too_so_that_costs_can_be_compared(shared: Path) -> None:
    spent = {run.result.row: run.result.seconds.processor_all for run in RunStore(shared).runs()}
    assert spent["repcl"] is not None
    assert spent["duet@statistics"] is not None
    assert 0 < spent["repcl"] < spent["duet@statistics"]
