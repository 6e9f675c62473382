"""What a thousand classes cost a frozen learner: time and memory on the way there.

    python benchmarks/many_classes.py [--method instant] [--classes 1000] [--texts 100] [--json]

Embeddings are made up; what real ones cost is so many texts times the encoder's seconds a text, which are
measured apart on short texts. Classes arrive in four tasks. After a quarter, a half and all of them: seconds
of the processor and of the clock so far, peak memory of the process since the first task, bytes of statistics
as they are saved, and each divided by the number of classes. Linear growth is a quotient that does not rise.
"""

import argparse
import json
import resource
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from repcl.data import Example, Task
from repcl.methods import build_method
from repcl.model import Embedder

SPREAD = 0.7
TIMED = 200


class MadeUp:
    """Embeddings around a center of each class; labels are numbers."""

    def __init__(self, classes: int, size: int) -> None:
        self.generator = torch.Generator().manual_seed(0)
        self.centers = torch.randn(classes, size, generator=self.generator)

    def __call__(self, examples: Sequence[Example]) -> Tensor:
        """Embeddings of examples, (examples, size)."""
        places = torch.tensor([int(example.label) for example in examples])
        noise = torch.randn(len(places), self.centers.shape[1], generator=self.generator)
        return self.centers[places] + SPREAD * noise


def main() -> None:
    options = read_options()
    torch.set_num_threads(1)
    method: Any = build_method(options.method, "sentence", encoder=options.encoder, settings={}, device="cpu")
    real = seconds_a_text(method.embedder)
    method.embedder = MadeUp(options.classes, method.encoder.representation_size)
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


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="time and memory of many classes")
    parser.add_argument("--method", default="instant")
    parser.add_argument("--encoder", default="minilm-l6")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--texts", type=int, default=100, help="of each class")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


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


if __name__ == "__main__":
    main()
