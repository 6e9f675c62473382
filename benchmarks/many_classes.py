"""What very many classes cost a frozen learner: time and memory on the way there, and of its whole life.

    python benchmarks/many_classes.py [--method instant] [--classes 1000] [--texts 100] [--json]
    python benchmarks/many_classes.py --life --classes 10000 --texts 10 [--json]

Embeddings are made up; what real ones cost is so many texts times the encoder's seconds per text, which are
measured apart on short texts.

Without `--life`, classes arrive in four tasks. After a quarter, a half and all of them: CPU seconds
and wall time so far, peak memory of the process since the first task, bytes of statistics as
they are saved, and each divided by the number of classes. Linear growth is a quotient that does not rise.

With `--life`, a classifier is taught, saved, loaded, taught one more class, asked, and a class is renamed,
merged and removed, with an eighth, a quarter, a half and all of the classes, each in a process of its own:
CPU seconds for each step, how many times that is what half the classes took, and the peak memory
of the whole process. A step is linear if twice the classes take at most twice the time; a quadratic one takes
four times as long.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from repcl import ContinualClassifier
from repcl.data import Example, Task
from repcl.methods import build_method
from repcl.model import Embedder

SPREAD = 0.7
TIMED = 200
ASKED = 100
FEWER = (8, 4, 2, 1)


class MadeUp:
    """Embeddings around a center of each class; a text is the number of its class and its own."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, examples: Sequence[Example]) -> Tensor:
        """Embeddings of examples, (examples, size)."""
        found = torch.empty(len(examples), self.size)
        for row, example in zip(found, examples, strict=True):
            row.copy_(self._embedding(*map(int, example.text.split())))
        return found

    def _embedding(self, name: int, number: int) -> Tensor:
        center, noise = (
            torch.randn(self.size, generator=torch.Generator().manual_seed(seed))
            for seed in (name, 10**9 + 10**4 * name + number)
        )
        return center + SPREAD * noise


def main() -> None:
    options = read_options()
    torch.set_num_threads(1)
    if options.one:
        print(json.dumps(one_life(options)))
    elif options.life:
        show_lives(options)
    else:
        grow(options)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="time and memory of many classes")
    parser.add_argument("--method", default="instant")
    parser.add_argument("--encoder", default="minilm-l6")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--texts", type=int, default=100, help="of each class")
    parser.add_argument("--life", action="store_true", help="teach, save, load, teach again, ask, change")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


# ---- the way there ------------------------------------------------------------------------------


def grow(options: argparse.Namespace) -> None:
    method: Any = build_method(options.method, "sentence", encoder=options.encoder, settings={}, device="cpu")
    real = seconds_a_text(method.embedder)
    method.embedder = MadeUp(method.encoder.representation_size)
    before, start, clock = peak_bytes(), time.process_time(), time.perf_counter()
    rows = []
    step = options.classes // 4
    for first in range(0, options.classes, step):
        method.learn(task(range(first, first + step), options.texts))
        known = len(method.classes)
        if known != 3 * step:
            rows.append(
                {
                    "classes": known,
                    "processor_seconds": time.process_time() - start,
                    "clock_seconds": time.perf_counter() - clock,
                    "peak_megabytes": (peak_bytes() - before) / 1e6,
                    "statistics_megabytes": method.statistics_bytes() / 1e6,
                }
            )
    if options.json:
        print(json.dumps({"method": options.method, "rows": rows, "embedding_seconds_a_text": real}))
    else:
        show(rows, real)


def task(classes: range, texts: int) -> Task:
    examples = [Example(f"{name} {number}", str(name)) for name in classes for number in range(texts)]
    return Task(tuple(map(str, classes)), examples, [])


def seconds_a_text(embedder: Embedder) -> float:
    texts = [
        Example(f"please change number {number} of my {number % 9} orders", "") for number in range(TIMED)
    ]
    embedder(texts[:8])
    start = time.process_time()
    embedder(texts[8:])
    return (time.process_time() - start) / (TIMED - 8)


def peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def show(rows: list[dict[str, float]], real: float) -> None:
    for row in rows:
        print(f"{row['classes']} classes:")
        for key, value in list(row.items())[1:]:
            print(f"  {key}: {value:.1f}, for each class {value / row['classes']:.4f}")
    print(f"real embedding: {1000 * real:.1f} ms of processor time a text")


# ---- a whole life -------------------------------------------------------------------------------


def one_life(options: argparse.Namespace) -> dict[str, float]:
    """CPU seconds for each step, and megabytes at the peak."""
    warnings.simplefilter("ignore")
    classes, texts, seconds = options.classes, options.texts, {}
    classifier: Any = ContinualClassifier(options.method, options.encoder, device="cpu")
    classifier.fit(["0 0", "1 0"], ["class 0", "class 1"])  # loads the encoder
    embed_made_up(classifier)

    def timed(name: str, step: Callable[[], object]) -> Any:
        start = time.process_time()
        found = step()
        seconds[name] = time.process_time() - start
        print(f"{classes} {name} {seconds[name]:.1f} s, {peak_bytes() / 1e6:.0f} MB", file=sys.stderr)
        return found

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model"
        timed("teach", lambda: classifier.partial_fit(*pairs(range(classes), texts)))
        timed("save", lambda: classifier.save(path))
        classifier = None  # its memory is free before it is loaded again
        loaded = timed("load", lambda: ContinualClassifier.load(path, device="cpu"))
        embed_made_up(loaded)
        timed("first answer", lambda: loaded.predict(["5 99999"]))
        timed("one more class", lambda: loaded.partial_fit(*pairs(range(classes, classes + 1), texts)))
        asked = [f"{name} {texts}" for name in range(0, classes, max(1, classes // ASKED))]
        answers = timed(f"{ASKED} answers", lambda: loaded.predict(asked))
        timed("rename", lambda: loaded.rename_class("class 0", "other"))
        timed("merge", lambda: loaded.merge_classes(["class 1", "class 2"], "both"))
        timed("remove", lambda: loaded.remove_class("class 3"))
        timed("save again", lambda: loaded.save(path))
    right = sum(answer == f"class {text.split()[0]}" for answer, text in zip(answers, asked, strict=True))
    return {**seconds, "peak megabytes": peak_bytes() / 1e6, "percent right": 100 * right / len(asked)}


def embed_made_up(classifier: Any) -> None:
    classifier.method_.embedder = MadeUp(classifier.method_.encoder.representation_size)


def pairs(classes: range, texts: int) -> tuple[list[str], list[str]]:
    named = [(f"{name} {number}", f"class {name}") for name in classes for number in range(1, texts + 1)]
    return [text for text, _ in named], [label for _, label in named]


def show_lives(options: argparse.Namespace) -> None:
    sizes = [options.classes // fewer for fewer in FEWER]
    lives = [start_life(options, size) for size in sizes]
    if options.json:
        print(json.dumps({"method": options.method, "classes": sizes, "lives": lives}))
        return
    print(f"{'':16}" + "".join(f"{size:>10,} classes" for size in sizes))
    for key in lives[0]:
        values = [life[key] for life in lives]
        growth = ["", *(f" ({now / max(before, 1e-9):.1f}x)" for before, now in pairwise(values))]
        print(f"{key:16}" + "".join(f"{f'{v:.1f}{g}':>18}" for v, g in zip(values, growth, strict=True)))


def start_life(options: argparse.Namespace, classes: int) -> dict[str, float]:
    words = ["--one", "--method", options.method, "--encoder", options.encoder]
    numbers = ["--classes", str(classes), "--texts", str(options.texts)]
    ended = subprocess.run([sys.executable, __file__, *words, *numbers], stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(ended.stdout)
    return found


if __name__ == "__main__":
    main()
