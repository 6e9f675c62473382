"""What is said when something that an analysis needs is not there; runs are made up."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from repcl.analysis.estimator_settings import EstimatorSettings
from repcl.errors import ResultMismatch
from repcl.experiments.analyses import run_folders
from repcl.experiments.kept import keep_again, read_snapshots
from repcl.experiments.result import KeptSummary, Result, write_result
from repcl.experiments.run_analysis import analyze_run
from tests.experiments.made_up import class_names, invent_predictions, write_run


def write_kept(out: Path, *, tasks: int, files: int, found: tuple[int, ...], method: str = "fea") -> Result:
    """A run that kept so many files, of which some are found."""
    classes = class_names(tasks, 1)
    result = write_run(out, method, invent_predictions(classes, round=0, keeps=1), classes=classes)
    kept = KeptSummary(what="representations", folder="representations", files=files, bytes=1)
    result, folder = result.model_copy(update={"kept": kept}), out / f"demo/{method}/round-0"
    write_result(result, folder)
    rows, numbers = np.zeros((tasks, 4), np.float16), np.arange(tasks, dtype=np.int16)
    names = ("test_labels", "test_tasks", "probe_labels", "probe_tasks")
    (folder / "representations").mkdir()
    for done in found:
        tensors = {"test": rows, "probe": rows} | dict.fromkeys(names, numbers)
        save_file(tensors, folder / f"representations/after-{done}.safetensors")
    return result


def test_a_run_whose_first_task_is_missing_is_not_taken_for_joint(tmp_path):
    result = write_kept(tmp_path, tasks=2, files=3, found=(0, 2))
    words = (
        r"Expected the 3 files in .*demo/fea/round-0/representations that the run kept, .* "
        r"found after-0\.safetensors, after-2\.safetensors; to keep them again: "
        r"repcl bench --benchmark demo --method fea --keep representations --fresh"
    )
    with pytest.raises(ResultMismatch, match=words):
        read_snapshots(tmp_path / "demo/fea/round-0", result)


def test_joint_keeps_two_files(tmp_path):
    result = write_kept(tmp_path, tasks=2, files=2, found=(0, 2), method="joint")
    snapshots = read_snapshots(tmp_path / "demo/joint/round-0", result)
    assert snapshots is not None
    assert list(snapshots.after) == [0, 2]


def test_kept_files_that_are_all_gone_are_said(tmp_path):
    result = write_kept(tmp_path, tasks=2, files=3, found=())
    with pytest.raises(ResultMismatch, match="found none; to keep them again: repcl bench"):
        read_snapshots(tmp_path / "demo/fea/round-0", result)


def test_a_run_without_its_last_moment_is_named_with_what_to_type(tmp_path):
    write_kept(tmp_path, tasks=3, files=3, found=(0, 1, 2))
    words = (
        r"demo/fea/round-0 does not hold representations after .*; to keep them again: repcl bench .*--fresh"
    )
    with pytest.raises(ResultMismatch, match=words):
        analyze_run(tmp_path / "demo/fea/round-0", EstimatorSettings())


def test_a_run_without_predictions_is_named_with_what_to_type(tmp_path):
    write_kept(tmp_path, tasks=2, files=3, found=())
    (tmp_path / "demo/fea/round-0/predictions.jsonl").unlink()
    with pytest.raises(
        ResultMismatch, match=r"predictions\.jsonl is missing, .* again: repcl bench .*--fresh"
    ):
        analyze_run(tmp_path / "demo/fea/round-0", EstimatorSettings())


@pytest.mark.parametrize(
    ("command", "again"),
    [
        (
            "repcl bench --benchmark demo --method fea --keep weights --fresh --out 'my runs'",
            "repcl bench --benchmark demo --method fea --out 'my runs' --keep representations --fresh",
        ),
        (
            "repcl bench --benchmark=demo --method fea --keep=none --set batch_size=8",
            "repcl bench --benchmark demo --method fea --set batch_size=8 --keep representations --fresh",
        ),
        (
            "repcl reproduce main --out runs --benchmark hwu64 --benchmark data/demo.csv --preset smoke "
            "--rounds 3 --workers 2",
            "repcl bench --benchmark data/demo.csv --method fea --round 0 --out runs --preset smoke "
            "--keep representations --fresh",
        ),
        (
            "repcl reproduce main --out runs",
            "repcl bench --benchmark demo --method fea --round 0 --out runs --keep representations --fresh",
        ),
        (None, "run_experiment(..., keep='representations', fresh=True)"),
    ],
)
def test_the_command_that_keeps_representations_is_one_that_is_not_refused(tmp_path, command, again):
    result = write_kept(tmp_path, tasks=2, files=3, found=())
    assert keep_again(result.model_copy(update={"command": command})) == again


@pytest.mark.parametrize("folder", [".", "demo", "demo/fea", "demo/fea/round-0"])
def test_runs_are_found_from_every_folder_above_them(tmp_path, folder):
    write_kept(tmp_path, tasks=2, files=3, found=())
    assert run_folders(tmp_path / folder) == [tmp_path / "demo/fea/round-0"]
