"""The representations that a run saves: the same files however often it is stopped, and what is in them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from repcl.data import TaskStream
from repcl.errors import ResultMismatch
from repcl.experiments import StoredRun, run_experiment
from repcl.experiments.representations.capture import Capture, probe_texts
from repcl.experiments.representations.read import read_snapshots
from repcl.experiments.runs.store import RunFolder
from repcl.methods import build_method
from repcl.model import Processes
from tests.conftest import tiny_encoder, toy_task
from tests.experiments.runs.test_run import CHEAP, Stop, StopAtTask, run, toy_stream


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))}


def run_folder(out: Path, method: str = "fea") -> Path:
    return out / f"toy/{method}/round-1"


def test_nothing_is_saved_unless_asked_for(tmp_path):
    assert run("fea", tmp_path).representations is None
    assert not (run_folder(tmp_path) / "representations").exists()


def test_representations_are_saved_after_every_task_with_their_cost(tmp_path):
    result = run("fea", tmp_path, save_representations=True)
    files = files_in(run_folder(tmp_path))
    assert list(files) == [f"after-{done}.safetensors" for done in range(4)]
    assert result.representations is not None
    assert result.representations.files == 4
    assert result.representations.bytes == sum(map(len, files.values()))
    stored = json.loads((run_folder(tmp_path) / "result.json").read_text())
    assert stored["representations"]["folder"] == "representations"


def test_saving_changes_no_number_of_the_run(tmp_path):
    plain, kept = run("repcl", tmp_path / "a"), run("repcl", tmp_path / "b", save_representations=True)
    assert plain.accuracy_matrix == kept.accuracy_matrix
    assert (tmp_path / "a/toy/repcl/round-1/predictions.jsonl.gz").read_bytes() == (
        tmp_path / "b/toy/repcl/round-1/predictions.jsonl.gz"
    ).read_bytes()


@pytest.mark.parametrize(
    ("task", "stage"), [(0, "initial learning"), (0, "keeping"), (1, "memory update"), (2, "keeping")]
)
def test_a_stopped_run_saves_the_same_files(tmp_path, task, stage):
    run("fea", tmp_path / "whole", save_representations=True)
    with pytest.raises(Stop):
        run("fea", tmp_path / "stopped", save_representations=True, observer=StopAtTask(task, stage))
    run("fea", tmp_path / "stopped", save_representations=True)
    whole, stopped = (files_in(run_folder(tmp_path / name)) for name in ("whole", "stopped"))
    assert whole == stopped


def test_a_run_killed_between_its_files_and_its_checkpoint_saves_the_same_files(tmp_path, monkeypatch):
    run("fea", tmp_path / "whole", save_representations=True)

    def die(*_: object) -> None:
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save_checkpoint", die)
        with pytest.raises(Stop):
            run("fea", tmp_path / "killed", save_representations=True)
    assert "after-1.safetensors" in files_in(run_folder(tmp_path / "killed"))
    run("fea", tmp_path / "killed", save_representations=True)
    whole, killed = (files_in(run_folder(tmp_path / name)) for name in ("whole", "killed"))
    assert whole == killed


def test_a_stopped_run_continues_to_save_without_being_told(tmp_path):
    with pytest.raises(Stop):
        run("fea", tmp_path, save_representations=True, observer=StopAtTask(1, "initial learning"))
    assert run("fea", tmp_path).representations is not None


def test_a_run_that_saved_less_is_refused_with_advice(tmp_path):
    run("fea", tmp_path)
    with pytest.raises(ResultMismatch, match=r"made without --save-representations; use --fresh"):
        run("fea", tmp_path, save_representations=True)


def test_fresh_drops_what_was_saved(tmp_path):
    run("fea", tmp_path, save_representations=True)
    run("fea", tmp_path, fresh=True)
    assert not (run_folder(tmp_path) / "representations").exists()


def test_fresh_drops_the_analysis_of_the_earlier_run(tmp_path):
    run("fea", tmp_path)
    for name in ("analysis.json", "analysis-authors.json", "analysis-drift.svg", "analysis-drift.png"):
        (run_folder(tmp_path) / name).write_text("of the earlier run")
    run("fea", tmp_path, fresh=True)
    assert not [*run_folder(tmp_path).glob("analysis*")]


def test_the_files_hold_what_the_encoder_made_of_the_texts(tmp_path):
    run("fea", tmp_path, save_representations=True)
    stream, untouched = toy_stream(), build_method("fea", "sentence", encoder=tiny_encoder(), settings={})
    texts = [text for task in stream.tasks for text in task.test]
    start = load_file(run_folder(tmp_path) / "representations/after-0.safetensors")
    expected = untouched.for_all(texts, untouched.encoder.represent).numpy()
    np.testing.assert_allclose(start["test"], expected, atol=2e-3)
    assert start["test"].dtype == np.float16
    assert start["test_tasks"].tolist() == [0] * 6 + [1] * 3 + [2] * 6
    assert start["probe_labels"].tolist() == [label for label in range(5) for _ in range(6)]
    assert "inputs" not in start  # they are the representations themselves


def test_snapshots_are_read_with_their_classes_and_within_task_answers(tmp_path):
    result = run("fea", tmp_path, save_representations=True)
    snapshots = read_snapshots(StoredRun(run_folder(tmp_path), result))
    assert snapshots is not None
    assert snapshots.classes == ("fruit", "vehicle", "weather", "place", "person")
    within = snapshots.after[2].within_task
    assert set(within[:6]) <= {0, 1}
    assert within[6:9].tolist() == [2, 2, 2]  # the only class of its task
    assert within[9:].tolist() == [-1] * 6
    # 12 texts in batches of at most 32, one epoch
    assert snapshots.after[1].losses.shape == (1,)
    assert snapshots.after[1].losses[0] > 0


def test_relations_save_the_plain_text_beside_the_markers(tmp_path):
    tasks = (toy_task("relation", "fruit", "vehicle"), toy_task("relation", "weather"))
    stream = TaskStream("toy", "relation", tasks, round=1)
    result = run_experiment(
        "fea",
        stream,
        encoder=tiny_encoder("relation"),
        settings=CHEAP,
        out=tmp_path,
        save_representations=True,
    )
    snapshots = read_snapshots(StoredRun(run_folder(tmp_path), result))
    assert snapshots is not None
    assert snapshots.inputs.shape == (9, 32)
    assert snapshots.after[0].test.shape == (9, 64)


def test_joint_saves_the_untouched_encoder_and_the_end(tmp_path):
    result = run_experiment(
        "joint",
        toy_stream(),
        encoder=tiny_encoder(),
        settings={"initial_epochs": 1},
        out=tmp_path,
        save_representations=True,
    )
    snapshots = read_snapshots(StoredRun(run_folder(tmp_path, "joint"), result))
    assert snapshots is not None
    assert list(snapshots.after) == [0, 3]
    assert snapshots.first is snapshots.last


def test_a_damaged_file_is_named(tmp_path):
    result = run("fea", tmp_path, save_representations=True)
    (run_folder(tmp_path) / "representations/after-2.safetensors").write_bytes(b"nothing")
    with pytest.raises(ResultMismatch, match=r"after-2\.safetensors is damaged"):
        read_snapshots(StoredRun(run_folder(tmp_path), result))


def test_at_most_ten_training_texts_of_a_class_are_probed():
    stream = TaskStream("toy", "sentence", (toy_task("sentence", "fruit", "weather", train=12),))
    chosen = probe_texts(stream)
    assert [text.label for _, text in chosen] == ["fruit"] * 10 + ["weather"] * 10
    assert chosen[0][1] == stream.tasks[0].train[0]


def test_numbers_too_large_for_16_bits_stay_finite(tmp_path):
    learner = build_method("fea", "sentence", encoder=tiny_encoder(), settings={})
    learner.encoder.represent = lambda batch: torch.full((len(batch), 4), 1e6)  # type: ignore[method-assign]
    Capture(toy_stream(), tmp_path, Processes()).before_tasks(learner)
    assert np.isfinite(load_file(tmp_path / "after-0.safetensors")["test"]).all()
