"""How often `drift` speaks of a change: when nothing changed, and when something did.

    REPCL_DATA=/path/to/data python benchmarks/drift.py [--benchmark hwu64] [--draws 40] [--json]

Training texts only. A classifier learns 2,000 texts of nine tenths of the classes; then 300 others come in:
of the same classes in the same shares; with 15 % of left-out classes among them; with one class ten times as
frequent as the average class. Each is compared with what was learned, and with 300 earlier texts.
REPCL_EMBEDDINGS names a folder for embeddings.
"""

import argparse
import json
import os
from collections import Counter

import numpy as np

from repcl import ContinualClassifier
from repcl.benchmarks import load_benchmark
from repcl.data import Example

COMING_IN, LEARNED, MODELS = 300, 2000, 4


def main() -> None:
    options = read_options()
    stream = load_benchmark(options.benchmark, data_dir=options.data_dir, round=0)
    texts = list({one.text: one for task in stream.tasks for one in task.train}.values())
    said: Counter[str] = Counter()
    for number in range(MODELS):
        said += measure(options, texts, number)
    draws = MODELS * (options.draws // MODELS)
    shares = {case: said[case] / draws for case in CASES}
    if options.json:
        print(json.dumps({"options": vars(options), "draws": draws, "said_to_have_changed": shares}))
        return
    print(f"{options.benchmark}, {draws} draws; share of draws in which a change was found")
    print("\n".join(f"{case}: {share:.0%}" for case, share in shares.items()))


CASES = [
    f"{what}, against {reference}"
    for what in ("nothing changed", "15 % of unlearned classes", "one class ten times as frequent")
    for reference in ("what was learned", "earlier texts")
]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="false and true alarms of drift")
    parser.add_argument("--benchmark", default="hwu64")
    parser.add_argument("--method", default="instant")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--data-dir", default=os.environ.get("REPCL_DATA"))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure(options: argparse.Namespace, texts: list[Example], number: int) -> Counter[str]:
    draw = np.random.default_rng(number)
    names = draw.permutation(sorted({one.label for one in texts})).tolist()
    left_out = set(names[: len(names) // 10])
    known = shuffled([one for one in texts if one.label not in left_out], draw)
    strange = [one for one in texts if one.label in left_out]
    classifier = ContinualClassifier(options.method, seed=number)
    start, rest = known[:LEARNED], known[LEARNED : LEARNED + 2500]
    classifier.fit(start, [one.label for one in start])
    said: Counter[str] = Counter()
    for _ in range(options.draws // MODELS):
        some = shuffled(rest, draw)
        earlier, now = some[:COMING_IN], some[COMING_IN : 2 * COMING_IN]
        new = shuffled(strange, draw)[: round(0.15 * COMING_IN)]
        swollen = next(name for name in names[len(left_out) :] if sum(one.label == name for one in now) >= 2)
        often = [one for one in some[COMING_IN:] if one.label == swollen][: 10 * COMING_IN // len(names)]
        comings = (now, [*now[len(new) :], *new], [*now[len(often) :], *often])
        found = [
            classifier.drift(coming, reference).is_changed
            for coming in comings
            for reference in (None, earlier)
        ]
        said += Counter(case for case, is_changed in zip(CASES, found, strict=True) if is_changed)
    return said


def shuffled(examples: list[Example], draw: np.random.Generator) -> list[Example]:
    return [examples[index] for index in draw.permutation(len(examples))]


if __name__ == "__main__":
    main()
