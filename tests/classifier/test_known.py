"""The list of texts that were learned, as keyed hashes."""

import numpy as np
import pytest

from repcl.classifier.known import HASH_BYTES, KnownTexts
from repcl.data import Example, Span
from repcl.errors import InvalidData

APPLE, PEAR = Example("the apple", "fruit"), Example("the pear", "fruit")
CAR = Example("the car", "vehicle")
KEYS = [b"a" * 16, b"b" * 16]


def known(*examples: Example, key: bytes = KEYS[0]) -> KnownTexts:
    found = KnownTexts([key])
    found.add(examples)
    return found


def test_a_text_is_known_under_the_label_it_was_learned_with():
    texts = known(APPLE, APPLE, CAR)
    assert APPLE in texts
    assert Example("the apple", "vehicle") not in texts
    assert [texts.times(one) for one in (APPLE, PEAR, CAR)] == [2, 0, 1]
    assert texts.labels([PEAR, CAR, Example("the apple", "")]) == [set(), {"vehicle"}, {"fruit"}]
    assert texts.texts_of("fruit") == 2


def test_blanks_and_forms_of_unicode_do_not_hide_a_text():
    texts = known(Example("caf\u00e9", "place"))
    assert Example(" cafe\u0301\n", "place") in texts


def test_another_span_makes_another_text():
    texts = known(Example("war and war", "x", trigger=Span(0, 3)))
    assert Example("war and war", "x", trigger=Span(0, 3)) in texts
    assert Example("war and war", "x", trigger=Span(8, 11)) not in texts
    assert Example("war and war", "x") not in texts


def test_the_text_or_a_hash_that_anyone_can_make_is_not_in_the_table():
    one, other = (known(APPLE, key=key).to_table(["fruit"]).tobytes() for key in KEYS)
    assert b"apple" not in one
    assert one[:HASH_BYTES] != other[:HASH_BYTES]


def test_every_list_has_a_random_key():
    assert KnownTexts().keys != KnownTexts().keys


def test_a_text_that_is_discarded_is_gone_however_often_it_was_learned():
    texts = known(APPLE, APPLE, PEAR)
    texts.discard([APPLE, CAR])
    assert (texts.times(APPLE), texts.times(PEAR), len(texts)) == (0, 1, 1)


def test_texts_go_with_their_classes():
    texts = known(APPLE, PEAR, CAR)
    texts.unlisted = {"vehicle"}
    texts.regroup({"food": ["fruit"]})
    assert texts.labels([APPLE, CAR]) == [{"food"}, set()]
    assert (len(texts), texts.unlisted) == (2, set())


def test_a_text_of_two_classes_that_become_one_counts_for_both():
    texts = known(APPLE, Example("the apple", "vehicle"))
    texts.unlisted = {"vehicle"}
    texts.regroup({"all": ["fruit", "vehicle"]})
    assert texts.times(Example("the apple", "all")) == 2
    assert texts.unlisted == {"all"}


def test_texts_of_a_list_with_another_key_are_known_after_it_was_taken_over():
    texts = known(APPLE, CAR)
    other = known(APPLE, PEAR, key=KEYS[1])
    other.unlisted = {"fruit"}
    texts.absorb(other)
    assert [texts.times(one) for one in (APPLE, PEAR, CAR)] == [2, 1, 1]
    assert (texts.keys, texts.unlisted) == (KEYS, {"fruit"})
    texts.discard([APPLE])
    assert APPLE not in texts


def test_a_table_gives_the_list_back():
    texts = known(APPLE, APPLE, PEAR, CAR)
    classes = ["vehicle", "nothing", "fruit"]
    table = texts.to_table(classes)
    assert table.shape == (3, 6)
    assert table[:, 4].tolist() == [0, 2, 2]
    again = KnownTexts.from_table(table, classes, keys=texts.keys, unlisted=["vehicle"])
    assert [again.times(one) for one in (APPLE, PEAR, CAR)] == [2, 1, 1]
    np.testing.assert_array_equal(again.to_table(classes), table)
    assert again.unlisted == {"vehicle"}


def test_the_table_of_the_same_texts_is_the_same_in_any_order():
    one, other = known(APPLE, PEAR, CAR), known(CAR, PEAR, APPLE)
    np.testing.assert_array_equal(one.to_table(["fruit", "vehicle"]), other.to_table(["fruit", "vehicle"]))


def test_an_empty_list_has_an_empty_table():
    table = KnownTexts().to_table(["fruit"])
    assert table.shape == (0, 6)
    assert len(KnownTexts.from_table(table, ["fruit"], keys=KEYS, unlisted=())) == 0


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [(4, 1, "classes that are not there"), (4, -1, "not there"), (5, 0, "not there"), (None, 0, "twice")],
)
def test_a_table_that_was_made_up_is_refused(column, value, sentence):
    table = known(APPLE, PEAR).to_table(["fruit"])
    if column is None:
        table[1] = table[0]
    else:
        table[0, column] = value
    with pytest.raises(InvalidData, match=sentence):
        KnownTexts.from_table(table, ["fruit"], keys=KEYS, unlisted=())


@pytest.mark.parametrize("table", [np.zeros((2, 5), "i4"), np.zeros(6, "i4"), np.zeros((2, 6), "i8")])
def test_a_table_of_another_form_is_refused(table):
    with pytest.raises(InvalidData, match="holds no hashes"):
        KnownTexts.from_table(table, ["fruit"], keys=KEYS, unlisted=())
