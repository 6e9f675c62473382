"""What it costs to start: CPU time of commands as ratios to `python -c "import torch"`.

    python benchmarks/startup.py [--repeat 5]

CPU time counts user and system time of the whole process; the smallest of several is taken, for anything else
that the machine does can only add to it.
"""

import argparse
import os
import resource
import subprocess
import sys

REPCL = [sys.executable, "-m", "repcl"]
REFERENCE = [sys.executable, "-c", "import torch"]
STARTS = {
    "import repcl": ([sys.executable, "-c", "import repcl"], 0.1),
    "repcl --help": ([*REPCL, "--help"], 0.3),
    "repcl list methods": ([*REPCL, "list", "methods"], 0.3),
    "repcl learn --nonsense": ([*REPCL, "learn", "--nonsense"], 0.3),
    "repcl history of no model": ([*REPCL, "history", "no-such-model"], 0.5),
}


def cpu_seconds(command: list[str]) -> float:
    """User and system time of a command that has ended."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as it is installed: compiled once
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=False, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def smallest(command: list[str], repeat: int) -> float:
    cpu_seconds(command)  # the first one reads files that the others find in memory
    return min(cpu_seconds(command) for _ in range(repeat))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    torch = smallest(REFERENCE, repeat)
    print(f"{'':28} {'CPU s':>7} {'ratio':>6} {'bar':>5}")
    print(f"{'python -c import torch':28} {torch:7.2f} {1:6.2f}")
    missed = 0
    for name, (command, bar) in STARTS.items():
        seconds = smallest(command, repeat)
        missed += seconds / torch > bar
        print(f"{name:28} {seconds:7.2f} {seconds / torch:6.2f} {bar:5.2f}")
    sys.exit(int(missed > 0))


if __name__ == "__main__":
    main()
