"""What an answer costs beside the bare encoder, by torch and by exports, and whether exports answer alike."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from predict_speed import bare

from repcl import ContinualClassifier
from repcl.classifier import ModelFolder
from repcl.classifier.answerer import open_answerer
from repcl.classifier.export import export_model
from repcl.classifier.exported import Exported, leads
from repcl.data import Example
from speed_parts.measured import Part, Row, cpu_time, exact, ratio_of_medians
from speed_parts.options import Options

METHODS = {"instant": {}, "fea": {"initial_epochs": 2, "replay_epochs": 1}}
PRECISIONS = ("fp32", "int8")
# of one text and of many; torch, then the exports
AIMS_OF_ONE = {"torch": 1.2, "fp32": None, "int8": 0.25}
AIMS_OF_MANY = {"torch": 1.05, "fp32": None, "int8": 0.4}
FEWEST_ALIKE, MOST_LOST = 99.5, 0.3


def measure(options: Options) -> Part:
    """Classifiers learn some texts of HWU64 and answer its test texts."""
    stream = options.stream("hwu64", 20)
    train = [example for task in stream.tasks for example in task.train]
    test = [example for task in stream.tasks for example in task.test]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for method, settings in METHODS.items():
            classifier = ContinualClassifier(method, options.encoder, settings=settings, device="cpu")
            classifier.fit(train, [example.label for example in train])
            path = Path(folder) / method
            classifier.save(path)
            exports = {precision: exported(path, precision) for precision in PRECISIONS}
            rows += alike(method, classifier, exports, test)
            if method == "instant":
                rows = [*times(classifier, exports, [one.text for one in test], options), *rows]
    return Part("answers", "ratio of CPU time, or percent", tuple(rows))


def exported(path: Path, precision: Any) -> Exported:
    """A copy of a model that answers by an export, with one thread."""
    copied = path.with_name(f"{path.name}-{precision}")
    shutil.copytree(path, copied)
    folder = ModelFolder(copied)
    with folder.lock("exporting"):
        export_model(folder, precision=precision)
    return open_answerer(copied, threads=1)


def alike(
    method: str, classifier: ContinualClassifier, exports: dict[str, Exported], test: Sequence[Example]
) -> list[Row]:
    """How many texts exports answer as torch does, and how much accuracy they lose."""
    rows = []
    expected = classifier.predict(list(test))
    labels = np.array([example.label for example in test])
    for precision, answerer in exports.items():
        found = answerer.classes_[answerer.answer(test).probabilities.argmax(axis=1)]
        lost = 100 * float((expected == labels).mean() - (found == labels).mean())
        differing = 100 * float((found != expected).mean())
        rows += [
            exact(f"{method}: {precision}, other answers than torch, %", differing, 100 - FEWEST_ALIKE),
            exact(f"{method}: {precision}, accuracy lost, points", lost, MOST_LOST),
        ]
        if answerer.export.second is not None:
            rows.append(exact(f"{method}: {precision}, asked again in fp32, %", asked_again(answerer, test)))
    return rows


def asked_again(answerer: Exported, test: Sequence[Example]) -> float:
    """How many texts of a hundred the first graph of an export is in doubt of."""
    first = copy(answerer)
    first.export = answerer.export.model_copy(update={"second": None})
    return 100 * float((leads(first.scores(test)[0]) < answerer.export.second.doubt).mean())


def times(
    classifier: ContinualClassifier, exports: dict[str, Exported], texts: Sequence[str], options: Options
) -> list[Row]:
    """One text at a time, then a thousand at once, all in turns."""
    ways: dict[str, Callable[[list[str]], object]] = {
        "bare": lambda asked: bare(classifier, asked),
        "torch": classifier.predict,
    }
    for precision, answerer in exports.items():
        ways[precision] = lambda asked, answerer=answerer: answerer.answer(
            [Example(one, "") for one in asked]
        )
    random = np.random.default_rng(0)
    number = iter(range(10**9))

    def fresh(size: int) -> list[str]:
        """Texts with a number, for a text that was seen before is not encoded again."""
        first = int(random.integers(len(texts)))
        return [f"{texts[(first + at) % len(texts)]} {next(number)}" for at in range(size)]

    rows = []
    for size, repeat, aims in ((1, 60, AIMS_OF_ONE), (1000, 3, AIMS_OF_MANY)):
        found: dict[str, list[float]] = {way: [] for way in ways}
        for answer in ways.values():
            answer(fresh(2))
        for _ in range(options.times(repeat)):
            for way, answer in ways.items():
                asked = fresh(size)
                found[way].append(cpu_time(lambda answer=answer, asked=asked: answer(asked)))
        what = "one text" if size == 1 else f"{size} texts"
        for way, aim in aims.items():
            rows.append(ratio_of_medians(f"{what}: {way} / bare encoder", found[way], found["bare"], aim))
    return rows
