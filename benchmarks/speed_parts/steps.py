"""What steps of training cost beside those of plain methods, and beside their matrix products alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from repcl.data import TaskStream
from repcl.model.products import linear
from speed_parts.contenders import NAMES, built, contender, settings_of
from speed_parts.measured import Groups, Part, Row, cpu_time, ratio
from speed_parts.options import Options
from speed_parts.turns import Slice, in_turns

STAGES = ("initial learning", "replay")
# ours, theirs, the largest ratio wanted of a whole run
PAIRS = (
    ("fea", "plain fea", None),
    ("repcl", "plain repcl", 0.42),
    ("repcl", "plain fea", 0.97),
    ("repcl", "fea", None),
    ("repcl fast", "plain fea", 0.57),
    ("repcl fast", "repcl", None),
)
onednn = torch.ops.mkldnn._linear_pointwise
WIDTH = 1024  # of matrices that are multiplied at the processor's best rate


def measure(options: Options) -> Part:
    """Every contender learns the first two tasks of HWU64 with few texts of each class."""
    stream = options.first_tasks(24)
    changes = SHORT if options.is_quick else {"initial_epochs": 4, "replay_epochs": 4}
    in_turns({name: contender(name, options.first_tasks(4), options.encoder, SHORT) for name in NAMES})
    best = best_rate()
    found = in_turns({name: contender(name, stream, options.encoder, changes) for name in NAMES})
    best = max(best, best_rate())
    times = {name: by_stage(slices) for name, slices in found.items()}
    rows = [row for ours, theirs, aim in PAIRS for row in ratios(times, ours, theirs, aim)]
    return Part("steps", "ratio of CPU time", (*rows, over_products(stream, options, changes, times, best)))


SHORT: Mapping[str, Any] = {"initial_epochs": 1, "replay_epochs": 1}
"""To pay for what happens once in a process."""


def by_stage(slices: Sequence[Slice]) -> dict[str, list[float]]:
    """The times of each stage."""
    found: dict[str, list[float]] = {}
    for stage, seconds in slices:
        found.setdefault(stage, []).append(seconds)
    return found


def ratios(times: Mapping[str, Groups], ours: str, theirs: str, aim: float | None) -> list[Row]:
    """The ratio of two contenders in each stage, and of all they did."""
    what = f"{ours} / {theirs}"
    parts = [
        ratio(f"{what}: {stage}", times[ours][stage], times[theirs][stage])
        for stage in STAGES
        if stage in times[ours]
    ]
    return [*parts, ratio(f"{what}: whole run", times[ours], times[theirs], aim)]


def over_products(
    stream: TaskStream, options: Options, changes: Mapping[str, Any], times: Mapping[str, Groups], best: float
) -> Row:
    """A step of FEA over its matrix products, as if they were made at the processor's best rate."""
    method = built("fea", options.encoder, settings_of("fea", stream, changes))
    with FlopCounterMode(display=False, custom_mapping={onednn: operations}) as counter:
        for task in stream.tasks:
            method.learn(task)
    needed = counter.get_total_flops() / best
    return ratio("fea / its matrix products at the best rate", times["fea"], [needed], 1.5)


def operations(left: torch.Size, right: torch.Size, *_: Any, **__: Any) -> int:
    """Floating point operations of a product by oneDNN, which torch does not count by itself."""
    return 2 * left.numel() * right[0]


def best_rate() -> float:
    """Floating point operations in a second of large matrix products, by the faster library."""
    left, right = torch.randn(2, WIDTH, WIDTH)
    ways = (lambda: left @ right, lambda: linear(left, right))
    return 2 * WIDTH**3 / min(cpu_time(way) for _ in range(20) for way in ways)
