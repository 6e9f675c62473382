"""Calibrated confidence, and texts of which no class is likely enough."""

import numpy as np
import pytest
import torch

from repcl.classifier import InvalidInput
from repcl.classifier import state as state_module
from repcl.classifier.answering import Evidence, UnknownRule, probabilities, signs_of, unknown_rule
from repcl.classifier.calibration import Nearness, calibrate, familiarity
from repcl.classifier.discovery import discover
from repcl.classifier.inputs import as_examples
from repcl.classifier.store.records import Calibration, Familiarity
from repcl.errors import InvalidSetting
from repcl.methods.frozen.strangers import Strangers
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
    is_unknown = rule.applies(Evidence(["a", "b"], np.array([[0.6, 0.4], [0.41, 0.59]])))
    assert is_unknown.tolist() == [False, True]
    assert rule.mark(np.array(["a", "b"]), is_unknown).tolist() == ["a", "?"]


def test_familiarity_is_the_sigmoid_of_both_signs():
    familiarity = Familiarity(confidence=2.0, nearness=3.0, offset=-1.0, threshold=0.5)
    rule = unknown_rule(Calibration(threshold=0.9, familiarity=familiarity), [], threshold="auto")
    evidence = Evidence(["a", "b"], np.array([[0.5, 0.5], [0.8, 0.2]]), np.array([0.2, 0.1]))
    # 2 · log(1) + 3 · 0.2 - 1 and 2 · log(4) + 3 · 0.1 - 1
    expected = [1 / (1 + np.exp(0.4)), 1 / (1 + np.exp(-(2 * np.log(4) - 0.7)))]
    np.testing.assert_allclose(rule.certainty(evidence), expected)
    assert rule.applies(evidence).tolist() == [True, False]


def test_a_text_farther_away_than_any_known_one_is_unknown_however_sure_the_answer():
    familiarity = Familiarity(confidence=1.0, nearness=0.0, offset=0.0, threshold=0.5, least_nearness=0.4)
    rule = unknown_rule(Calibration(threshold=0.9, familiarity=familiarity), [], threshold="auto")
    evidence = Evidence(["a", "b"], np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0.4, 0.39]))
    assert rule.applies(evidence).tolist() == [False, True]


def test_the_least_nearness_is_that_of_a_hundred_texts_or_more():
    scores, labels, near = far_and_near(texts=100)
    assert calibrate(scores, labels, list("abcde"), near).familiarity.least_nearness == near.nearest.min()
    scores, labels, near = far_and_near(texts=99)
    assert calibrate(scores, labels, list("abcde"), near).familiarity.least_nearness is None


def test_a_class_with_a_threshold_of_its_own_is_held_to_it():
    familiarity = Familiarity(
        confidence=0.0, nearness=1.0, offset=0.0, threshold=0.5, class_thresholds={"b": 0.6}
    )
    rule = unknown_rule(Calibration(threshold=0.9, familiarity=familiarity), [], threshold="auto")
    evidence = Evidence(["a", "b"], np.array([[0.7, 0.3], [0.3, 0.7]]), np.array([0.1, 0.1]))
    assert rule.applies(evidence).tolist() == [False, True]


def test_a_threshold_that_a_user_gives_is_about_confidence_alone():
    familiarity = Familiarity(confidence=0.0, nearness=1.0, offset=0.0, threshold=0.5)
    rule = unknown_rule(Calibration(threshold=0.9, familiarity=familiarity), [], threshold=0.6)
    evidence = Evidence(["a", "b"], np.array([[0.7, 0.3], [0.5, 0.5]]), np.array([-1.0, 1.0]))
    assert rule.applies(evidence).tolist() == [False, True]


def far_and_near(texts: int = 200, classes: int = 5):
    """Texts whose class is always clear, and which are nearer to their own class than to others."""
    random = np.random.default_rng(0)
    labels = np.arange(texts) % classes
    scores = random.normal(size=(texts, classes))
    scores[np.arange(texts), labels] += 4.0
    near = Nearness(
        np.arange(texts), 0.8 + random.normal(size=texts) / 20, 0.4 + random.normal(size=texts) / 20
    )
    return scores, labels, near


def test_nearness_counts_where_it_tells_known_from_strange():
    scores, labels, near = far_and_near()
    found = calibrate(scores, labels, list("abcde"), near).familiarity
    assert found.nearness > 0
    assert found.confidence > 0


def test_the_familiarity_threshold_lets_95_percent_of_left_out_texts_pass():
    scores, labels, near = far_and_near(texts=190)
    found = calibrate(scores, labels, list("abcde"), near)
    rule = unknown_rule(found, [], threshold="auto")
    evidence = Evidence(list("abcde"), probabilities(scores, found.temperature), near.nearest)
    assert rule.familiarity.class_thresholds == {}
    assert rule.applies(evidence).sum() == int(0.05 * 191) - 1  # the lowest ones, without the one at it


def test_classes_with_many_texts_have_thresholds_of_their_own():
    scores, labels, near = far_and_near(texts=300)
    found = calibrate(scores, labels, list("abcde"), near).familiarity
    assert set(found.class_thresholds) == set("abcde")


