"""How much a classifier costs beside its bare encoder: one text at a time, and a thousand at once.

    python benchmarks/predict_speed.py [--method instant] [--encoder minilm-l6] [--texts 1000] [--json]

Ratios are printed, so that numbers from different machines can be compared. Bare means: the same encoder, on
the same texts, tokenized, in batches of 64 by length, pooled; nothing else. One thread, and CPU
seconds instead of wall time, so that a busy machine does not change them much.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable

import torch

from repcl import ContinualClassifier
from repcl.benchmarks import load_benchmark
from repcl.data import Batches, Example

BATCH = 64


def main() -> None:
    options = read_options()
    torch.set_num_threads(1)
    stream = load_benchmark("demo", round=0)
    classifier = ContinualClassifier(options.method, options.encoder, settings=json.loads(options.settings))
    train = [example for task in stream.tasks for example in task.train][: options.train]
    classifier.fit(train, [example.label for example in train])
    with tempfile.TemporaryDirectory() as folder:
        classifier.save(folder + "/model")
        classifier = ContinualClassifier.load(folder + "/model", device="cpu")
    texts = [example.text for task in stream.tasks for example in task.test]
    fresh = [f"{texts[number % len(texts)]} {number}" for number in range(4 * options.texts + 200)]
    classifier.predict(fresh[:1])
    one = [seconds(lambda text=text: classifier.predict([text])) for text in fresh[1:41]]
    bare_one = [seconds(lambda text=text: bare(classifier, [text])) for text in fresh[41:81]]
    ratios, rates = [], []
    for turn in range(3):  # in turns, for a shared machine is never equally fast
        part = fresh[100 + turn * options.texts :][: options.texts]
        alone = seconds(lambda part=part: bare(classifier, part))
        whole = seconds(lambda part=part: classifier.predict(part))
        ratios.append(alone / whole)
        rates.append(len(part) / whole)
    result = {
        "method": options.method,
        "one_text_median_ms": 1000 * statistics.median(one),
        "one_text_bare_median_ms": 1000 * statistics.median(bare_one),
        "texts_per_second": max(rates),
        "throughput_against_bare_encoder": statistics.median(ratios),
    }
    print(
        json.dumps(result) if options.json else "\n".join(f"{key}: {value}" for key, value in result.items())
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="prediction speed")
    parser.add_argument("--method", default="instant")
    parser.add_argument("--encoder", default="minilm-l6")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--train", type=int, default=200, help="texts to learn first")
    parser.add_argument("--settings", default="{}", help="of the method, JSON")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@torch.no_grad()
def bare(classifier: ContinualClassifier, texts: list[str]) -> None:
    """Tokenize, encode and pool, as little as it takes."""
    encoder = classifier.method_.encoder
    rows, _ = encoder.readout.prepare(
        [Example(text, "") for text in texts],
        encoder.tokenizer.backend_tokenizer,
        max_length=encoder.max_length,
    )
    batches = Batches(
        rows,
        [0] * len(rows),
        batch_size=BATCH,
        pad_id=int(encoder.tokenizer.pad_token_id),
        device=encoder.device,
    )
    for batch in batches:
        encoder.represent(batch)


if __name__ == "__main__":
    main()
