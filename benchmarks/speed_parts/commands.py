"""What commands cost beside `python -c "import torch"`: CPU time of whole processes."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from startup import REFERENCE, REPCL, cpu_seconds

from repcl import ContinualClassifier
from repcl.benchmarks import load_benchmark
from speed_parts.answers import PRECISIONS, exported
from speed_parts.measured import Part, ratio_of_medians
from speed_parts.options import Options

TEXT = "where is my parcel?"
TAUGHT, MORE = 200, 20
AIMS = {
    "--help": 0.3,
    "predict one text": 3.3,
    "predict one text, fp32 export": 0.5,
    "predict one text, int8 export": 0.5,
    f"learn {MORE} texts": 4.0,
}


def measure(options: Options) -> Part:
    """All commands in turns, each in a new process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = prepare(folder, options)
        found: dict[str, list[float]] = {what: [] for what in commands}
        for turn in range(-1, options.times(5)):  # the first one reads files that the others find in memory
            for what, command in commands.items():
                fresh = folder / "taught"
                shutil.rmtree(fresh, ignore_errors=True)
                shutil.copytree(folder / "desk", fresh)
                seconds = cpu_seconds(command)
                if turn >= 0:
                    found[what].append(seconds)
    rows = [ratio_of_medians(what, found[what], found["import torch"], aim) for what, aim in AIMS.items()]
    return Part("commands", 'CPU time / that of python -c "import torch"', tuple(rows))


def prepare(folder: Path, options: Options) -> Mapping[str, list[str]]:
    """A model that knows some texts of the demo, its exports, a file of more texts, and the commands."""
    stream = load_benchmark("demo", round=0)
    examples = [example for task in stream.tasks for example in task.train][: TAUGHT + MORE]
    classifier = ContinualClassifier("instant", options.encoder, device="cpu")
    classifier.fit(examples[:TAUGHT], [example.label for example in examples[:TAUGHT]])
    classifier.save(folder / "desk")
    for precision in PRECISIONS:
        exported(folder / "desk", precision)
    lines = [f"{example.text}\t{example.label}" for example in examples[TAUGHT:]]
    (folder / "more.tsv").write_text("\n".join(["text\tlabel", *lines]), encoding="utf-8")
    asked = {
        f"predict one text{named}": [*REPCL, "predict", str(folder / model), TEXT]
        for named, model in (
            ("", "desk"),
            (", fp32 export", "desk-fp32"),
            (", int8 export", "desk-int8"),
        )
    }
    learned = [*REPCL, "learn", str(folder / "taught"), str(folder / "more.tsv")]
    return {
        "import torch": REFERENCE,
        "--help": [*REPCL, "--help"],
        **asked,
        f"learn {MORE} texts": learned,
    }
