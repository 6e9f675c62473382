"""The original files themselves, where `REPCL_DATA` points to them: counts and check values."""

import os
from collections import Counter
from pathlib import Path

import pytest

from repcl.benchmarks import BENCHMARKS, load_benchmark
from repcl.benchmarks.fewrel import LABELS as FEWREL_LABELS
from repcl.benchmarks.hwu64 import LABELS as HWU64_LABELS
from repcl.data.examples import TaskStream


def load_or_skip(name: str) -> TaskStream:
    folder = os.environ.get("REPCL_DATA")
    if not folder:
        pytest.skip("REPCL_DATA is not set: the original files are not tested")
    if BENCHMARKS[name].missing_files(Path(folder) / name):
        pytest.skip(f"REPCL_DATA has no {name} files")
    return load_benchmark(name)


def sizes(stream: TaskStream) -> tuple[int, int]:
    return sum(len(task.train) for task in stream.tasks), sum(len(task.test) for task in stream.tasks)


def largest(stream: TaskStream) -> tuple[int, int]:
    parts = [
        Counter(e.label for task in stream.tasks for e in getattr(task, part)) for part in ("train", "test")
    ]
    return max(parts[0].values()), max(parts[1].values())


def test_hwu64_has_the_protocols_counts() -> None:
    stream = load_or_skip("hwu64")
    assert stream.provenance.complete
    assert [len(task.classes) for task in stream.tasks] == [5] * 10
    assert largest(stream) == (175, 19)
    # classes below the cap are a little larger in some copies of the file
    assert (8156, 883) <= sizes(stream) <= (8750, 950)


def test_hwu64_round_zero_is_that_of_the_released_code() -> None:
    stream = load_or_skip("hwu64")
    indices = [HWU64_LABELS.index(label) for task in stream.tasks[:2] for label in task.classes]
    assert indices == [4, 24, 43, 31, 39, 13, 19, 7, 17, 25]


def test_clinc150_is_whole_and_has_two_texts_in_both_parts() -> None:
    stream = load_or_skip("clinc150")
    assert (sizes(stream), stream.provenance.complete) == ((15_000, 4_500), True)
    assert [len(task.classes) for task in stream.tasks] == [15] * 10
    assert stream.provenance.notes == ("Test texts that also stand in the training part: 2.",)


def test_banking77_is_whole() -> None:
    stream = load_or_skip("banking77")
    assert (sizes(stream), stream.provenance.complete) == ((10_003, 3_080), True)
    assert [len(task.classes) for task in stream.tasks] == [11] * 7


def test_fewrel_round_zero_is_that_of_the_released_code() -> None:
    stream = load_or_skip("fewrel")
    indices = [FEWREL_LABELS.index(label) for task in stream.tasks[:2] for label in task.classes]
    assert indices == [26, 15, 11, 58, 75, 21, 64, 53, 72, 67, 3, 17, 52, 63, 40, 39]


def test_fewrel_is_complete_exactly_when_every_relation_has_420_and_140() -> None:
    stream = load_or_skip("fewrel")
    assert stream.provenance.complete == (sizes(stream) == (80 * 420, 80 * 140))
    assert largest(stream) == (420, 140)
    assert all(example.head and example.tail for task in stream.tasks for example in task.train)


def test_maven_triggers_stand_in_their_sentences() -> None:
    stream = load_or_skip("maven")
    assert stream.provenance.complete == (len(stream.classes) == 120)
    assert len(stream.classes) >= 100
    assert len(stream.tasks) == 10
    examples = [example for task in stream.tasks for example in task.train]
    triggers = [
        example.text[example.trigger.start : example.trigger.end] for example in examples if example.trigger
    ]
    assert len(triggers) == len(examples)
    assert all(trigger.strip() == trigger != "" for trigger in triggers)
