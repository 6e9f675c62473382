"""The texts that an update brings: whether their labels agree with what was learned from all others."""

import warnings

import numpy as np
import pytest

from repcl.classifier.arrivals import Arrival, as_arrivals, doubtful_texts, least_usual, margins_of
from repcl.classifier.store.records import Comparison
from repcl.data import Example
from tests.classifier.conftest import toy


def test_a_margin_is_how_far_the_label_is_above_the_best_other_class():
    scores = np.array([[0.9, 0.2, 0.4], [0.1, 0.7, 0.3]])
    assert margins_of(scores, [0, 2]) == pytest.approx([0.5, -0.4])


def test_scores_are_left_as_they_were():
    scores = np.array([[0.9, 0.2], [0.1, 0.7]])
    before = scores.copy()
    margins_of(scores, [0, 0])
    assert (scores == before).all()


def test_the_only_class_is_above_all_others():
    assert margins_of(np.array([[0.3]]), [0]).tolist() == [np.inf]


def test_one_learned_text_in_ten_is_usual():
    assert least_usual(range(-19, 0)) == -18  # int(0.1 * 20) = the second of 19


def test_of_few_learned_texts_the_lowest_is_the_limit():
    assert least_usual([-0.3, 0.5]) == -0.3


def test_a_right_answer_is_never_doubted():
    assert least_usual([0.5, 0.6]) == 0


def test_without_learned_texts_nothing_is_doubted():
    assert least_usual([]) == -np.inf


def test_a_label_is_doubted_below_the_limit():
    scores = np.array([[0.1, 0.4], [0.1, 0.6]])
    found = as_arrivals([Example("x", "a"), Example("y", "a")], scores, ["a", "b"], least=-0.4)
    assert [(one.answer, one.is_doubtful, one.text) for one in found] == [("b", False, "x"), ("b", True, "y")]
    assert [one.margin for one in found] == pytest.approx([-0.3, -0.5])


def test_doubtful_texts_are_listed_once_with_what_others_speak_for():
    found = doubtful_texts([Arrival("a", "b", True, "x"), Arrival("a", "b", False, "y")] * 2)
    assert [(one.text, one.label, one.answer) for one in found] == [("x", "a", "b")]


def test_the_most_doubtful_text_is_listed_first():
    margins = {"x": -0.1, "y": -0.5, "z": -0.3}
    found = doubtful_texts([Arrival("a", "b", True, text, margin) for text, margin in margins.items()])
    assert [one.text for one in found] == ["y", "z", "x"]


def test_doubtful_texts_are_not_written_down():
    found = doubtful_texts([Arrival("a", "b", True, "x")])
    assert "doubtful_texts" not in Comparison(doubtful_texts=found).model_dump()


def mislabeled(classifier):
    """Teach two new classes, three texts of each under the other's name; say which are doubted."""
    texts, labels = toy("weather", "place", texts=15)
    wrong = {*texts[:3], *texts[15:18]}
    swapped = {"weather": "place", "place": "weather"}
    given = [swapped[label] if text in wrong else label for text, label in zip(texts, labels, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.partial_fit(texts, given)
    return wrong, classifier.last_update_


def test_labels_that_were_swapped_are_refused_and_their_texts_are_named(make):
    wrong, update = mislabeled(make("instant").fit(*toy("fruit", "vehicle", texts=15)))
    assert update.is_refused
    assert len(wrong & {one.text for one in update.doubtful_texts}) >= 4


def test_a_learner_that_holds_texts_out_doubts_new_texts_of_a_known_class_before_it_learns_them(make):
    classifier = make("ncm", holdout_per_class=5, settings={"keep_embeddings": False})
    classifier.fit(*toy("fruit", "vehicle", "weather", texts=25))
    texts, _ = toy("fruit", texts=20, start=100)
    with pytest.warns(UserWarning, match="look mislabeled"):
        classifier.partial_fit(texts, ["vehicle"] * 20)
    assert {one.answer for one in classifier.last_update_.doubtful_texts} == {"fruit"}


def test_a_correction_is_not_doubted(make):
    texts, labels = toy("fruit", "vehicle", "weather", texts=15)
    classifier = make("instant").fit(texts, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.partial_fit(texts[:10], ["vehicle"] * 10)
    assert classifier.last_update_.corrected == 10
    assert classifier.last_update_.doubtful_texts == ()
