"""Compare the runs below two folders: equal accuracy matrices, class orders and predictions.

    python benchmarks/compare_runs.py runs/before runs/after

For changes that must not change numbers. Runs are paired by benchmark, method and round.
"""

import argparse
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

ROUND = re.compile(r"[a-z]+-(\d+)")  # round-R, and seed-R as the folders were called once
COMPARED = ("class_order", "accuracy_matrix", "accuracy_after_task", "final_accuracy", "forgetting_rate")


def runs_below(folder: Path) -> dict[tuple[str, str, int], Path]:
    found = {}
    for path in folder.glob("*/*/*/result.json"):
        match = ROUND.fullmatch(path.parent.name)
        if match:
            found[path.parts[-4], path.parts[-3], int(match[1])] = path
    return found


def predictions(result: Path) -> list[Any]:
    name = json.loads(result.read_text(encoding="utf-8"))["predictions"]
    path = result.with_name(name)
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).split(b"\n")
    return [json.loads(line) for line in lines if line]


def differences(before: Path, after: Path) -> list[str]:
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    found = [key for key in COMPARED if old[key] != new[key]]
    return found + ([] if predictions(before) == predictions(after) else ["predictions"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    options = parser.parse_args()
    before, after = runs_below(options.before), runs_below(options.after)
    changed = 0
    for key in sorted(before.keys() | after.keys()):
        if key not in before or key not in after:
            print(*key, "only", "after" if key in after else "before")
        elif found := differences(before[key], after[key]):
            changed += 1
            print(*key, "differs in", ", ".join(found))
    both = before.keys() & after.keys()
    print(f"{len(both) - changed} of {len(both)} runs that both folders have are equal.")
    sys.exit(int(changed > 0 or not both))


if __name__ == "__main__":
    main()
