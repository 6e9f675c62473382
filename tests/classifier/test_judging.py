"""Answers beside the labels that texts have."""

import pytest

from repcl.classifier.judging import NONE, JudgedText, scores_by_label


def judged(wanted: str, found: str) -> JudgedText[str]:
    return JudgedText("a text", frozenset(wanted.split()), frozenset(found.split()), 0.5)


@pytest.mark.parametrize(
    ("wanted", "found", "confusions"),
    [
        ("a b", "b a", []),
        ("a", "b", [("a", "b")]),
        ("a b", "a", [("b", NONE)]),
        ("a", "a b", [(NONE, "b")]),
        ("a b", "c d", [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")]),
    ],
)
def test_each_missed_label_is_paired_with_each_added_one(wanted, found, confusions):
    assert judged(wanted, found).confusions() == confusions


def test_labels_are_scored_by_the_texts_that_have_and_get_them():
    # a: had by 3, given to 2, both of them right; b: had by 1 and given to 1, another one
    first, second = scores_by_label([judged("a", "a"), judged("a", "a"), judged("a", "b"), judged("b", "")])
    assert (first.label, first.texts, first.recall, first.precision, first.f1) == ("a", 3, 2 / 3, 1.0, 0.8)
    assert (second.label, second.texts, second.recall, second.precision, second.f1) == ("b", 1, 0.0, 0.0, 0.0)


def test_a_label_that_no_text_gets_has_no_precision():
    (score,) = scores_by_label([judged("a", "")])
    assert score.precision is None
