"""What a search sees: nothing of later tasks, no test text, and held-out texts that were not learned."""

import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcl.data import Example, Provenance, Task, TaskStream
from repcl.errors import InvalidData
from repcl.experiments.tuning.search import search_stream


def make_task(number: int, train: int = 8, test: int = 2) -> Task:
    """A task of two classes, each text of it found nowhere else."""
    names = (f"class-{number}a", f"class-{number}b")

    def texts(part: str, count: int) -> list[Example]:
        return [Example(f"<{part} {name} {n}>", name) for name in names for n in range(count)]

    return Task(names, texts("train", train), texts("test", test))


def make_stream(tasks: int = 5, *, round: int = 5, train: int = 8) -> TaskStream:
    made = tuple(make_task(number, train) for number in range(tasks))
    return TaskStream("made-up", "sentence", made, round, Provenance(notes=("<test note>",)))


@given(tasks=st.integers(3, 8), train=st.integers(2, 12), round=st.integers(0, 50))
def test_no_test_text_and_nothing_of_a_later_task_can_be_reached(tasks, train, round):
    whole = make_stream(tasks, round=round, train=train)
    seen = repr(search_stream(whole))  # of nested dataclasses: everything that can be reached
    assert "<test" not in seen
    assert all(name not in seen for task in whole.tasks[3:] for name in task.classes)
    assert all(f"class-{number}a" in seen for number in range(3))


def test_every_training_text_of_the_first_three_tasks_is_either_learned_or_held_out():
    whole = make_stream()
    for before, after in zip(whole.tasks[:3], search_stream(whole).tasks, strict=True):
        assert after.classes == before.classes
        assert sorted(example.text for example in (*after.train, *after.test)) == sorted(
            example.text for example in before.train
        )


@pytest.mark.parametrize(("texts", "held_out"), [(1, 0), (2, 1), (3, 1), (8, 2), (24, 6)])
def test_a_quarter_of_each_class_is_held_out(texts, held_out):
    whole = make_stream(3)
    rare = Task(("rare",), [Example(f"rare {n}", "rare") for n in range(texts)], [])
    stream = TaskStream("made-up", "sentence", (rare, *whole.tasks[1:]), 5)
    first = search_stream(stream).tasks[0]
    assert (len(first.train), len(first.test)) == (texts - held_out, held_out)


def test_copies_of_a_text_are_never_both_learned_and_tested():
    repeated = Task(("a",), [Example(f"text {n % 4}", "a") for n in range(12)], [])
    stream = TaskStream("made-up", "sentence", (repeated, *make_stream(3).tasks[1:]), 5)
    first = search_stream(stream).tasks[0]
    assert len(first.test) == 1
    assert len(first.train) == 9
    assert first.test[0] not in first.train


def test_a_round_always_holds_out_the_same_texts_and_another_round_others():
    assert search_stream(make_stream(round=5)) == search_stream(make_stream(round=5))
    tested = [search_stream(make_stream(round=round)).tasks[0].test for round in (5, 6)]
    assert tested[0] != tested[1]


def test_two_tasks_are_too_few():
    with pytest.raises(InvalidData, match="A search needs 3 tasks, made-up has 2: choose a larger --tasks"):
        search_stream(make_stream(2))


def test_classes_of_one_text_leave_nothing_to_score_on():
    with pytest.raises(InvalidData, match="no class has two different training texts"):
        search_stream(make_stream(3, train=1))


def test_more_tasks_can_be_asked_for_and_are_held_out_in_the_same_way():
    whole = make_stream(5)
    seen = search_stream(whole, tasks=5)
    assert [task.classes for task in seen.tasks] == [task.classes for task in whole.tasks]
    assert [(len(task.train), len(task.test)) for task in seen.tasks] == [(12, 4)] * 5
    assert "<test" not in repr(seen)


def test_the_benchmark_of_many_tasks_caps_the_texts_of_each_class_and_says_so():
    script = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks/held_out.py"))
    stream = script["capped"](search_stream(make_stream(5), tasks=5), train=4, test=1)
    assert [(len(task.train), len(task.test)) for task in stream.tasks] == [(8, 2)] * 5
    assert stream.provenance.capped
