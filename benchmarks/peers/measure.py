"""One peer on one stream, task by task; started by run.py in the peer's own environment.

    python benchmarks/peers/measure.py adaptive adaptive-classifier stream.json result.json [--reload]

With --reload it is saved and loaded after every task, as in daily use.

A text with marked entities is an object of the stream (`{"text": ..., "head": ..., "tail": ...}`). A peer
with `TAKES_SPANS` gets it as it is. Others have no place for entities, and get "head, tail: text".
"""

import argparse
import importlib
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contract import Peer

SINGLE = 20  # texts that are asked one by one


def main() -> None:
    parser = argparse.ArgumentParser(description="one peer on one stream")
    parser.add_argument("peer")
    parser.add_argument("learner")
    parser.add_argument("stream", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--reload", action="store_true")
    options = parser.parse_args()
    stream = json.loads(options.stream.read_text(encoding="utf-8"))
    module = importlib.import_module(f"peer_{options.peer}")
    if not getattr(module, "TAKES_SPANS", False):
        stream["tasks"] = [{part: in_words(task[part]) for part in task} for task in stream["tasks"]]
    make = module.LEARNERS[options.learner]
    learner = make(Path(stream["encoder"]))
    result = {
        "learner": options.learner,
        "reload": options.reload,
        **measured(learner, make, stream, options),
    }
    options.result.write_text(json.dumps(result), encoding="utf-8")


def in_words(part: Any) -> dict[str, list[str]]:
    """Texts that any tool can read: entities, if there are any, are named in front."""
    return {**part, "texts": [text if isinstance(text, str) else named(text) for text in part["texts"]]}


def named(marked: Any) -> str:
    text: str = marked["text"]
    entities = [text[marked[name]["start"] : marked[name]["end"]] for name in ("head", "tail")]
    return f"{', '.join(entities)}: {text}"


def measured(learner: Peer, make: Any, stream: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Accuracy after each task on every task so far, times, bytes stored, and the last answers."""
    seconds, matrix, found, stored = [], [], {}, 0
    for number, task in enumerate(stream["tasks"]):
        start = time.process_time()
        learner.learn(task["train"]["texts"], task["train"]["labels"])
        seconds.append(time.process_time() - start)
        with tempfile.TemporaryDirectory() as folder:
            if options.reload or number == len(stream["tasks"]) - 1:
                stored = learner.save(Path(folder))
            if options.reload:
                learner = make(Path(stream["encoder"]))
                learner.load(Path(folder))
            found = {index: answered(learner, one) for index, one in enumerate(stream["tasks"][: number + 1])}
        matrix.append([share_right(found[index], stream["tasks"][index]) for index in found])
    labels = [label for task in stream["tasks"] for label in task["test"]["labels"]]
    answers = [answer for index in sorted(found) for answer in found[index]]
    classes = sorted({*labels, *answers})
    return {
        "accuracy": share(answers, labels),
        "macro_recall": macro_recall(answers, labels),
        "forgetting": forgetting(matrix),
        "seconds_per_task": sum(seconds) / len(seconds),
        "milliseconds_per_prediction": single(learner, stream["tasks"][-1]["test"]["texts"][:SINGLE]),
        "bytes_stored": stored,
        "matrix": matrix,
        "classes": classes,
        "labels": [classes.index(label) for label in labels],
        "answers": [classes.index(answer) for answer in answers],
    }


def answered(learner: Peer, task: Any) -> list[str]:
    return learner.predict(task["test"]["texts"])


def share_right(answers: Sequence[str], task: Any) -> float:
    return share(answers, task["test"]["labels"])


def share(answers: Sequence[str], labels: Sequence[str]) -> float:
    return sum(one == other for one, other in zip(answers, labels, strict=True)) / len(labels)


def macro_recall(answers: Sequence[str], labels: Sequence[str]) -> float:
    """Mean over classes of the share of right answers."""
    own: dict[str, list[bool]] = {}
    for answer, label in zip(answers, labels, strict=True):
        own.setdefault(label, []).append(answer == label)
    return sum(sum(right) / len(right) for right in own.values()) / len(own)


def forgetting(matrix: Sequence[Sequence[float]]) -> float | None:
    """Mean drop from each old task's best accuracy to its last one."""
    last = len(matrix) - 1
    if not last:
        return None
    drops = [max(row[task] for row in matrix[task:last]) - matrix[last][task] for task in range(last)]
    return sum(drops) / last


def single(learner: Peer, texts: Sequence[str]) -> float:
    """Processor milliseconds for a text that is asked alone, and was not asked before."""
    start = time.process_time()
    for text in texts:
        learner.predict([not_asked_before(text)])
    return 1000 * (time.process_time() - start) / len(texts)


def not_asked_before(text: Any) -> Any:
    if isinstance(text, str):
        return f"please, {text}"
    return {**text, "text": f"{text['text']} please"}  # behind the entities, which stay where they are


if __name__ == "__main__":
    main()
