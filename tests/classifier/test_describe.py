"""Classes that start from their name or a description."""

import pytest

from repcl.classifier.inputs import InvalidInput
from repcl.classifier.labels import spoken
from repcl.data import Example, Span
from repcl.errors import InvalidSetting
from tests.classifier.conftest import toy


@pytest.mark.parametrize(
    "label", ["card_payment_fee", "cardPaymentFee", "Card payment: fee", "card-payment-fee "]
)
def test_a_label_is_spoken_as_words(label):
    assert spoken(label) == "card payment fee"


@pytest.mark.parametrize("label", ["17", "_-_", 3])
def test_a_label_without_words_needs_a_description(label):
    with pytest.raises(InvalidInput, match="give a description"):
        spoken(label)


def test_a_class_can_start_from_its_name(make):
    classifier = make("ncm").fit(*toy("fruit", "vehicle")).describe_class("bad_weather")
    assert classifier.predict(["bad weather"]).tolist() == ["bad_weather"]


def test_a_description_counts_as_one_text(make):
    described = make("ncm").fit(*toy("fruit", "vehicle")).describe_class("x", "the rain and the snow")
    taught = make("ncm").fit(*toy("fruit", "vehicle")).partial_fit(["the rain and the snow"], ["x"])
    asked = toy("weather")[0]
    assert (described.predict_proba(asked) == taught.predict_proba(asked)).all()


def test_a_description_that_is_a_text_of_another_class_is_refused(make):
    classifier = make("ncm").fit(*toy("fruit", "vehicle")).describe_class("card-fee")
    sentence = r"'card fee' is a text of class 'card-fee' already: describe 'card_fee' in words of its own"
    with pytest.raises(InvalidInput, match=sentence):
        classifier.describe_class("card_fee")
    assert classifier.classes_.tolist() == ["card-fee", "fruit", "vehicle"]
    classifier.describe_class("card_fee", "what a card costs").describe_class("card-fee")
    assert classifier.classes_.tolist() == ["card-fee", "card_fee", "fruit", "vehicle"]


def test_a_class_that_is_described_first_may_be_the_only_one(make):
    assert make("ncm").describe_class("bad_weather").classes_.tolist() == ["bad_weather"]


def test_a_relation_cannot_be_described(make):
    example = Example("anna lives in paris", "home", head=Span(0, 4), tail=Span(14, 19))
    classifier = make("ncm").fit([example, example], ["home", "work"])
    with pytest.raises(InvalidSetting, match="learn examples instead"):
        classifier.describe_class("origin")
