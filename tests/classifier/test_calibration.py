"""Calibrated confidence, and texts of which no class is likely enough."""

import numpy as np
import pytest

from repcl.classifier import InvalidInput
from repcl.classifier import state as state_module
from repcl.classifier.calibration import calibrate, probabilities, unknown_rule
from repcl.classifier.discovery import discover
from repcl.classifier.store.records import Calibration
from repcl.errors import InvalidSetting
from tests.classifier.conftest import toy


def test_a_temperature_of_one_is_the_plain_softmax():
    expected = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    np.testing.assert_allclose(probabilities(np.array([[1.0, 2.0]]), 1.0)[0], expected)


def test_scores_that_are_right_three_times_in_four_get_that_confidence():
    scores = np.tile([10.0, 0.0], (4000, 1))
    found = calibrate(scores, [0, 0, 0, 1] * 1000)
    assert probabilities(scores[:1], found.temperature)[0, 0] == pytest.approx(0.75, abs=0.001)


def test_a_few_right_answers_do_not_make_boundless_confidence():
    scores = np.tile([1.0, 0.0], (8, 1))
    found = calibrate(scores, [0] * 8)
    assert probabilities(scores[:1], found.temperature)[0, 0] == pytest.approx(0.9, abs=0.001)  # 9 / 10


def test_scaling_the_scores_changes_nothing():
    scores = np.random.default_rng(0).normal(size=(200, 5))
    labels = scores.argmax(axis=1)
    labels[::4] = 0
    plain, scaled = (calibrate(factor * scores, labels) for factor in (1.0, 50.0))
    assert scaled.temperature == pytest.approx(50 * plain.temperature, rel=1e-3)
    assert scaled.threshold == pytest.approx(plain.threshold, rel=1e-3)


def test_the_threshold_lets_nineteen_of_twenty_texts_pass():
    scores = np.array([[float(number), 0.0] for number in range(1, 101)])
    found = calibrate(scores, [0] * 100)
    confidence = probabilities(scores, found.temperature).max(axis=1)
    assert (confidence >= found.threshold).sum() in (95, 96)


def test_without_texts_there_is_no_automatic_threshold():
    found = calibrate(np.zeros((0, 3)), [])
    assert found == Calibration()
    with pytest.raises(InvalidSetting, match="give a number from 0 to 1"):
        unknown_rule(found, [], threshold="auto")
    assert unknown_rule(found, [], threshold=0.4).least == 0.4


@pytest.mark.parametrize("threshold", [-0.1, 1.5, "often"])
def test_a_threshold_that_is_no_probability_is_refused(threshold):
    with pytest.raises(InvalidSetting, match="threshold"):
        unknown_rule(Calibration(threshold=0.5), [], threshold=threshold)


def test_unknown_texts_are_marked_and_the_rest_stays(make):
    classifier = make(holdout_per_class=5).fit(*toy("fruit", "vehicle", texts=30))
    texts = toy("fruit", "weather", start=60)[0]
    confidence = classifier.predict_proba(texts).max(axis=1)
    least = float(np.median(confidence))
    answers = classifier.predict(texts, unknown="none of these", threshold=least)
    plain = classifier.predict(texts)
    assert ((answers == "none of these") == (confidence < least)).all()
    assert (answers[confidence >= least] == plain[confidence >= least]).all()


def test_the_automatic_threshold_accepts_most_held_out_texts(make):
    classifier = make(holdout_per_class=10).fit(*toy("fruit", "vehicle", texts=60))
    held = [example.text for example in classifier.fitted_state().held_out]
    assert len(held) == 20
    assert (classifier.predict(held, unknown="unknown") == "unknown").mean() <= 0.05


def test_unknown_can_be_a_number_among_numbers_and_a_word_among_numbers(make):
    texts, _ = toy("fruit", "vehicle", texts=2)
    classifier = make().fit(texts, [1, 1, 2, 2])
    assert classifier.predict(texts, unknown=-1, threshold=1.0).tolist() == [-1] * 4
    assert classifier.predict(texts, unknown="?", threshold=1.0).tolist() == ["?"] * 4
    assert classifier.predict(texts, unknown="?", threshold=0.0).dtype == object


