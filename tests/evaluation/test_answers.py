"""Two runs compared text by text, against a plain loop."""

from hypothesis import given
from hypothesis import strategies as st

from repcl.evaluation import TestedExample, compare_answers, last_answers


def answered(*right: bool, label: str = "a") -> list[TestedExample]:
    return [
        TestedExample(f"text {n}", 0, label, ("b", label if is_right else "b"))
        for n, is_right in enumerate(right)
    ]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_texts_that_only_one_answers_right_are_counted(pairs: list[tuple[bool, bool]]) -> None:
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    found = compare_answers(last_answers(answered(*first)), last_answers(answered(*second)))
    assert found is not None
    assert found.texts == len(pairs)
    assert found.only_first == sum(1 for ours, theirs in pairs if ours and not theirs)
    assert found.only_second == sum(1 for ours, theirs in pairs if theirs and not ours)


def test_the_difference_is_in_points_of_accuracy() -> None:
    found = compare_answers(
        last_answers(answered(True, True, True, False)), last_answers(answered(True, False, False, True))
    )
    assert found is not None
    assert found.difference == 25
    assert found.p_value == 1.0  # two against one


def test_the_order_of_the_texts_does_not_matter() -> None:
    tested = answered(True, False, True)
    assert last_answers(tested) == last_answers(tested[::-1])


def test_answers_to_other_texts_or_classes_are_not_compared() -> None:
    ours = last_answers(answered(True, True))
    assert compare_answers(ours, last_answers(answered(True, True, True))) is None
    assert compare_answers(ours, last_answers(answered(True, True, label="c"))) is None


def test_what_was_not_evaluated_in_the_end_is_not_compared() -> None:
    assert last_answers([TestedExample("1", 0, "a", ("a", None))]) is None
    assert compare_answers(None, last_answers(answered(True))) is None
