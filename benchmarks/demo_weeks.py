"""Write the two weeks of `repcl demo` as files for `repcl bench`: weeks.csv, weeks-test.csv, weeks.json.

    python benchmarks/demo_weeks.py runs/weeks
    cd runs/weeks
    repcl bench --benchmark weeks.csv --test-file weeks-test.csv --class-order weeks.json \
        --method sequential --method joint --rounds 3 --out runs

The numbers of src/repcl/cli/demo/stored.toml come from these runs (results/two-weeks).
"""

import csv
import json
import sys
from pathlib import Path

from repcl.cli.demo.story import bundled_desk


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    desk = bundled_desk()
    parts = {
        "weeks.csv": desk.training_texts(desk.taught_classes),
        "weeks-test.csv": desk.test_texts(desk.taught_classes),
    }
    for name, examples in parts.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["text", "label"])
            table.writerows((example.text, example.label) for example in examples)
    (folder / "weeks.json").write_text(json.dumps(desk.weeks), encoding="utf-8")


if __name__ == "__main__":
    main()
