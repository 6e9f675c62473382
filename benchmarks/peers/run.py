"""The tools that people would pick instead, on the same texts, orders, budgets and encoder.

    REPCL_DATA=/path/to/data python benchmarks/peers/run.py [--peer adaptive] [--learner NAME]
        [--benchmark banking77:15] [--rounds 3] [--reload] [--show] [--environments DIR] [--out results/peers]

Every peer is a file, `peer_NAME.py` (contract.py says what it holds). One with requirements of its own gets
an environment, made the first time with `venv` and pip; PIP_ARGS holds further arguments for pip. Results
that are there already are not measured again. At the end a table of each benchmark is printed, and one of
all: mean and standard error over rounds, and whether ours is at least as good as the best peer, within one
standard error. That is at least the one of a share of the test texts: rounds of BANKING77 and CLINC150 differ
in the order of the classes only, which most learners do not depend on. With --show nothing is measured.

REPCL_EMBEDDINGS names a folder for embeddings of peers that run in this environment.
"""

import argparse
import importlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from repcl.benchmarks import load_benchmark
from repcl.model.bundled import DEFAULT_ENCODER, ENCODERS

HERE = Path(__file__).parent
PEERS = sorted(path.stem.removeprefix("peer_") for path in HERE.glob("peer_*.py"))
SETS = ("demo", "hwu64", "banking77:15", "banking77:50", "clinc150:50")
MEASURED = ("accuracy", "macro_recall")


def main() -> None:
    options = read_options()
    for name in [] if options.show else options.benchmark:
        for number in range(options.rounds):
            for peer in options.peer:
                measure(name, number, peer, options)
    for name in options.benchmark:
        show(name, options)
    if len(options.benchmark) > 1:
        show_all(options)


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
            subprocess.run([*map(str, words), *(["--reload"] if options.reload else [])], check=True)
            result.write_text(part.read_text(encoding="utf-8"), encoding="utf-8")
        print(
            f"{name}, round {number}, {learner}: {json.loads(result.read_text())['accuracy']:.1%}", flush=True
        )


def read_stream(name: str, number: int) -> dict[str, Any]:
    """A stream as plain texts; `banking77:15` has at most 15 training texts per class."""
    benchmark, _, most = name.partition(":")
    stream = load_benchmark(benchmark, round=number, max_train_per_class=int(most) if most else None)
    tasks = [{"train": plain(task.train), "test": plain(task.test)} for task in stream.tasks]
    return {"encoder": str(ENCODERS[DEFAULT_ENCODER].locate()), "tasks": tasks}


def plain(examples: Any) -> dict[str, list[str]]:
    return {"texts": [one.text for one in examples], "labels": [one.label for one in examples]}


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


def show(name: str, options: argparse.Namespace) -> None:
    """A row for each learner, and the verdict."""
    print(
        f"\n| {name} | accuracy | macro recall | forgetting | s a task | ms a text | MB stored |\n|---|"
        + "---|" * 6
    )
    means: dict[str, dict[str, tuple[float, float]]] = {}
    for learner in learners(options):
        results = read_results(name, learner, options)
        if results:
            print(row(learner, results))
            means[learner] = {key: mean_and_error(results, key) for key in MEASURED}
    tested = sum(len(task["test"]["texts"]) for task in read_stream(name, 0)["tasks"])
    for key in MEASURED:
        print(verdict(key, means, tested))


def show_all(options: argparse.Namespace) -> None:
    """Accuracy of each learner, and its macro recall, on every benchmark."""
    print(f"\n| accuracy / macro recall | {' | '.join(options.benchmark)} |")
    print("|---|" + "---|" * len(options.benchmark))
    for learner in learners(options):
        found = [read_results(name, learner, options) for name in options.benchmark]
        print(f"| {learner} | {' | '.join(map(cell, found))} |")


def cell(results: list[dict[str, Any]]) -> str:
    """Accuracy with its standard error, and macro recall, in percent; a dash where nothing was measured."""
    if not results:
        return "–"
    (accuracy, error), (recall, _) = (mean_and_error(results, key) for key in MEASURED)
    rounds = f" ± {error:.1f}" if len(results) > 1 else ""
    return f"{accuracy:.1f}{rounds} / {recall:.1f}"


def learners(options: argparse.Namespace) -> list[str]:
    """The names of all learners of the peers that are asked for."""
    modules = [importlib.import_module(f"peer_{peer}") for peer in options.peer]
    return [name for module in modules for name in wanted(module, options)]


def wanted(module: Any, options: argparse.Namespace) -> list[str]:
    return [name for name in module.LEARNERS if not options.learner or name in options.learner]


def read_results(name: str, learner: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """What was measured, round by round."""
    paths = [path_of(name, number, learner, options) for number in range(options.rounds)]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def row(learner: str, results: list[dict[str, Any]]) -> str:
    shares = ["{:.1f} ± {:.1f}".format(*mean_and_error(results, key)) for key in (*MEASURED, "forgetting")]
    costs = [
        statistics.mean(one[key] for one in results)
        for key in ("seconds_per_task", "milliseconds_per_prediction", "bytes_stored")
    ]
    return f"| {learner} | {' | '.join(shares)} | {costs[0]:.1f} | {costs[1]:.0f} | {costs[2] / 1e6:.1f} |"


def mean_and_error(results: list[dict[str, Any]], key: str) -> tuple[float, float]:
    """Mean and standard error over rounds, in percent."""
    values = [100 * (one[key] or 0.0) for one in results]
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return statistics.mean(values), error


def verdict(key: str, means: dict[str, dict[str, tuple[float, float]]], tested: int) -> str:
    """Whether the best of ours is as good as the best peer, within one standard error."""
    ours = {name: found[key] for name, found in means.items() if name.startswith("repcl")}
    peers = {name: found[key] for name, found in means.items() if not name.startswith("repcl")}
    if not ours or not peers:
        return f"{key}: nothing to compare"
    best, rival = max(ours, key=lambda name: ours[name][0]), max(peers, key=lambda name: peers[name][0])
    ahead = ours[best][0] - peers[rival][0]
    of_texts = (peers[rival][0] * (100 - peers[rival][0]) / tested) ** 0.5
    holds = ahead >= -max(ours[best][1], peers[rival][1], of_texts)
    return f"{key}: {best} is {ahead:+.1f} points from {rival}: {'holds' if holds else 'does not hold'}"


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="the tools that people would pick instead")
    parser.add_argument("--peer", action="append", choices=PEERS)
    parser.add_argument("--learner", action="append", help="of those peers; all if not given")
    parser.add_argument("--benchmark", action="append", help="a name, or name:texts per class")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reload", action="store_true", help="save and load after every task")
    parser.add_argument("--show", action="store_true", help="print what was measured before, and no more")
    parser.add_argument("--environments", type=Path, default=Path(".peers"))
    parser.add_argument("--out", type=Path, default=Path("results/peers"))
    options = parser.parse_args()
    options.peer, options.benchmark = options.peer or PEERS, options.benchmark or list(SETS)
    options.environments = options.environments.absolute()  # environments do not move
    return options


if __name__ == "__main__":
    main()
