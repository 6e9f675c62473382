"""Texts with a wrong answer: which are kept, and that a foreign file is refused in a sentence."""

import gzip

import pytest

from repcl.data import Example, Task, TaskStream
from repcl.errors import ResultMismatch
from repcl.evaluation import TestedExample
from repcl.experiments.runs.wrong_texts import (
    LONGEST,
    MOST_BYTES,
    MOST_TEXTS,
    WrongText,
    find_wrong_texts,
    read_wrong_texts,
    write_wrong_texts,
)


def stream_of(*tasks: list[str]) -> TaskStream:
    made = tuple(
        Task((f"class {number}",), [], [Example(text, f"class {number}") for text in texts])
        for number, texts in enumerate(tasks)
    )
    return TaskStream("toy", "sentence", made)


def answered(*answers: tuple[int, str | None]) -> list[TestedExample]:
    return [
        TestedExample(str(n), task, f"class {task}", (answer,)) for n, (task, answer) in enumerate(answers)
    ]


def test_wrong_answers_after_the_last_task_are_kept_those_of_the_last_task_first():
    stream = stream_of(["a", "b"], ["c", "d"])
    tested = answered((0, "class 1"), (0, "class 0"), (1, "class 1"), (1, "class 0"))
    assert find_wrong_texts(stream, tested) == [
        WrongText("d", 1, "class 1", "class 0"),
        WrongText("a", 0, "class 0", "class 1"),
    ]


def test_texts_that_got_no_answer_are_not_wrong():
    assert find_wrong_texts(stream_of(["a"]), answered((0, None))) == []


def test_many_texts_and_long_texts_are_cut():
    texts = ["x" * 5000] * (MOST_TEXTS + 50)
    found = find_wrong_texts(stream_of(texts), answered(*[(0, "class 1")] * len(texts)))
    assert len(found) == MOST_TEXTS
    assert {len(one.text) for one in found} == {LONGEST}


def test_what_was_written_is_read_again_by_the_same_run_only(tmp_path):
    path, texts = tmp_path / "wrong.gz", [WrongText("Gruß 挨拶", 1, "a", "b")]
    write_wrong_texts(path, "this run", texts)
    assert read_wrong_texts(path, "this run") == texts
    assert read_wrong_texts(path, "another run") == []


def test_the_same_texts_give_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_wrong_texts(tmp_path / name, "run", [WrongText("text", 0, "a", "b")])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_run_of_an_earlier_version_has_none(tmp_path):
    assert read_wrong_texts(tmp_path / "none.gz", "run") == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        gzip.compress(b"{}", mtime=0),
        gzip.compress(b"[" * 100_000, mtime=0),
        gzip.compress(b'{"fingerprint": "run", "texts": [1]}', mtime=0),
        gzip.compress(b'{"fingerprint": "run", "texts": []}', mtime=0)[:-9],
        gzip.compress(b" " * (MOST_BYTES + 1) + b"{}", mtime=0),
    ],
    ids=["empty", "no gzip", "an object", "deep", "no text", "cut off", "too large"],
)
def test_a_foreign_file_is_refused_in_a_sentence(tmp_path, content):
    path = tmp_path / "wrong.gz"
    path.write_bytes(content)
    with pytest.raises(ResultMismatch, match="delete it; the report is made without them"):
        read_wrong_texts(path, "run")