def test_a_text_is_unknown_below_the_threshold_and_known_at_it():
    rule = unknown_rule(Calibration(threshold=0.6), ["a", "b"], threshold="auto", answer="?")
    found = np.array([[0.6, 0.4], [0.41, 0.59]])
    assert rule.applies(found).tolist() == [False, True]
    assert rule.mark(np.array(["a", "b"]), found).tolist() == ["a", "?"]


def test_discovery_and_prediction_call_the_same_texts_unknown(make):
    classifier = make(holdout_per_class=5).fit(*toy("fruit", "vehicle", texts=30))
    texts = toy("fruit", "weather", start=60)[0]
    threshold = float(np.median(classifier.predict_proba(texts).max(axis=1)))
    marked = classifier.predict(texts, unknown="?", threshold=threshold)
    assert discover(classifier, texts, threshold=threshold).unknown == (marked == "?").sum() > 0


def test_a_class_cannot_be_the_answer_for_unknown_texts(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    with pytest.raises(InvalidInput, match="'fruit' is one of the classes"):
        classifier.predict(["a"], unknown="fruit", threshold=0.5)


@pytest.mark.parametrize("name", ["instant", "ncm", "lda", "refit", "fea"])
def test_probabilities_are_calibrated_by_held_out_texts_that_were_not_learned(make, name):
    classifier = make(name, holdout_per_class=10).fit(*toy("fruit", "vehicle", "weather", texts=50))
    state = classifier.fitted_state()
    held = state.held_out
    assert len(held) == 30
    assert classifier.last_update_.examples == 120
    expected = calibrate(state.scores(held), [state.method.classes.index(one.label) for one in held])
    assert state.calibration == expected
    scaled = probabilities(state.scores(held), expected.temperature)
    columns = [classifier.classes_.tolist().index(label) for label in state.method.classes]
    np.testing.assert_allclose(classifier.predict_proba(held)[:, columns], scaled)


def test_a_new_class_brings_a_new_calibration(make):
    classifier = make(holdout_per_class=0).partial_fit(*toy("fruit", "vehicle"))
    before = classifier.fitted_state().calibration
    classifier.partial_fit(*toy("weather"))
    after = classifier.fitted_state().calibration
    assert before.texts == 20
    assert after.texts == 30
    assert before.temperature != after.temperature


def test_one_class_alone_is_certain(make):
    classifier = make().fit(*toy("fruit"))
    assert classifier.predict_proba(["rain"]).tolist() == [[1.0]]
    assert classifier.predict(["rain"], unknown="unknown").tolist() == ["fruit"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_ran_away_are_said(value):
    with pytest.raises(InvalidSetting, match="training ran away; lower the learning rate"):
        calibrate(np.array([[1.0, value], [0.0, 1.0]]), [0, 1])


def held_out_of_many(make):
    return make("ncm", holdout_per_class=5).fit(*toy("fruit", "vehicle", "place", texts=40)).fitted_state()


def test_a_classifier_is_calibrated_by_a_bounded_number_of_texts_spread_over_its_classes(make, monkeypatch):
    state = held_out_of_many(make)
    assert state.calibration.texts == len(state.held_out) == 15
    monkeypatch.setattr(state_module, "MOST_ASKED", 6)
    monkeypatch.setattr(state_module, "ENOUGH", 0)
    asked = []
    monkeypatch.setattr(state, "scores", lambda examples: asked.append(examples) or real(examples))
    real = type(state).scores.__get__(state)
    state.recalibrate()
    assert state.calibration.texts == 5  # every third of fifteen
    assert [example.label for example in asked[0]] == ["fruit", "fruit", "place", "place", "vehicle"]
    assert max(map(len, asked)) <= 6  # the others are scored a few at a time


def test_what_held_out_texts_get_does_not_depend_on_how_many_are_scored_at_a_time(make, monkeypatch):
    state = held_out_of_many(make)
    whole, answers = dict(state.recalibrate()), state.answers(state.held_out)
    assert len(whole) == 15
    for most in (1, 4, 14):
        monkeypatch.setattr(state_module, "MOST_ASKED", most)
        assert state.answers(state.held_out) == answers
        assert state.recalibrate() == whole
