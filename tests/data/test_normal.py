"""When texts and labels are the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcl.data import Example, Span
from repcl.data.normal import normal_example, normal_label

COMPOSED, APART = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize("label", ["EMI", " EMI", "EMI\t", "\u00a0EMI\n"])
def test_blanks_around_a_label_do_not_count(label):
    assert normal_label(label) == "EMI"


def test_the_two_ways_to_write_an_accent_are_one_label():
    assert APART != COMPOSED
    assert normal_label(APART) == normal_label(COMPOSED) == COMPOSED


def test_case_and_blanks_inside_do_count():
    assert normal_label("a  B") == "a  B"


def test_a_text_that_is_as_it_should_be_stays_the_same_object():
    example = Example(f"a {COMPOSED} in paris", "place")
    assert normal_example(example) is example


def test_blanks_and_accents_of_a_text_do_not_count_and_its_label_stays():
    assert normal_example(Example(f" {APART}\n", " x ")) == Example(COMPOSED, " x ")


def test_marked_spans_move_along():
    text = f"  {APART} in paris "
    head, tail = Span(2, 7), Span(11, 16)
    assert text[head.start : head.end], text[tail.start : tail.end] == (APART, "paris")
    assert normal_example(Example(text, "x", head=head, tail=tail)) == Example(
        f"{COMPOSED} in paris", "x", head=Span(0, 4), tail=Span(8, 13)
    )


def test_blanks_inside_a_span_are_not_cut_off():
    assert normal_example(Example("  war  ", "x", trigger=Span(1, 6))) == Example(
        " war ", "x", trigger=Span(0, 5)
    )


@given(st.text("a e\u0301\u00e9\u0323\n", min_size=1), st.data())
def test_what_is_normal_stays_as_it_is_and_spans_hold_the_same_text(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    span = Span(start, data.draw(st.integers(start + 1, len(text))))
    once = normal_example(Example(text, "x", trigger=span))
    assert normal_example(once) == once
    assert once.trigger is not None
    inside = once.text[once.trigger.start : once.trigger.end]
    assert normal_label(inside) == normal_label(text[span.start : span.end])
