"""What a revision of twenty new texts takes on disk.

    REPCL_DATA=/path/to/data python benchmarks/revision_size.py

`instant` learns 2,000 training texts of BANKING77, then six times twenty more, loaded and saved each time.
"""

import tempfile
import warnings
from pathlib import Path

from repcl import ContinualClassifier
from repcl.benchmarks import load_benchmark

ROUND, FIRST, MORE, TIMES = 5, 2000, 20, 6


def main() -> None:
    examples = [one for task in load_benchmark("banking77", round=ROUND).tasks for one in task.train]
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        classifier = ContinualClassifier("instant", device="cpu", tolerance=1.0)
        for number in range(TIMES + 1):
            end = FIRST + MORE * number
            lesson = examples[end - MORE : end] if number else examples[:FIRST]
            classifier.partial_fit(lesson, [one.label for one in lesson])
            before = size(model)
            classifier.save(model)
            print(f"revision {number + 1}: {(size(model) - before) / 1e6:+.2f} MB", flush=True)
            classifier = ContinualClassifier.load(model, device="cpu")


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
