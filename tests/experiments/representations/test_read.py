"""What is said when something that an analysis needs is not there; runs are made up."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from repcl.analysis.estimator_settings import EstimatorSettings
from repcl.errors import ResultMismatch
from repcl.experiments.representations.analysis import analyze_run
from repcl.experiments.representations.read import how_to_save, read_snapshots
from repcl.experiments.runs.result import SavedRepresentations
from repcl.experiments.runs.store import RunStore, StoredRun
from tests.experiments.made_up import class_names, invent_predictions, write_run


def write_saved(
    out: Path, *, tasks: int, files: int, found: tuple[int, ...], method: str = "fea"
) -> StoredRun:
    """A run that saved so many files, of which some are found."""
    classes = class_names(tasks, 1)
    tested = invent_predictions(classes, round=0, keeps=1)
    saved = SavedRepresentations(folder="representations", files=files, bytes=1)
    result = write_run(out, method, tested, classes=classes).model_copy(update={"representations": saved})
    folder = RunStore(out).folder("demo", method, 0)
    folder.finish(result, tested)
    rows, numbers = np.zeros((tasks, 4), np.float16), np.arange(tasks, dtype=np.int16)
    names = ("test_labels", "test_tasks", "probe_labels", "probe_tasks")
    folder.representations.mkdir()
    for done in found:
        tensors = {"test": rows, "probe": rows} | dict.fromkeys(names, numbers)
        save_file(tensors, folder.representations / f"after-{done}.safetensors")
    return StoredRun(folder.path, result)


def test_a_run_whose_first_task_is_missing_is_not_taken_for_joint(tmp_path):
    run = write_saved(tmp_path, tasks=2, files=3, found=(0, 2))
    words = (
        r"Expected the 3 files in .*demo/fea/round-0/representations that the run saved, .* "
        r"found after-0\.safetensors, after-2\.safetensors; "
        r"to save them, add --save-representations --fresh to: repcl bench --benchmark demo --method fea"
    )
    with pytest.raises(ResultMismatch, match=words):
        read_snapshots(run)


def test_joint_saves_two_files(tmp_path):
    run = write_saved(tmp_path, tasks=2, files=2, found=(0, 2), method="joint")
    snapshots = read_snapshots(run)
    assert snapshots is not None
    assert list(snapshots.after) == [0, 2]


def test_saved_files_that_are_all_gone_are_said(tmp_path):
    run = write_saved(tmp_path, tasks=2, files=3, found=())
    with pytest.raises(ResultMismatch, match="found none; to save them, add --save-representations"):
        read_snapshots(run)


def test_a_run_without_its_last_moment_is_named_with_what_to_type(tmp_path):
    run = write_saved(tmp_path, tasks=3, files=3, found=(0, 1, 2))
    words = r"demo/fea/round-0 does not hold representations after .*; to save them, add .* to: repcl"
    with pytest.raises(ResultMismatch, match=words):
        analyze_run(run, EstimatorSettings())


def test_a_run_without_predictions_is_named_with_what_to_type(tmp_path):
    run = write_saved(tmp_path, tasks=2, files=3, found=())
    (tmp_path / "demo/fea/round-0/predictions.jsonl.gz").unlink()
    with pytest.raises(
        ResultMismatch, match=r"predictions\.jsonl\.gz is missing, .* --fresh to: repcl bench"
    ):
        analyze_run(run, EstimatorSettings())


def test_a_run_made_in_python_is_made_again_in_python(tmp_path):
    result = write_saved(tmp_path, tasks=2, files=3, found=()).result
    assert how_to_save(result.model_copy(update={"command": None})) == (
        "to save them: run_experiment(..., save_representations=True, fresh=True)"
    )


@pytest.mark.parametrize("name", ["after-me.safetensors", "after-.safetensors", "after-1234567.safetensors"])
def test_files_of_other_names_are_not_read(tmp_path, name):
    run = write_saved(tmp_path, tasks=1, files=2, found=(0, 1))
    (run.folder / "representations" / name).write_text("mine")
    snapshots = read_snapshots(run)
    assert snapshots is not None
    assert list(snapshots.after) == [0, 1]


def test_representations_are_read_from_the_run_whatever_its_result_says(tmp_path):
    run = write_saved(tmp_path, tasks=1, files=2, found=(0, 1))
    elsewhere = SavedRepresentations(folder="../../../..", files=2, bytes=1)
    run = StoredRun(run.folder, run.result.model_copy(update={"representations": elsewhere}))
    assert read_snapshots(run) is not None


ROWS = np.zeros((2, 4), np.float16)


@pytest.mark.parametrize(
    "change",
    [
        {"test": None},
        {"probe_labels": None},
        {"test": np.zeros(2, np.float16)},
        {"test": np.zeros((3, 4), np.float16)},
        {"test_labels": np.array([0, 2], np.int16)},
        {"test_labels": np.array([-1, 0], np.int16)},
        {"test_labels": np.zeros((2, 1), np.int16)},
        {"test_tasks": np.array([0.0, 1.0], np.float32)},
        {"probe_tasks": np.array([0, 5], np.int16)},
        {"within_task": np.array([0, 7], np.int16)},
        {"within_task": np.array([0], np.int16)},
        {"losses": np.zeros((2, 2), np.float32)},
        {"inputs": np.zeros((1, 4), np.float16)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_tensors_that_do_not_belong_together_are_refused(tmp_path, change):
    run = write_saved(tmp_path, tasks=2, files=3, found=(0, 1, 2))
    numbers = np.arange(2, dtype=np.int16)
    names = ("test_labels", "test_tasks", "probe_labels", "probe_tasks")
    tensors = {"test": ROWS, "probe": ROWS, **dict.fromkeys(names, numbers), **change}
    path = run.folder / "representations/after-0.safetensors"
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, path)
    with pytest.raises(ResultMismatch, match=r"is not what a run saves; to save them, add"):
        read_snapshots(run)
