"""Texts with several labels in the ledger of a learner on a frozen encoder."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from repcl.data import Example, Task
from repcl.methods.base import seeded
from repcl.methods.frozen.instant import Instant
from repcl.methods.frozen.method import FrozenMethod
from repcl.methods.frozen.ncm import NCM
from repcl.methods.frozen.shared_texts import SharedLedger, SharedTexts, is_first, without_the_text
from tests.conftest import tiny_encoder, toy_task
from tests.methods.frozen_helpers import forget

CLASSES = ("fruit", "vehicle", "weather")
TASK = toy_task("sentence", *CLASSES, train=5)
CHEAP = {"features": 40, "maps": 2, "ridge": 0.5}
BOTH = replace(TASK.train[0], label="vehicle")  # the first text of fruit is about a vehicle, too
EXAMPLES = [*TASK.train, BOTH]


def learned(chosen: type[FrozenMethod], examples: list[Example], **settings: Any) -> Any:
    encoder = tiny_encoder()
    with seeded(7, 0, encoder.device):
        method = chosen(encoder, chosen.Settings(multilabel=True, **settings), seed=7).eval()
    method.learn(Task(CLASSES, examples, []))
    return method


def assert_same_sums(one: FrozenMethod, other: FrozenMethod) -> None:
    ours, theirs = one.state_dict(), other.state_dict()
    for name in (name for name in ours if name.startswith("ledger.sums.")):
        assert torch.equal(ours[name], theirs[name]), name


def test_products_count_a_text_once_and_classes_count_it_each() -> None:
    method = learned(Instant, EXAMPLES, **CHEAP)
    rows = method.embed(TASK.train)
    features = method.features(rows, 0)
    expected = sum(torch.outer(row, row) for row in features)
    (first, _) = method.ledger.moments()
    assert torch.equal(first.gram(), expected)
    assert first.counts.tolist() == [5, 6, 5]
    assert torch.equal(first.sums[1].double(), features[5:10].sum(dim=0) + features[0])


def test_a_text_that_comes_twice_with_a_label_has_it_once() -> None:
    assert_same_sums(learned(Instant, EXAMPLES, **CHEAP), learned(Instant, [*EXAMPLES, BOTH], **CHEAP))


def test_a_text_that_is_taken_back_twice_takes_no_other_with_it() -> None:
    method = learned(Instant, EXAMPLES, **CHEAP)
    forget(method, [BOTH, BOTH])
    assert_same_sums(method, learned(Instant, TASK.train, **CHEAP))


@pytest.mark.parametrize(("distance", "left"), [(16, 1), (17, 2)])
def test_a_known_text_takes_the_row_that_another_machine_made_and_none_farther_off(
    distance: int, left: int
) -> None:
    ledger = SharedLedger(2, (), keeps_rows=True)
    ledger.book_in(torch.tensor([[100, 0], [0, 100]]).short(), torch.tensor([0, 0]), as_they_are)
    asked = torch.tensor([[100, distance]]).short()
    ledger.book_out(asked, torch.tensor([0]), as_they_are, are_known=True)
    assert len(ledger.kept.rows) == left


def as_they_are(rows: torch.Tensor, number: int) -> torch.Tensor:
    return rows.double()


def test_a_text_that_loses_one_of_its_labels_keeps_the_other() -> None:
    method = learned(Instant, EXAMPLES, **CHEAP)
    forget(method, [BOTH])
    assert_same_sums(method, learned(Instant, TASK.train, **CHEAP))


def test_a_text_that_loses_its_last_label_is_gone() -> None:
    method = learned(Instant, EXAMPLES, **CHEAP)
    forget(method, [BOTH, TASK.train[0]])
    assert_same_sums(method, learned(Instant, TASK.train[1:], **CHEAP))


def test_a_class_is_removed_and_its_shared_texts_stay_in_the_others() -> None:
    method = learned(Instant, EXAMPLES, **CHEAP)
    method.forget_class("vehicle")
    never = [example for example in TASK.train if example.label != "vehicle"]
    encoder_free = learned(Instant, never, **CHEAP)
    encoder_free.regroup_classes({"fruit": ["fruit"], "weather": ["weather"]})
    assert_same_sums(method, encoder_free)


def test_a_text_of_two_classes_that_are_merged_is_in_the_union_once() -> None:
    method = learned(Instant, EXAMPLES, **CHEAP)
    method.regroup_classes({"thing": ["fruit", "vehicle"], "weather": ["weather"]})
    direct = learned(Instant, TASK.train, **CHEAP)
    direct.regroup_classes({"thing": ["fruit", "vehicle"], "weather": ["weather"]})
    assert_same_sums(method, direct)


def test_sums_made_again_from_kept_rows_are_the_same() -> None:
    method = learned(Instant, EXAMPLES, **CHEAP)
    before = {name: value.clone() for name, value in method.state_dict().items()}
    method.ledger.sum_up_again(method.features)
    for name, value in method.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_two_learners_that_know_one_text_are_united_exactly() -> None:
    one, other = learned(Instant, TASK.train, **CHEAP), learned(Instant, [BOTH, *TASK.train[:3]], **CHEAP)
    one.absorb(other)
    assert_same_sums(one, learned(Instant, EXAMPLES, **CHEAP))


@pytest.mark.parametrize(("chosen", "settings"), [(Instant, CHEAP), (NCM, {})])
def test_left_out_scores_are_those_of_a_learner_that_never_saw_the_text(chosen: Any, settings: Any) -> None:
    method = learned(chosen, EXAMPLES, **settings)
    left = method.left_out_texts()
    for text in (TASK.train[0], TASK.train[7]):
        never = learned(chosen, [one for one in EXAMPLES if one.text != text.text], **settings)
        texts = SharedTexts.of(method.ledger.kept, 3)
        place = int((texts.rows == method.embed([text])).all(dim=1).nonzero())
        key = int(texts.keys[place])
        found = left.scores[(left.keys == key).nonzero()[0, 0]]
        torch.testing.assert_close(found.float(), never.scores([text])[0], atol=1e-4, rtol=0)


def test_a_learner_of_one_label_a_text_is_not_asked_about_several() -> None:
    with pytest.raises(NotImplementedError, match="one label"):
        FrozenMethod.left_out_text_scores(learned(NCM, EXAMPLES), torch.zeros(1, 1), torch.zeros(1, 1))


def test_leaving_a_text_out_takes_its_own_part_from_each_of_its_labels() -> None:
    fitted = torch.tensor([[0.6, 0.5, 0.1]], dtype=torch.float64)
    has_label = torch.tensor([[True, True, False]])
    found = without_the_text(fitted, torch.tensor([0.2], dtype=torch.float64), has_label)
    assert found.tolist() == [pytest.approx([0.4 / 0.8, 0.3 / 0.8, 0.1 / 0.8])]


def test_a_text_of_a_class_that_is_asked_about_in_part_stands_for_several() -> None:
    has_label = torch.tensor([[True, False]] * 4 + [[False, True]])
    texts = SharedTexts(torch.arange(5), torch.zeros(5, 2), has_label)
    assert texts.stands_for(torch.tensor([0, 4])).tolist() == pytest.approx([4.0, 1.0])


def test_the_nearest_stranger_shares_no_label() -> None:
    rows = torch.tensor([[100, 0], [100, 10], [0, 100]], dtype=torch.int16)
    has_label = torch.tensor([[True, False], [True, True], [False, True]])
    texts = SharedTexts(torch.arange(3), rows, has_label)
    nearest, stranger = texts.nearest_others(torch.tensor([0]))
    assert nearest.tolist() == pytest.approx([100 / 10100**0.5])
    assert stranger.tolist() == pytest.approx([0.0])


def test_the_first_of_equal_keys_is_told_from_the_others() -> None:
    assert is_first(torch.tensor([3, 1, 3, 2, 1])).tolist() == [True, True, False, True, False]


def test_several_labels_need_kept_embeddings_and_no_balance() -> None:
    with pytest.raises(ValueError, match="keep_embeddings = true"):
        NCM.Settings(multilabel=True, keep_embeddings=False)
    with pytest.raises(ValueError, match="balanced = true is for texts of one label"):
        Instant.Settings(multilabel=True, balanced=True)
