"""The tools that people would pick instead, on the same texts, orders, budgets and encoder.

    REPCL_DATA=/path/to/data python benchmarks/peers/run.py [--peer adaptive] [--learner NAME]
        [--benchmark banking77:15] [--rounds 3] [--reload] [--environments DIR] [--out results/peers]
    python docs/make_peers.py     # docs/peers.md, from what was measured

Every peer is a file, `peer_NAME.py` (contract.py says what it holds). One with requirements of its own gets
an environment, made the first time with `venv` and pip; PIP_ARGS holds further arguments for pip. Results
that are there already are not measured again.

REPCL_EMBEDDINGS names a folder for embeddings of peers that run in this environment.
"""

import argparse
import importlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from repcl.benchmarks import load_benchmark
from repcl.data import Example
from repcl.experiments.runs.result import processor_name
from repcl.model.bundled import DEFAULT_ENCODER, ENCODERS

HERE = Path(__file__).parent
PEERS = sorted(path.stem.removeprefix("peer_") for path in HERE.glob("peer_*.py"))
SETS = ("demo", "hwu64", "banking77:15", "banking77:50", "clinc150:50", "fewrel:50:50")

ALONE = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""For processor time that can be compared: one thread."""


def main() -> None:
    options = read_options()
    for name in options.benchmark:
        for number in range(options.rounds):
            for peer in options.peer:
                measure(name, number, peer, options)


def measure(name: str, number: int, peer: str, options: argparse.Namespace) -> None:
    """Measure all learners of a peer on a stream, unless that was done before."""
    module = importlib.import_module(f"peer_{peer}")
    for learner in wanted(module, options):
        result = path_of(name, number, learner, options)
        if result.exists():
            continue
        python = environment(peer, module.REQUIREMENTS, options.environments)
        result.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            stream = Path(folder) / "stream.json"
            stream.write_text(json.dumps(read_stream(name, number)), encoding="utf-8")
            part = Path(folder) / "result.json"
            words = [python, HERE / "measure.py", peer, learner, stream, part]
            words += ["--reload"] if options.reload else []
            subprocess.run([*map(str, words)], check=True, env=os.environ | ALONE)
            measured = {**json.loads(part.read_text(encoding="utf-8")), "processor": processor_name()}
        result.write_text(json.dumps(measured), encoding="utf-8")
        print(f"{name}, round {number}, {learner}: {measured['accuracy']:.1%}", flush=True)


def read_stream(name: str, number: int) -> dict[str, Any]:
    """A stream as plain objects; `fewrel:50:20` has at most 50 training and 20 test texts per class."""
    benchmark, *most = name.split(":")
    train, test = [*map(int, most), None, None][:2]
    stream = load_benchmark(benchmark, round=number, max_train_per_class=train, max_test_per_class=test)
    tasks = [{"train": plain(task.train), "test": plain(task.test)} for task in stream.tasks]
    return {"encoder": str(ENCODERS[DEFAULT_ENCODER].locate()), "tasks": tasks}


def plain(examples: Sequence[Example]) -> dict[str, list[Any]]:
    """Texts and labels; a text with marked entities is an object."""
    return {"texts": [plain_text(one) for one in examples], "labels": [one.label for one in examples]}


def plain_text(example: Example) -> Any:
    row = example.to_json()
    del row["label"]
    return row if len(row) > 1 else example.text


def environment(peer: str, requirements: tuple[str, ...], folder: Path) -> Path:
    """The Python that has a peer's packages; made if it is not there."""
    if not requirements:
        return Path(sys.executable)
    python = folder / peer / "bin" / "python"
    done = folder / peer / "requirements.txt"
    if not done.exists() or done.read_text() != "\n".join(requirements):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder / peer)], check=True)
        further = shlex.split(os.environ.get("PIP_ARGS", ""))
        for requirement in requirements:  # one after another: the first says which build of torch it is
            subprocess.run([str(python), "-m", "pip", "install", "-q", *further, requirement], check=True)
        done.write_text("\n".join(requirements))
    return python


def path_of(name: str, number: int, learner: str, options: argparse.Namespace) -> Path:
    kind = "reload" if options.reload else "straight"
    folder: Path = options.out / name.replace(":", "-") / learner.replace(" ", "-")
    return folder / f"round-{number}-{kind}.json"


def wanted(module: Any, options: argparse.Namespace) -> list[str]:
    return [name for name in module.LEARNERS if not options.learner or name in options.learner]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="the tools that people would pick instead")
    parser.add_argument("--peer", action="append", choices=PEERS)
    parser.add_argument("--learner", action="append", help="of those peers; all if not given")
    parser.add_argument("--benchmark", action="append", help="NAME[:TRAIN[:TEST]] texts per class")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reload", action="store_true", help="save and load after every task")
    parser.add_argument("--environments", type=Path, default=Path(".peers"))
    parser.add_argument("--out", type=Path, default=Path("results/peers"))
    options = parser.parse_args()
    options.peer, options.benchmark = options.peer or PEERS, options.benchmark or list(SETS)
    options.environments = options.environments.absolute()  # environments do not move
    return options


if __name__ == "__main__":
    main()
