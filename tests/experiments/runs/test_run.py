import json
import shutil
from pathlib import Path
from typing import ClassVar

import pytest

from repcl.data import Task, TaskStream
from repcl.errors import InvalidSetting, ResultMismatch, UnknownName
from repcl.evaluation import read_predictions, score_predictions
from repcl.experiments import RunObserver, RunSpec, RunStore, plan_run, read_result, run_experiment
from repcl.files import part_of
from tests.conftest import tiny_encoder, toy_task

CHEAP = {"initial_epochs": 1, "replay_epochs": 1, "warmup_epochs": 0}


def toy_stream() -> TaskStream:
    tasks = (
        toy_task("sentence", "fruit", "vehicle"),
        toy_task("sentence", "weather"),
        toy_task("sentence", "place", "person"),
    )
    return TaskStream("toy", "sentence", tasks, round=1)


def run(method: str = "fea", out: Path | None = None, **options: object):
    settings = {
        key: value for key, value in CHEAP.items() if method != "sequential" or key != "replay_epochs"
    }
    return run_experiment(method, toy_stream(), encoder=tiny_encoder(), settings=settings, out=out, **options)


def without_times(path: Path) -> dict:
    content = json.loads(path.read_text())
    del content["seconds"], content["finished"]
    return content


class Stop(Exception):
    pass


