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


@pytest.mark.filterwarnings("error")
def test_a_total_of_one_for_each_class_is_no_warning() -> None:
    assert ExemplarMemory(10, total=20).budget(20) == 1


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


# ---- classes that are merged -----------------------------------------------------------------------


def texts(memory: ExemplarMemory, name: str) -> list[str]:
    return [example.text for example in memory.of(name)]


def test_a_merged_class_takes_the_most_telling_exemplars_of_its_parts_in_turn() -> None:
    merged = filled(a=3, b=1, c=2).regrouped({"ab": ["a", "b"], "c": ["c"]})
    assert texts(merged, "ab") == ["a0", "b0", "a1", "a2"]
    assert texts(merged, "c") == ["c0", "c1"]


def test_the_exemplars_of_a_merged_class_bear_its_name() -> None:
    merged = filled(a=2, b=2).regrouped({"ab": ["a", "b"]})
    assert {example.label for example in merged} == {"ab"}


def test_a_merged_class_keeps_no_more_than_one_class_may() -> None:
    memory = ExemplarMemory(3)
    for label in "ab":
        memory.keep(label, examples(label, 3))
    assert texts(memory.regrouped({"ab": ["a", "b"]}), "ab") == ["a0", "b0", "a1"]


def test_a_merged_class_keeps_its_share_of_the_total() -> None:
    memory = ExemplarMemory(10, total=4)
    for label in "abc":
        memory.keep(label, examples(label, 3))
    assert memory.regrouped({"ab": ["a", "b"], "c": ["c"]}).counts() == {"ab": 2, "c": 2}


def test_a_text_that_both_parts_hold_is_kept_once() -> None:
    memory = ExemplarMemory(10)
    memory.keep("a", [Example("same", "a"), Example("one", "a")])
    memory.keep("b", [Example("same", "b"), Example("two", "b")])
    assert texts(memory.regrouped({"ab": ["a", "b"]}), "ab") == ["same", "one", "two"]


def test_a_memory_of_whole_classes_keeps_all_of_a_merged_one() -> None:
    memory = ExemplarMemory(0)  # `joint` keeps every example
    for label in "ab":
        memory.keep(label, examples(label, 4))
    assert memory.regrouped({"ab": ["a", "b"]}).counts() == {"ab": 8}


def test_a_class_without_exemplars_has_none_after_a_merge() -> None:
    assert filled(a=1).regrouped({"a": ["a"], "z": ["z"]}).classes == ["a"]


def test_a_regrouped_memory_has_the_limits_of_the_old_one() -> None:
    fresh = ExemplarMemory(7, total=20).regrouped({})
    assert (fresh.per_class, fresh.total) == (7, 20)
