"""The run store: runs are found and read once, and what is damaged is named."""

import errno
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from repcl.errors import MissingData, ResultMismatch
from repcl.experiments import Result, read_result
from repcl.experiments.runs.store import RunFolder, RunStore
from tests.experiments.made_up import class_names, invent_predictions, write_grid, write_run

NAN = float("nan")
COMMITTED = sorted(Path(__file__).parents[3].glob("results/**/round-*/result.json"))


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        ({"seconds": {}}, "seconds.tasks"),
        ({"seconds": {"tasks": [{"replay": "long"}], "all": 1.0}}, "seconds.tasks.0.replay"),
        ({"seconds": {"tasks": [], "all": NAN}}, "seconds.all"),
        ({"accuracy_matrix": [[1.0], [1.0, 1.0]]}, "accuracy_matrix"),
        ({"accuracy_matrix": [[1.0, None]]}, "accuracy_matrix"),
        ({"accuracy_matrix": [[1.0, None], [NAN, 1.0]]}, "accuracy_matrix.1.0"),
        ({"accuracy_after_task": []}, "accuracy_after_task"),
        ({"accuracy_after_task": [1.0, NAN]}, "accuracy_after_task.1"),
        ({"final_accuracy": float("inf")}, "final_accuracy"),
        ({"class_order": []}, "class_order"),
    ],
)
def test_a_damaged_entry_is_named(tmp_path: Path, change: dict[str, Any], entry: str) -> None:
    classes = class_names(2, 1)
    write_run(tmp_path, "fea", invent_predictions(classes, round=0, keeps=1.0), classes=classes)
    path = tmp_path / "demo/fea/round-0/result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ResultMismatch, match=rf"is damaged at {entry} \(.*use --fresh to run it again"):
        read_result(path)


def test_committed_results_are_written_as_they_were() -> None:
    assert COMMITTED
    for path in COMMITTED:
        before, after = json.loads(path.read_text()), json.loads(read_result(path).to_json())
        assert json.dumps(_as_far_as(before, after)) == json.dumps(before)


def _as_far_as(before: Any, after: Any) -> Any:
    """What is there, without entries that came later, which have a default."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {key: _as_far_as(value, after[key]) for key, value in before.items()}
    return after


@pytest.mark.parametrize("folder", [".", "demo", "demo/fea", "demo/fea/round-0"])
def test_runs_are_found_from_every_folder_above_them(tmp_path: Path, folder: str) -> None:
    write_grid(tmp_path, {"fea": 1.0}, rounds=1)
    assert [run.folder for run in RunStore(tmp_path / folder).runs()] == [tmp_path / "demo/fea/round-0"]


def test_runs_are_ordered_by_benchmark_method_and_number_of_the_round(tmp_path: Path) -> None:
    write_grid(tmp_path, {"fea": 1.0, "crl": 1.0}, rounds=11)
    found = [(run.result.row, run.result.round) for run in RunStore(tmp_path).runs()]
    assert found == [(row, round) for row in ("crl", "fea") for round in range(11)]


def check(out: Path) -> None:
    for run in RunStore(out).runs():
        run.verify(run.predictions())


def test_each_result_is_read_once_for_each_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_grid(tmp_path, {"fea": 1.0}, rounds=2)
    read: list[Path] = []

    def note(path: Path) -> Result:
        read.append(path)
        return read_result(path)

    monkeypatch.setattr("repcl.experiments.runs.store.read_result", note)
    store = RunStore(tmp_path)
    store.runs()
    store.some_runs("repcl bench")
    assert len(read) == 2


def test_a_metric_that_its_predictions_do_not_give_is_named(tmp_path: Path) -> None:
    write_grid(tmp_path, {"fea": 0.5}, rounds=1)
    path = tmp_path / "demo/fea/round-0/result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"final_accuracy": 0.123}))
    with pytest.raises(ResultMismatch, match=r"final_accuracy = 0.123, its predictions give"):
        check(tmp_path)


def test_metrics_that_their_predictions_give_are_accepted(tmp_path: Path) -> None:
    write_grid(tmp_path, {"fea": 0.5}, rounds=2)
    check(tmp_path)


def test_a_run_says_whether_its_predictions_are_stored(tmp_path: Path) -> None:
    write_grid(tmp_path, {"fea": 0.5}, rounds=2)
    (tmp_path / "demo/fea/round-1/predictions.jsonl.gz").unlink()
    assert [run.has_predictions for run in RunStore(tmp_path).runs()] == [True, False]


def test_predictions_of_an_earlier_version_are_read_unpacked_and_go_when_the_run_starts_over(
    tmp_path: Path,
) -> None:
    write_grid(tmp_path, {"fea": 0.5}, rounds=1)
    folder = RunStore(tmp_path).folder("demo", "fea", 0)
    result, packed = folder.path / "result.json", folder.path / "predictions.jsonl.gz"
    packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    result.write_text(result.read_text().replace("predictions.jsonl.gz", "predictions.jsonl"))
    check(tmp_path)
    assert RunStore(tmp_path).runs()[0].has_predictions
    folder.start_over()
    assert list(folder.path.iterdir()) == []


def test_copies_of_a_run_or_a_row_under_other_names_do_not_count_and_are_named(tmp_path: Path) -> None:
    write_grid(tmp_path, {"fea": 0.5}, rounds=1)
    for copy in ("fea/round-0-old", "fea-old/round-0"):
        shutil.copytree(tmp_path / "demo/fea/round-0", tmp_path / "demo" / copy)
    store = RunStore(tmp_path)
    assert [run.folder for run in store.runs()] == [tmp_path / "demo/fea/round-0"]
    assert store.notes() == [
        f"{tmp_path / 'demo' / copy} does not count: its name is not that of demo, fea, round 0."
        for copy in ("fea/round-0-old", "fea-old/round-0")
    ]


def test_a_run_is_found_in_a_folder_of_any_name_that_is_given_itself(tmp_path: Path) -> None:
    write_grid(tmp_path, {"fea": 0.5}, rounds=1)
    (tmp_path / "demo/fea/round-0").rename(tmp_path / "kept")
    assert [run.result.method for run in RunStore(tmp_path / "kept").runs()] == ["fea"]


def test_a_folder_without_runs_names_a_command_that_makes_some(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"No finished run in .*; `repcl bench` makes some"):
        RunStore(tmp_path).some_runs("repcl bench")


def test_a_lock_that_another_holds_is_not_waited_for_if_nobody_wants_to(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with folder.lock(waiting=pytest.fail) as is_ours, folder.lock(waiting=None) as is_theirs:
        assert (is_ours, is_theirs) == (True, False)


def test_without_locks_in_the_file_system_a_run_may_be_made(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("repcl.experiments.runs.store.FileLock.acquire", refuse)
    with RunFolder(tmp_path / "run").lock(waiting=None) as is_ours:
        assert is_ours
