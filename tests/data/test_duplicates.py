"""Which texts are nearly the same."""

import pytest

from repcl.data.duplicates import plain_text, without_duplicates
from repcl.data.examples import Example, Span


@pytest.mark.parametrize(
    "other", ["where is my parcel", "Where is my  parcel?", "WHERE, is my parcel?!", "where is my\nparcel "]
)
def test_case_spaces_and_punctuation_make_no_other_text(other):
    assert plain_text(other) == "where is my parcel"


@pytest.mark.parametrize(("one", "other"), [("a1", "a2"), ("5 €", "5 $ more"), ("!", "?"), ("की", "का")])
def test_other_letters_digits_and_vowels_make_another_text(one, other):
    assert plain_text(one) != plain_text(other)


def test_the_first_of_nearly_equal_texts_of_a_class_is_kept_in_its_place():
    examples = [
        Example("Hi!", "a"),
        Example("Bye", "a"),
        Example("hi", "a"),
        Example("hi", "b"),
        Example("Hi!", "a"),
    ]
    assert without_duplicates(examples) == [examples[0], examples[1], examples[3]]


def test_texts_with_other_spans_are_others():
    examples = [Example("a b", "x", trigger=Span(0, 1)), Example("a b", "x", trigger=Span(2, 3))]
    assert without_duplicates(examples) == examples
