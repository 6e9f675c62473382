"""Whether learning costs more the more classes there are: late tasks and early ones, many classes and few."""

from typing import Any

import torch
from many_classes import MadeUp, task

from speed_parts.contenders import built, settings_of
from speed_parts.measured import Part, Row, cpu_time, ratio
from speed_parts.options import Options

SETTINGS = {"initial_epochs": 1, "replay_epochs": 1, "warmup_epochs": 0.0, "replay_budget": 100}
TASKS = 30
FEW, MANY, TEXTS = 50, 500, 5_000


def measure(options: Options) -> Part:
    """Tasks of trained methods late and early, and `instant` with many and few classes."""
    rows = [late_over_early(method, options) for method in ("fea", "repcl")]
    return Part("growth", "ratio of CPU time", (*rows, many_over_few(options)))


def late_over_early(method: str, options: Options) -> Row:
    """CPU time of the tasks 28 to 30 over that of the tasks 9 to 11."""
    stream = options.stream("clinc150", 15, TASKS)
    learner = built(method, options.encoder, settings_of(method, stream, SETTINGS))
    seconds = [cpu_time(lambda task=task: learner.learn(task)) for task in stream.tasks]
    return ratio(f"{method} with replay_budget: task 30 / task 10", seconds[27:30], seconds[8:11], 1.2)


def many_over_few(options: Options) -> Row:
    """`instant` learns equally many texts of many classes and of few; embedding them is left out."""
    texts = 1_000 if options.is_quick else TEXTS
    times: dict[int, list[float]] = {FEW: [], MANY: []}
    for _ in range(options.times(3)):
        for classes, seconds in times.items():
            learner: Any = built("instant", options.encoder, {})
            shown = task(range(classes), texts // classes)
            made_up = MadeUp(learner.encoder.representation_size)(shown.train)
            rows = dict(zip(shown.train, made_up, strict=True))
            learner.embedder = lambda asked, rows=rows: torch.stack([rows[example] for example in asked])
            seconds.append(cpu_time(lambda learner=learner, shown=shown: learner.learn(shown)))
    return ratio(f"instant: {MANY} classes / {FEW} classes", times[MANY], times[FEW], 1.4)
