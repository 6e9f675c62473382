"""Observers compose: each hears everything, in the order in which they are given."""

import torch

from repcl.experiments.runs.observers import (
    Event,
    LossRecord,
    Reporter,
    RunObservers,
    StageBegins,
    StageClock,
    StepEnds,
    TaskBegins,
    TaskEnds,
)
from repcl.training import Stage


def one_task(observer: RunObservers) -> None:
    observer.task_begins(0, 2)
    observer.stage_begins(Stage.INITIAL_LEARNING, epochs=3, steps_per_epoch=4)
    observer.step_ends({"ce": torch.tensor(0.5), "contrast": torch.tensor(2.0)})
    observer.step_ends({"clean": torch.tensor(1.0), "adversarial 1": torch.tensor(2.0)})
    observer.stage_ends(Stage.INITIAL_LEARNING)
    with observer.stage(Stage.REPLAY):
        observer.step_ends({"ce": torch.tensor(9.0)})
    observer.task_ends(0, 0.75)


def test_events_say_what_observers_hear():
    heard: list[Event] = []
    one_task(RunObservers([Reporter(heard.append)]))
    assert heard == [
        TaskBegins(0, 2),
        StageBegins("initial learning", 3, 4),
        StepEnds({"ce": 0.5, "contrast": 2.0}),
        StepEnds({"clean": 1.0, "adversarial 1": 2.0}),
        StageBegins("replay", 1, 1),
        StepEnds({"ce": 9.0}),
        TaskEnds(0, 0.75),
    ]


def test_every_observer_hears_everything():
    first, second = [], []
    one_task(RunObservers([Reporter(first.append), Reporter(second.append)]))
    assert first == second
    assert len(first) == 7


def test_the_clock_times_the_stages_of_one_task_and_counts_its_steps():
    clock = StageClock()
    observer = RunObservers([clock])
    one_task(observer)
    assert list(clock.seconds) == list(clock.processor_seconds) == ["initial learning", "replay"]
    assert clock.steps == 3
    one_task(observer)
    assert clock.steps == 3


def test_the_loss_record_holds_the_cross_entropy_or_the_sum_of_initial_learning():
    record = LossRecord()
    one_task(RunObservers([record]))
    assert record.losses == [0.5, 3.0]


def test_time_of_the_processor_stands_beside_wall_time(monkeypatch):
    monkeypatch.setattr("time.perf_counter", iter([10.0, 17.0]).__next__)
    monkeypatch.setattr("time.process_time", iter([3.0, 5.0]).__next__)
    clock = StageClock()
    with clock.stage(Stage.REPLAY):
        pass
    assert (clock.seconds, clock.processor_seconds) == ({"replay": 7.0}, {"replay": 2.0})
