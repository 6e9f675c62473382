"""Compare methods over many tasks on training texts held out: test texts are never read.

    python benchmarks/held_out.py --method fea --method kdrk --round 5 --round 6 --out runs/held-out
                                  [--benchmark hwu64] [--tasks N] [--max-train-per-class 40]
                                  [--max-test-per-class 20] [--preset cpu] [--set KEY=VALUE]...
                                  [--data-dir DIR]

A quarter of the distinct training texts of each class is held out, as `repcl tune` does it; but that looks at
three tasks, and what a method loses little by little shows later. Runs are kept in `--out`, and one that was
stopped resumes from its last finished task. Rounds below 5 are those of the results, so they are refused.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from repcl.benchmarks import load_benchmark
from repcl.data import Example, Task, TaskStream
from repcl.experiments import run_experiment
from repcl.experiments.runs.spec import split_variant
from repcl.experiments.tuning.search import search_stream
from repcl.presets import load_preset, parse_overrides

FIRST_ROUND = 5


def main() -> None:
    options = read_options()
    names = [split_variant(row)[0] for row in options.method]
    overrides = parse_overrides(options.set, names, load_preset(options.preset))
    for number in options.round:
        stream = load_benchmark(options.benchmark, data_dir=options.data_dir, round=number)
        stream = search_stream(stream, tasks=options.tasks or len(stream.tasks))
        stream = capped(stream, options.max_train_per_class, options.max_test_per_class)
        for row in options.method:
            result = run_experiment(
                row,
                stream,
                preset=options.preset,
                settings=overrides[split_variant(row)[0]],
                out=options.out,
            )
            after = " ".join(
                f"{100 * share:5.1f}" for share in result.accuracy_after_task if share is not None
            )
            print(f"round {number} {row:16} {result.seconds.all:7.0f} s  {after}", flush=True)


def capped(stream: TaskStream, train: int, test: int) -> TaskStream:
    """The first texts of each class only."""
    tasks = [
        Task(task.classes, first_of_each(task.train, train), first_of_each(task.test, test))
        for task in stream.tasks
    ]
    return replace(stream, tasks=tuple(tasks), provenance=replace(stream.provenance, capped=True))


def first_of_each(examples: Sequence[Example], most: int) -> list[Example]:
    seen: Counter[str] = Counter()
    kept = []
    for example in examples:
        seen[example.label] += 1
        if seen[example.label] <= most:
            kept.append(example)
    return kept


def read_options() -> argparse.Namespace:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--benchmark", default="hwu64")
    parser.add_argument("--method", action="append", required=True)
    parser.add_argument("--round", action="append", type=int, required=True)
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--max-train-per-class", type=int, default=40)
    parser.add_argument("--max-test-per-class", type=int, default=20)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if min(options.round) < FIRST_ROUND:
        parser.error(f"Expected rounds from {FIRST_ROUND}, found {min(options.round)}: choose other rounds.")
    return options


if __name__ == "__main__":
    main()
