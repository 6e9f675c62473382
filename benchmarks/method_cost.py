"""What a whole run of each method costs, relative to FEA: the numbers in `methods/table.py`.

    python benchmarks/method_cost.py [--benchmark demo] [--method NAME]... [--preset cpu] [--tasks N]
                                     [--max-train-per-class N] [--max-test-per-class N] [--data-dir DIR]

One thread, round 0, and CPU seconds instead of wall time, so that a busy machine does not change them
much. FEA is always measured, first. ACA takes relations only:

    python benchmarks/method_cost.py --benchmark fewrel --tasks 3 --max-train-per-class 16 --method aca
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

from repcl.benchmarks import load_benchmark
from repcl.experiments import run_experiment
from repcl.methods import METHODS


def main() -> None:
    options = read_options()
    stream = load_benchmark(
        options.benchmark,
        data_dir=options.data_dir,
        max_train_per_class=options.max_train_per_class,
        max_test_per_class=options.max_test_per_class,
    )
    stream = replace(stream, tasks=stream.tasks[: options.tasks])
    rows = options.method or [name for name, method in METHODS.items() if stream.kind in method.kinds]
    run_experiment("ncm", stream, preset="smoke")  # pays for what happens once in a process
    reference = 0.0
    for row in dict.fromkeys(["fea", *rows]):
        before = time.process_time()
        run_experiment(row, stream, preset=options.preset)
        spent = time.process_time() - before
        reference = reference or spent
        print(f"{row:16} {spent:8.1f} s {spent / reference:6.2f}", flush=True)


def read_options() -> argparse.Namespace:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--benchmark", default="demo")
    parser.add_argument("--method", action="append")
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--max-train-per-class", type=int)
    parser.add_argument("--max-test-per-class", type=int)
    parser.add_argument("--data-dir", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