class StopAtTask(RunObserver):
    def __init__(self, task: int, stage: str) -> None:
        self.task, self.stage_name, self.now = task, stage, -1

    def task_begins(self, number: int, tasks: int) -> None:
        self.now = number

    def stage_begins(self, stage: str, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        if self.now == self.task and stage == self.stage_name:
            raise Stop


def test_same_round_twice_gives_the_same_result_apart_from_times(tmp_path):
    run("repcl", tmp_path / "a")
    run("repcl", tmp_path / "b")
    a, b = (without_times(tmp_path / name / "toy/repcl/round-1/result.json") for name in "ab")
    assert a == b


def test_a_result_says_on_which_processor_it_was_made(monkeypatch):
    monkeypatch.setattr("repcl.experiments.runs.run.processor_name", lambda: "Xeon")
    assert run("sequential").processor == "Xeon"


@pytest.mark.parametrize(
    ("task", "stage"), [(0, "initial learning"), (1, "memory update"), (2, "replay"), (2, "evaluation")]
)
def test_a_stopped_run_resumes_to_the_same_numbers(tmp_path, task, stage):
    run("fea", tmp_path / "whole")
    with pytest.raises(Stop):
        run("fea", tmp_path / "stopped", observer=StopAtTask(task, stage))
    run("fea", tmp_path / "stopped")
    whole, stopped = (
        without_times(tmp_path / name / "toy/fea/round-1/result.json") for name in ("whole", "stopped")
    )
    assert whole == stopped


def test_resuming_does_not_repeat_finished_tasks(tmp_path):
    class Count(RunObserver):
        seen: ClassVar[list[int]] = []

        def task_begins(self, number: int, tasks: int) -> None:
            self.seen.append(number)

    with pytest.raises(Stop):
        run("fea", tmp_path, observer=StopAtTask(2, "initial learning"))
    run("fea", tmp_path, observer=Count())
    assert Count.seen == [2]


def test_a_half_written_checkpoint_is_ignored(tmp_path):
    with pytest.raises(Stop):
        run("fea", tmp_path, observer=StopAtTask(1, "initial learning"))
    part_of(tmp_path / "toy/fea/round-1/checkpoint-2").mkdir()
    result = run("fea", tmp_path)
    assert len(result.accuracy_after_task) == 3


def test_no_checkpoint_is_left_after_the_end(tmp_path):
    run("fea", tmp_path)
    assert sorted(path.name for path in (tmp_path / "toy/fea/round-1").iterdir()) == [
        "predictions.jsonl.gz",
        "result.json",
        "wrong-texts.json.gz",
    ]


def test_metrics_can_be_recomputed_from_the_stored_predictions(tmp_path):
    result = run("fea", tmp_path)
    scores = score_predictions(read_predictions(tmp_path / "toy/fea/round-1/predictions.jsonl.gz"), 3)
    assert scores.final_accuracy == result.final_accuracy
    assert scores.accuracy_matrix.as_lists() == result.accuracy_matrix
    assert scores.forgetting_rate == result.forgetting_rate


def test_other_settings_in_the_same_folder_are_refused(tmp_path):
    run("fea", tmp_path)
    with pytest.raises(ResultMismatch, match="use --fresh or another --out"):
        run_experiment(
            "fea", toy_stream(), encoder=tiny_encoder(), settings={**CHEAP, "batch_size": 4}, out=tmp_path
        )


def test_fresh_starts_over(tmp_path):
    run("fea", tmp_path)
    settings = {**CHEAP, "batch_size": 4}
    result = run_experiment(
        "fea", toy_stream(), encoder=tiny_encoder(), settings=settings, out=tmp_path, fresh=True
    )
    assert result.settings["batch_size"] == 4


def test_joint_is_measured_at_the_end_only():
    result = run_experiment("joint", toy_stream(), encoder=tiny_encoder(), settings={"initial_epochs": 1})
    assert result.accuracy_after_task[:2] == [None, None]
    assert result.accuracy_after_task[2] is not None


def test_joint_can_be_trained_after_every_task():
    settings = {"initial_epochs": 1, "every_task": True}
    result = run_experiment("joint", toy_stream(), encoder=tiny_encoder(), settings=settings)
    assert None not in result.accuracy_after_task


def test_a_task_without_test_examples_is_reported_as_untested():
    tasks = (*toy_stream().tasks[:1], Task(("weather",), toy_task("sentence", "weather").train, []))
    result = run_experiment(
        "fea", TaskStream("toy", "sentence", tasks), encoder=tiny_encoder(), settings=CHEAP
    )
    assert result.accuracy_matrix[1][1] is None


def test_memory_and_class_order_are_in_the_result():
    result = run("fea")
    assert result.class_order == [["fruit", "vehicle"], ["weather"], ["place", "person"]]
    assert result.memory.exemplars_per_class["fruit"] == 6


@pytest.mark.parametrize("threads", [0, 1.5])
def test_threads_are_a_whole_number_of_at_least_one(threads):
    with pytest.raises(InvalidSetting, match=f"threads is {threads}: it must be a whole number, 1 or more"):
        run_experiment("fea", toy_stream(), threads=threads)


def test_nothing_is_written_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("sequential")
    assert list(tmp_path.iterdir()) == []


def test_a_broken_result_file_is_named(tmp_path):
    run("fea", tmp_path)
    path = tmp_path / "toy/fea/round-1/result.json"
    path.write_text(path.read_text()[:100])
    with pytest.raises(ResultMismatch, match=r"result\.json is not a readable result file"):
        RunStore(tmp_path).runs()


def test_a_newer_result_file_is_refused_with_advice(tmp_path):
    run("fea", tmp_path)
    path = tmp_path / "toy/fea/round-1/result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(ResultMismatch, match=r"format 99.*update repcl"):
        read_result(path)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    with pytest.raises(Stop):
        run("fea", tmp_path, observer=StopAtTask(1, "initial learning"))
    (tmp_path / "toy/fea/round-1/checkpoint-1/weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(ResultMismatch, match="is damaged"):
        run("fea", tmp_path)


def test_settings_come_from_defaults_then_preset_then_variant_then_options():
    plan = plan_run("repcl@no-xmlm", toy_stream(), preset="cpu", settings={"momentum": 0.5})
    assert plan.settings["contrast_weight"] == 0.05
    assert plan.settings["learning_rate"] == 5e-5
    assert plan.settings["generation"] == "none"
    assert plan.settings["momentum"] == 0.5


def test_memory_variants_exist_for_every_method_with_a_memory():
    assert plan_run("fea@memory-5", toy_stream()).settings["memory_per_class"] == 5


def test_a_setting_that_contradicts_the_variant_is_refused():
    with pytest.raises(InvalidSetting, match=r"fea@memory-5 means memory_per_class = 5, found .* = 3: leave"):
        plan_run("fea@memory-5", toy_stream(), settings={"memory_per_class": 3})


def test_a_setting_that_the_variant_has_too_is_taken():
    plan = plan_run("fea@memory-5", toy_stream(), settings={"memory_per_class": 5})
    assert plan.settings["memory_per_class"] == 5


def test_an_unknown_variant_names_the_known_ones():
    with pytest.raises(UnknownName, match="Did you mean 'no-xmlm'"):
        plan_run("repcl@no-xmlmm", toy_stream())


def test_a_value_out_of_range_names_setting_and_value():
    with pytest.raises(InvalidSetting, match="temperature = 0"):
        plan_run("repcl", toy_stream(), settings={"temperature": 0})


def test_the_fingerprint_changes_with_one_letter_of_the_data():
    stream = toy_stream()
    changed = toy_stream()
    changed.tasks[0].train[0] = toy_task("sentence", "fruit", start=50).train[0]
    one, other, again = (
        RunSpec("fea", data).resolve().fingerprint for data in (stream, changed, toy_stream())
    )
    assert one != other
    assert one == again


def test_a_copied_folder_still_holds_its_results(tmp_path):
    run("fea", tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    a, b = ([run.result for run in RunStore(tmp_path / name).runs()] for name in "ab")
    assert a == b


def test_a_result_says_how_many_embeddings_an_earlier_run_had_left(tmp_path, monkeypatch):
    monkeypatch.setenv("REPCL_EMBEDDINGS", str(tmp_path / "embeddings"))
    read = [
        run_experiment("ncm", toy_stream(), encoder=tiny_encoder()).seconds.embeddings_read for _ in range(2)
    ]
    texts = {example.text for task in toy_stream().tasks for example in (*task.train, *task.test)}
    assert read == [0, len(texts)]


def test_a_result_holds_the_time_of_the_processor_of_every_task():
    seconds = run("fea").seconds
    assert [list(task) for task in seconds.processor_tasks] == [list(task) for task in seconds.tasks]
    spent = sum(value for task in seconds.processor_tasks for value in task.values())
    assert seconds.processor_all == pytest.approx(spent)


def test_a_run_resumed_from_a_checkpoint_without_them_claims_no_seconds_of_the_processor(tmp_path):
    with pytest.raises(Stop):
        run("fea", tmp_path, observer=StopAtTask(2, "replay"))
    (progress,) = tmp_path.glob("toy/fea/round-1/checkpoint-*/progress.json")
    content = json.loads(progress.read_text())
    content["processor_seconds"] = []
    progress.write_text(json.dumps(content))
    seconds = run("fea", tmp_path).seconds
    assert (seconds.processor_tasks, seconds.processor_all) == ([], None)
