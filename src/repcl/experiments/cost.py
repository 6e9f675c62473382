"""How long runs will take: the speed of the encoder here and now, times the work that each method does."""

from itertools import accumulate

from repcl.data import Example, Task, TaskStream
from repcl.experiments.clock import StageClock
from repcl.experiments.observer import RunObserver
from repcl.experiments.plan import RunPlan
from repcl.experiments.threads import torch_threads
from repcl.methods import build_method

# Work of a whole run relative to FEA with as many epochs: RepCL's as measured on `demo` with one thread, that
# of the others counted in passes over texts. A variant without an entry costs what its method costs.
RELATIVE_COST = {
    "fea": 1.0,
    "fea@infomax": 1.75,
    "sequential": 1.0,
    "joint": 1.0,
    "idbr": 2.5,
    "kcn": 1.3,
    "kdrk": 2.2,
    "emar": 0.45,
    "rp_cre": 1.05,
    "crl": 1.1,
    "crecl": 3.1,
    "aca": 0.7,
    "repcl": 2.0,
    "repcl@no-con": 1.8,
    "repcl@no-xmlm": 1.4,
    "repcl@no-adv": 1.7,
}
FORWARD = 1 / 3  # a forward pass as a part of a training step
SAMPLE = 32


def relative_cost(row: str) -> float:
    """Work of a run relative to FEA."""
    return RELATIVE_COST.get(row, RELATIVE_COST.get(row.partition("@")[0], 1.0))


def expected_seconds(plan: RunPlan, fea: RunPlan, stream: TaskStream, seconds_per_text: float) -> float:
    """Time of one run, from FEA's number of training steps under the same preset.

    Args:
        plan: the run.
        fea: the same run with FEA.
        stream: what is learned.
        seconds_per_text: as `measure_step` gives it.
    """
    memory = int(plan.settings.get("memory_per_class", 0)) if "replay_epochs" in plan.settings else 0
    train = [len(task.train) for task in stream.tasks]
    tests = accumulate(len(task.test) for task in stream.tasks)
    classes = accumulate(len(task.classes) for task in stream.tasks)
    replayed = sum(min(memory * seen, texts) for seen, texts in zip(classes, accumulate(train), strict=True))
    learning = sum(train) * (int(fea.settings["initial_epochs"]) + FORWARD)
    work = relative_cost(plan.row) * (learning + replayed * int(fea.settings["replay_epochs"]))
    return seconds_per_text * (work + FORWARD * sum(tests))


def measure_step(fea: RunPlan, stream: TaskStream, *, device: str | None = None) -> float:
    """Seconds that a training step takes for each of its texts, from the shorter of two lessons.

    The first lesson also pays for what happens once, and either may be held up by other work.
    """
    lesson = _lesson([example for task in stream.tasks for example in task.train])
    settings = {**fea.settings, "initial_epochs": 1, "replay_epochs": 1, "memory_per_class": 1}
    spent = []
    with torch_threads(1):  # as in a run
        learner = build_method("fea", stream.kind, encoder=fea.encoder, settings=settings, device=device)
        for _ in range(2):
            learner.observer = clock = StageClock(RunObserver())
            learner.learn(lesson)
            spent.append(clock.seconds["initial learning"])
    return min(spent) / len(lesson.train)


def _lesson(examples: list[Example]) -> Task:
    """Some texts from all over a stream."""
    chosen = examples[:: max(1, len(examples) // SAMPLE)][:SAMPLE]
    return Task(tuple(dict.fromkeys(example.label for example in chosen)), chosen, [])
