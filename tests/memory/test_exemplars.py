"""The memory and its budget."""

import pytest

from repcl.data import Example
from repcl.memory import ExemplarMemory


def examples(label: str, count: int) -> list[Example]:
    return [Example(f"{label}{number}", label) for number in range(count)]


def filled(**counts: int) -> ExemplarMemory:
    memory = ExemplarMemory(10)
    for label, count in counts.items():
        memory.keep(label, examples(label, count))
    return memory


def test_without_a_total_every_class_may_keep_its_number() -> None:
    assert [ExemplarMemory(10).budget(classes) for classes in (0, 1, 500)] == [10, 10, 10]


@pytest.mark.parametrize(("classes", "budget"), [(1, 10), (2, 10), (3, 6), (4, 5), (20, 1)])
def test_a_total_is_divided_evenly(classes: int, budget: int) -> None:
    assert ExemplarMemory(10, total=20).budget(classes) == budget


@pytest.mark.parametrize("classes", range(1, 21))
def test_a_total_is_never_exceeded(classes: int) -> None:
    assert ExemplarMemory(10, total=20).budget(classes) * classes <= 20


def test_a_total_below_the_number_of_classes_keeps_nothing_and_says_so() -> None:
    with pytest.warns(
        UserWarning, match="at least the number of classes, 21, found 20: no examples are kept"
    ):
        assert ExemplarMemory(10, total=20).budget(21) == 0


def test_a_total_without_classes_is_not_divided_by_zero() -> None:
    assert ExemplarMemory(10, total=20).budget(0) == 10


def test_shrinking_keeps_the_beginning_of_every_class() -> None:
    memory = filled(a=3, b=1)
    memory.shrink(2)
    assert [example.text for example in memory] == ["a0", "a1", "b0"]


def test_keeping_replaces_what_was_kept_of_a_class() -> None:
    memory = filled(a=3)
    memory.keep("a", [Example("new", "a")])
    assert [example.text for example in memory.of("a")] == ["new"]


def test_classes_come_in_the_order_in_which_they_were_first_kept() -> None:
    memory = filled(b=1, a=1)
    memory.keep("b", examples("b", 2))
    assert memory.classes == ["b", "a"]


def test_a_class_never_kept_has_no_exemplars() -> None:
    assert filled(a=1).of("z") == []


def test_changing_what_was_handed_out_does_not_change_the_memory() -> None:
    memory = filled(a=2)
    memory.of("a").clear()
    assert len(memory) == 2


def test_counts_are_by_class_and_length_is_in_all() -> None:
    memory = filled(a=3, b=1)
    assert (memory.counts(), len(memory)) == ({"a": 3, "b": 1}, 4)


def test_text_bytes_count_bytes_and_not_characters() -> None:
    memory = ExemplarMemory(10)
    memory.keep("x", [Example("é", "x"), Example("abc", "x")])
    assert memory.text_bytes() == 5


def test_dropped_examples_are_gone_and_a_class_without_any_is_as_if_never_kept():
    memory = ExemplarMemory(3)
    memory.keep("a", [Example("one", "a"), Example("two", "a")])
    memory.keep("b", [Example("one", "b")])
    memory.drop([Example("one", "a"), Example("one", "b"), Example("one", "c")])
    assert list(memory) == [Example("two", "a")]
    assert memory.classes == ["a"]