@pytest.mark.parametrize(("hard", "counted"), [(25, "of the others"), (15, "of all")])
def test_the_threshold_of_all_is_that_of_classes_without_one_of_their_own(hard, counted):
    """Easy texts of `a` have a threshold of their own; so they say nothing about the hard ones of `b`."""
    confidence = np.r_[np.linspace(0.8, 0.9, 100), np.linspace(0.5, 0.6, hard)]
    known = np.zeros((100 + hard, 3))
    known[np.arange(100 + hard), np.repeat([0, 1], [100, hard])] = confidence
    near = Nearness(np.arange(100 + hard), np.full(100 + hard, 0.5), np.full(100 + hard, 0.5))
    strange = signs_of(np.full((50, 3), 1 / 3), np.full(50, 0.5))
    found = familiarity(known, strange, list("abc"), near)
    assert set(found.class_thresholds) == {"a"}
    rule = UnknownRule(0.0, familiarity=found)
    refused = rule.applies(Evidence(list("abc"), known, near.nearest))[100:].sum()
    # the lowest but the one at the threshold: ⌊0.05 · 26⌋ - 1 of 25, ⌊0.05 · 116⌋ - 1 of all
    assert refused == {"of the others": 0, "of all": 4}[counted]


def test_few_texts_or_classes_leave_confidence_to_decide():
    scores, labels, near = far_and_near(texts=15)
    assert calibrate(scores, labels, list("abcde"), near).familiarity is None
    scores, labels, near = far_and_near(classes=2)
    assert calibrate(scores, labels, list("ab"), near).familiarity is None


@pytest.mark.parametrize("name", ["instant", "ncm", "lda"])
def test_learners_with_a_closed_form_are_calibrated_by_texts_left_out_and_learn_from_all(make, name):
    classifier = make(name, holdout_per_class=3).fit(*toy("fruit", "vehicle", "weather", texts=20))
    state = classifier.fitted_state()
    found = state.method.left_out()
    assert classifier.last_update_.examples == 60
    assert len(state.held_out) == 9  # their words are kept
    near = Nearness(
        found.near.numpy(), found.nearest.double().numpy(), found.nearest_stranger.double().numpy()
    )
    expected = calibrate(found.scores.numpy(), found.labels.tolist(), state.method.classes, near)
    assert state.calibration == expected
    assert state.calibration.texts == 60


@pytest.mark.parametrize("name", ["instant", "ncm"])
def test_of_many_texts_fewer_choose_familiarity_and_it_says_how_many(make, monkeypatch, name):
    monkeypatch.setattr("repcl.methods.frozen.method.MOST_PAIRS", 60 * 30)
    classifier = make(name).fit(*toy("fruit", "vehicle", "weather", texts=20))
    calibration = classifier.fitted_state().calibration
    assert (calibration.texts, calibration.familiarity.texts) == (60, 30)


def test_predictions_call_texts_unknown_by_both_signs(make):
    classifier = make("ncm").fit(*toy("fruit", "vehicle", "weather", texts=20))
    state = classifier.fitted_state()
    texts = [*toy("fruit", "place", start=60)[0]]
    is_unknown = state.unknown_rule().applies(state.evidence(as_examples(texts)))
    assert state.calibration.familiarity is not None
    assert (classifier.predict(texts, unknown="?") == "?").tolist() == is_unknown.tolist()


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


@pytest.mark.parametrize("name", ["refit", "fea"])
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
    return (
        make("ncm", holdout_per_class=5, settings={"keep_embeddings": False})
        .fit(*toy("fruit", "vehicle", "place", texts=40))
        .fitted_state()
    )


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


def test_strangers_say_how_much_each_sign_counts():
    """Where texts of unknown classes would get sure answers, nearness has to tell them."""
    scores, labels, near = far_and_near()
    sure = Strangers(torch.from_numpy(scores), torch.from_numpy(near.nearest_stranger))
    crossed_out = calibrate(scores, labels, list("abcde"), near).familiarity
    found = calibrate(scores, labels, list("abcde"), near, sure).familiarity
    assert abs(found.confidence) < 0.1 < crossed_out.confidence
    assert found.nearness > crossed_out.nearness > 0


def test_known_and_strange_weigh_the_same_however_many_there_are():
    scores, labels, near = far_and_near()
    strangers = Strangers(torch.from_numpy(scores) / 4, torch.from_numpy(near.nearest_stranger))
    tripled = Strangers(strangers.scores.repeat(3, 1), strangers.nearest.repeat(3))
    once, thrice = (calibrate(scores, labels, list("abcde"), near, one) for one in (strangers, tripled))
    assert thrice.familiarity.threshold == pytest.approx(once.familiarity.threshold, abs=0.02)


def test_a_classifier_of_many_classes_is_calibrated_by_classes_left_out(make):
    words = ["apple", "pear", "car", "bike", "rain", "sun", "paris", "london", "anna"]
    texts = [f"the {word} is in a {other} {word}" for word in words for other in ("plum", "boat", "snow")]
    state = make("instant").fit(texts, [text.split()[1] for text in texts]).fitted_state()
    found, strangers = state.method.left_out(), state.method.strangers()
    near = Nearness(
        found.near.numpy(), found.nearest.double().numpy(), found.nearest_stranger.double().numpy()
    )
    asked = found.scores.numpy(), found.labels.tolist(), state.method.classes, near
    assert state.calibration == calibrate(*asked, strangers)
    assert state.calibration != calibrate(*asked)
