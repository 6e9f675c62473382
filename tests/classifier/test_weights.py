"""Sample weights: how many times a text counts."""

import numpy as np
import pytest
import torch

from repcl.classifier import InvalidInput
from repcl.classifier.weights import weighted
from repcl.data import Example
from repcl.errors import InvalidSetting
from tests.classifier.conftest import toy

pytestmark = pytest.mark.filterwarnings("ignore::repcl.classifier.ForgettingWarning")

TEXTS, LABELS = toy("fruit", "vehicle", texts=5)
ASKED = toy("fruit", "vehicle", start=70)[0]


def times(weights: list[float], labels: list[str] | None = None) -> list[int]:
    examples = [Example(f"text {number}", "") for number in range(len(weights))]
    found, _ = weighted(examples, labels or ["a"] * len(weights), weights, seed=0)
    return [found.count(example) for example in examples]


@pytest.mark.parametrize("name", ["instant", "ncm", "lda", "refit", "fea"])
def test_whole_weights_are_copies_and_none(make, name):
    weights = [0, 2, 1, 1, 3, 1, 1, 1, 0, 1]
    weighing = make(name).fit(TEXTS, LABELS, sample_weight=weights)
    copied = make(name).fit(np.repeat(TEXTS, weights), np.repeat(LABELS, weights))
    np.testing.assert_array_equal(weighing.predict_proba(ASKED), copied.predict_proba(ASKED))


def test_weights_of_one_change_nothing(make):
    plain = make("instant").fit(TEXTS, LABELS)
    weighing = make("instant").partial_fit(TEXTS, LABELS, sample_weight=np.ones(10))
    np.testing.assert_array_equal(weighing.predict_proba(ASKED), plain.predict_proba(ASKED))


def test_fractions_add_up_within_a_class():
    assert sum(times([0.5] * 10)) == 5
    assert sorted(times([2.7, 2.7, 2.7])) == [2, 3, 3]
    found = times([0.25] * 8 + [1.5] * 4, ["a"] * 8 + ["b"] * 4)
    assert (sum(found[:8]), sum(found[8:])) == (2, 6)


def test_a_class_of_little_weight_keeps_its_heaviest_text():
    assert times([0.1, 0.3, 0.0]) == [0, 1, 0]


def test_a_single_number_is_for_all_texts():
    assert times(np.float64(2.0) * np.ones(3)) == [2, 2, 2]
    assert weighted([Example("one", "")], ["a"], 3, seed=0)[1] == ["a"] * 3


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1.0], "one sample_weight for each of the 2 texts"),
        ([1.0, -1.0], "found -1.0 at position 1"),
        ([1.0, float("nan")], "found nan at position 1"),
        ([1.0, 1e9], "from 0 to 1000"),
        ([0, 0], "above 0 for some text"),
        (["a", "b"], "a number for each text"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(weights, said):
    with pytest.raises(InvalidInput, match=said):
        weighted([Example("one", ""), Example("two", "")], ["a", "a"], weights, seed=0)


def test_several_labels_take_no_weights(make):
    with pytest.raises(InvalidSetting, match="no sample_weight"):
        make("ncm", multilabel=True).fit(TEXTS, LABELS, sample_weight=[1] * 10)


@pytest.mark.parametrize(("name", "within"), [("instant", 1e-3), ("ncm", 1e-6)])
def test_all_copies_of_a_text_are_left_out_together(make, name, within):
    settings = {"ridge": 0.5} if name == "instant" else {}
    copied = make(name, settings=settings).fit(TEXTS, LABELS, sample_weight=[3] + [1] * 9)
    never = make(name, settings=settings).fit(TEXTS[1:], LABELS[1:])
    asked = Example(TEXTS[0], "fruit")
    method = copied.method_
    left = method.left_out()
    row = method.embed([asked])
    is_copy = (method.ledger.kept.rows[left.indices] == row).all(dim=1)
    assert int(is_copy.sum()) == 3
    expected = never.method_.scores([asked])[0].double()
    for scores in left.scores[is_copy]:
        torch.testing.assert_close(scores, expected, atol=within, rtol=0)
    assert float(left.nearest[is_copy[left.near]].max()) < 1 - 1e-6


def test_lda_leaves_all_copies_out_of_mean_and_covariance(make):
    copied = make("lda").fit(TEXTS, LABELS, sample_weight=[3] + [1] * 9).method_
    rows = copied.ledger.kept.rows.double() / 2**15
    labels = copied.ledger.kept.labels.long()
    first = copied.embed([Example(TEXTS[0], "fruit")]).double()[0] / 2**15
    rest = ~(rows == first).all(dim=1)
    shrinkage, freedom = copied.settings.shrinkage, len(rows) - 2

    def scatter(chosen):
        means = torch.stack([rows[chosen & (labels == c)].mean(dim=0) for c in range(2)])
        away = (rows - means[labels])[chosen]
        return means, away.T @ away

    spread = (scatter(torch.ones(len(rows), dtype=torch.bool))[1] / freedom).diagonal().mean()
    means, inside = scatter(rest)
    shrunk = (1 - shrinkage) * inside / freedom + shrinkage * spread * torch.eye(len(inside))
    inverse = torch.linalg.inv(shrunk) * (freedom - 3) / freedom
    expected = means @ inverse @ first - 0.5 * (means @ inverse * means).sum(dim=1)
    left = copied.left_out()
    found = left.scores[(copied.ledger.kept.rows[left.indices].double() / 2**15 == first).all(dim=1)]
    torch.testing.assert_close(found[0], expected, rtol=1e-5, atol=1e-5)
