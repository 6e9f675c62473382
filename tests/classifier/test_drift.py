"""Has what comes in changed?"""

from math import asin, comb, sqrt

import numpy as np
import pytest

from repcl.classifier.answering import Evidence, UnknownRule
from repcl.classifier.drift import Drift, Share, cohens_h, drift, unknown_p_value
from repcl.classifier.inputs import InvalidInput
from repcl.classifier.store.records import Calibration, Familiarity
from repcl.errors import InvalidSetting
from tests.classifier.conftest import toy


class Fixed:
    """A state whose texts say themselves which class they are, and how surely."""

    name, kind = "fixed", "sentence"

    def __init__(self, sizes, *, threshold=0.5, calibrated_by=100, familiarity=None):
        self.calibration = Calibration(threshold=threshold, texts=calibrated_by, familiarity=familiarity)
        self.method = type("Method", (), {"classes": list(sizes or "ab")})()
        self.sizes = sizes or {}

    def texts_of_classes(self):
        return {name: self.sizes.get(name) for name in self.method.classes}

    def probabilities(self, examples):
        names = self.method.classes
        found = np.zeros((len(examples), len(names)))
        for row, example in zip(found, examples, strict=True):
            row[names.index(example.text) if example.text in names else 0] = example.text in names
        return found

    def evidence(self, examples):
        return Evidence(self.method.classes, self.probabilities(examples))

    def has_labels(self, found):
        return np.arange(found.shape[1]) == found.argmax(axis=1)[:, None]

    def unknown_rule(self):
        return UnknownRule(0.5)


def test_the_effect_is_cohens_h():
    assert cohens_h(0.25, 0.0) == pytest.approx(2 * asin(0.5))
    assert cohens_h(0.1, 0.4) == pytest.approx(2 * (asin(sqrt(0.1)) - asin(sqrt(0.4))))


def test_the_p_value_counts_orders_of_old_and_new_texts():
    # One of 3 old texts lies below the threshold, which is the second of them. Among the C(5, 2) orders of 3
    # old and 2 new texts, both new ones come before the second old one in nnooo, nonoo and onnoo.
    assert unknown_p_value(2, 2, before=1, of=3) == pytest.approx(3 / comb(5, 2))
    assert unknown_p_value(0, 2, before=1, of=3) == pytest.approx(1.0)


@pytest.mark.parametrize(("chosen_by", "counted"), [(40, 40), (None, 1000)])
def test_chance_is_that_of_the_texts_that_the_rule_was_chosen_by(chosen_by, counted):
    signs = Familiarity(confidence=1.0, nearness=1.0, offset=0.0, threshold=0.5, texts=chosen_by)
    found = drift(Fixed(None, calibrated_by=1000, familiarity=signs), ["a"] * 45 + ["?"] * 5)
    expected = unknown_p_value(5, 50, before=0.05 * counted, of=counted)
    assert found.unknown.p_value == pytest.approx(expected)


def test_the_same_shares_are_no_change():
    found = drift(Fixed({"a": 50, "b": 50}), ["a", "b"] * 30)
    assert not found.is_changed
    assert found.verdict == "Nothing has changed beyond chance in 60 texts."
    assert found.distance == 0
    assert [share.p_value for share in found.classes] == [1.0, 1.0]


def test_more_unknown_texts_are_a_change():
    found = drift(Fixed({"a": 50, "b": 50}), ["a", "b"] * 30 + ["?"] * 40)
    assert found.unknown.now == 0.4
    assert found.unknown.before == pytest.approx(0.05)
    assert found.unknown.is_changed
    assert not any(share.is_changed for share in found.classes)
    assert "40.0% of the texts are unknown where 5.0% were expected (p < 0.001)" in found.verdict


def test_another_share_of_a_class_is_a_change():
    found = drift(Fixed({"a": 90, "b": 10}), ["a"] * 60 + ["b"] * 40)
    first = found.classes[0]
    assert (first.before, first.now, first.texts) == (0.9, 0.6, 60)
    assert found.distance == pytest.approx(0.3)
    assert found.verdict.startswith(
        "Incoming texts have changed: 2 of 2 classes have different shares (a 90.0% →"
    )


def test_p_values_are_corrected_for_the_number_of_shares():
    one = drift(Fixed({"a": 50, "b": 50}, threshold=None), ["a"] * 33 + ["b"] * 17)
    sizes = {"a": 50, "b": 50} | dict.fromkeys("cdefgh", 0)
    many = drift(Fixed(sizes, threshold=None), ["a"] * 33 + ["b"] * 17)
    first, again = one.classes[0].p_value, many.classes[0].p_value
    assert again == pytest.approx(first * 8 / 2)


def test_a_sure_change_that_is_tiny_is_not_worth_a_word():
    assert not Share("a", 0.05, 0.06, 600, 1e-9, cohens_h(0.06, 0.05)).is_changed
    assert Share("a", 0.05, 0.12, 600, 1e-9, cohens_h(0.12, 0.05)).is_changed
    assert not Share("a", 0.05, 0.12, 6, 0.06, cohens_h(0.12, 0.05)).is_changed


def test_few_texts_say_nothing():
    assert drift(Fixed({"a": 5, "b": 5}), ["a"] * 3).verdict == (
        "No verdict: 3 texts are too few to tell a change from chance."
    )


def test_earlier_texts_take_the_place_of_learned_ones():
    found = drift(Fixed(None), ["a"] * 40, ["a"] * 20 + ["b"] * 20)
    assert found.reference == "40 earlier texts, asked about in the same way"
    assert found.is_changed
    assert [(share.name, share.before) for share in found.classes] == [("a", 0.5), ("b", 0.5)]
    assert (found.unknown.before, found.unknown.p_value) == (0.0, 1.0)


def test_without_known_sizes_only_unknown_texts_are_compared():
    found = drift(Fixed(None), ["a"] * 40)
    assert found.classes == ()
    assert found.distance is None
    assert found.reference == "the 5% of known texts that the threshold calls unknown"


def test_with_nothing_to_compare_with_earlier_texts_are_asked_for():
    with pytest.raises(InvalidSetting, match="give earlier texts to compare with"):
        drift(Fixed(None, threshold=None), ["a"])


def test_no_text_is_refused():
    with pytest.raises(InvalidInput, match="Expected texts to look at, found none"):
        drift(Fixed({"a": 1, "b": 1}), [])
    with pytest.raises(InvalidInput, match="Expected earlier texts to look at, found none"):
        drift(Fixed({"a": 1, "b": 1}), ["a"], [])


@pytest.mark.parametrize("method", ["fea", "instant", "ncm", "refit"])
def test_every_kind_of_model_can_be_asked(make, method):
    classifier = make(method, holdout_per_class=5).fit(*toy("fruit", "vehicle", texts=25))
    found = classifier.drift(toy("fruit", "vehicle", texts=15, start=60)[0])
    assert isinstance(found, Drift)
    assert found.texts == 30
    assert len(found.classes) == 2


@pytest.mark.parametrize("method", ["instant", "ncm", "refit", "joint"])
def test_methods_that_count_know_how_many_texts_of_each_class_they_learned(make, method):
    texts, labels = toy("fruit", texts=7)
    more, others = toy("vehicle", texts=4)
    classifier = make(method).fit([*texts, *more], [*labels, *others])
    state = classifier.fitted_state()
    sizes = {name: state.texts_of_classes()[name] for name in classifier.method_.classes}
    assert sizes == {"fruit": 7, "vehicle": 4}
