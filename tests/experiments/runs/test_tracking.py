"""Trackers: what TensorBoard and Weights & Biases are told is what happened."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor

from repcl.errors import InvalidSetting, MissingPackage, UnknownName
from repcl.experiments import RunObserver
from repcl.experiments.runs import tracking
from tests.experiments.runs.test_run import Stop, StopAtTask, run

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the trackers' own packages
RUN = "toy/fea/round-1"


class Losses(RunObserver):
    """The cross-entropy of each step of initial learning."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self._stage = ""

    def stage_begins(self, stage: str, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        self._stage = stage

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        if self._stage == "initial learning":
            self.values.append(float(terms["ce"]))


def events(out: Path, run_folder: str = RUN) -> EventAccumulator:
    return EventAccumulator(str(out / run_folder / "tracking/tensorboard")).Reload()


def test_tensorboard_holds_the_loss_of_every_step(tmp_path):
    heard = Losses()
    run("fea", tmp_path, report_to=("tensorboard",), observer=heard)
    logged = [event.value for event in events(tmp_path).Scalars("initial_learning/ce")]
    assert logged == pytest.approx(heard.values)


def test_tensorboard_holds_the_accuracy_after_each_task(tmp_path):
    result = run("fea", tmp_path, report_to=("tensorboard",))
    logged = [event.value for event in events(tmp_path).Scalars("accuracy")]
    assert logged == pytest.approx(result.accuracy_after_task)


def test_a_run_that_resumes_counts_its_steps_from_there(tmp_path):
    run("fea", tmp_path / "whole", report_to=("tensorboard",))
    with pytest.raises(Stop):
        run("fea", tmp_path / "stopped", report_to=("tensorboard",), observer=StopAtTask(2, "replay"))
    run("fea", tmp_path / "stopped", report_to=("tensorboard",))
    whole, stopped = (
        [(event.step, event.value) for event in events(tmp_path / name).Scalars("initial_learning/ce")]
        for name in ("whole", "stopped")
    )
    assert whole == stopped


def test_settings_of_the_run_are_its_configuration(tmp_path):
    run("fea", tmp_path, report_to=("tensorboard",))
    (file,) = (tmp_path / RUN / "tracking/tensorboard").glob("*/hparams.yml")
    assert {"method: fea", "initial_epochs: 1", "benchmark: toy"} <= set(file.read_text().splitlines())


def test_fresh_forgets_what_was_reported(tmp_path):
    run("fea", tmp_path, report_to=("tensorboard",))
    run("fea", tmp_path, fresh=True)
    assert not (tmp_path / RUN / "tracking").exists()


def test_reporting_changes_no_number(tmp_path):
    plain, reported = run("fea"), run("fea", tmp_path, report_to=("tensorboard",))
    assert plain.accuracy_matrix == reported.accuracy_matrix


def test_weights_and_biases_gets_one_run_that_may_resume(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    with pytest.raises(Stop):
        run("fea", tmp_path, report_to=("wandb",), observer=StopAtTask(1, "replay"))
    run("fea", tmp_path, report_to=("wandb",))
    folder = tmp_path / RUN / "tracking"
    identity = (folder / tracking.WANDB_RUN).read_text()
    files = list(folder.glob("wandb/offline-run-*/*.wandb"))
    assert {file.stem for file in files} == {f"run-{identity}"}


def test_an_unknown_tracker_is_named_with_the_nearest(tmp_path):
    with pytest.raises(UnknownName, match="Did you mean 'tensorboard'"):
        run("fea", tmp_path, report_to=("tensorbord",))


def test_a_tracker_that_is_not_installed_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(tracking.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"pip install 'repcl\[trackers\]'"):
        run("fea", tmp_path, report_to=("wandb",))


def test_trackers_need_a_folder():
    with pytest.raises(InvalidSetting, match="give `out`"):
        run("fea", report_to=("tensorboard",))
