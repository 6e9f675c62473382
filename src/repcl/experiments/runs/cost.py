"""How long runs will take: the speed of the encoder here and now, times the work that each method does."""

from itertools import accumulate

import torch

from repcl.data import Example, Task, TaskStream
from repcl.experiments.runs.observers import StageClock
from repcl.experiments.runs.pool import torch_threads
from repcl.experiments.runs.spec import RunPlan
from repcl.methods import build_method, relative_cost
from repcl.model import ALONE, Processes
from repcl.training import Stage

FORWARD = 1 / 3  # a forward pass as a part of a training step
SAMPLE = 32


def expected_seconds(plan: RunPlan, fea: RunPlan, stream: TaskStream, seconds_per_text: float) -> float:
    """Time of one run: that of FEA under the same preset, times what the method costs relative to it.

    Args:
        plan: the run.
        fea: the same run with FEA.
        stream: what is learned.
        seconds_per_text: as `measure_step` gives it.
    """
    replaying = plan if "replay_epochs" in plan.settings else fea
    memory = int(replaying.settings["memory_per_class"])
    train = [len(task.train) for task in stream.tasks]
    tests = accumulate(len(task.test) for task in stream.tasks)
    classes = accumulate(len(task.classes) for task in stream.tasks)
    replayed = sum(min(memory * seen, texts) for seen, texts in zip(classes, accumulate(train), strict=True))
    learning = sum(train) * (int(fea.settings["initial_epochs"]) + FORWARD)
    work = learning + replayed * int(fea.settings["replay_epochs"]) + FORWARD * sum(tests)
    return seconds_per_text * relative_cost(plan.row) * work


def measure_step(
    fea: RunPlan,
    stream: TaskStream,
    *,
    device: torch.device | str | None = None,
    processes: Processes = ALONE,
) -> float:
    """Seconds that a training step takes for each of its texts, from the shorter of two lessons.

    The first lesson also pays for what happens once, and either may be held up by other work.
    """
    lesson = _lesson([example for task in stream.tasks for example in task.train])
    settings = {**fea.settings, "initial_epochs": 1, "replay_epochs": 1, "memory_per_class": 1}
    spent = []
    with torch_threads(1):  # as in a run
        learner = build_method(
            "fea",
            stream.kind,
            encoder=fea.encoder,
            settings=settings,
            device=device,
            processes=processes,
        )
        for _ in range(2):
            learner.observer = clock = StageClock()
            learner.learn(lesson)
            spent.append(clock.seconds[Stage.INITIAL_LEARNING.value])
    return min(spent) / len(lesson.train)


def _lesson(examples: list[Example]) -> Task:
    """Some texts from all over a stream."""
    chosen = examples[:: max(1, len(examples) // SAMPLE)][:SAMPLE]
    return Task(tuple(dict.fromkeys(example.label for example in chosen)), chosen, [])
