"""EMAR against the numbers worked out by hand in its specification."""

from typing import Any

import pytest
import torch
from torch import Tensor

from repcl.data import Task
from repcl.memory import class_means, nearest_to_centers
from repcl.methods.emar import EMAR, prototype_loss, unit_prototypes
from tests.conftest import toy_example, toy_task
from tests.methods.prototype_helpers import (
    FAST,
    Diary,
    copied,
    count_updates,
    fewrel_sized,
    labeled,
    longest_moves,
    make,
    matrix,
    same,
)


def test_reconsolidation_loss_of_a_feature_nearer_to_the_wrong_prototype() -> None:
    prototypes = class_means(matrix((1, 0), (0, 1), (2, 0)), torch.tensor([0, 0, 1]), 2)
    torch.testing.assert_close(prototypes, matrix((0.5, 0.5), (2, 0)))
    feature = matrix((1, 1)).requires_grad_()
    loss = prototype_loss(feature, prototypes, torch.tensor([0]))
    loss.backward()
    assert loss.item() == pytest.approx(1.313262, abs=1e-6)
    torch.testing.assert_close(feature.grad, matrix((1.096588, -0.365529)), atol=1e-6, rtol=0)


def test_prototypes_take_no_gradient() -> None:
    prototypes = matrix((0.5, 0.5), (2, 0)).requires_grad_()
    prototype_loss(matrix((1, 1)).requires_grad_(), prototypes, torch.tensor([0])).backward()
    assert prototypes.grad is None


def test_reconsolidation_loss_survives_dot_products_of_many_thousands() -> None:
    feature = matrix((200, -100)).requires_grad_()
    loss = prototype_loss(feature, matrix((-300, 100), (300, 0)), torch.tensor([0]))
    loss.backward()
    assert loss.isfinite()
    assert feature.grad is not None
    assert feature.grad.isfinite().all()


def test_reconsolidation_loss_is_computed_in_full_precision_under_autocast() -> None:
    feature, prototypes = matrix((16.1, 16.2)), matrix((16.3, 16.4), (16.35, 16.4))
    exact = prototype_loss(feature, prototypes, torch.tensor([0]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = prototype_loss(feature, prototypes, torch.tensor([0]))
    assert torch.equal(exact, mixed)


def test_test_prototype_counts_the_classifier_row_as_one_more_unit_feature() -> None:
    prototypes = unit_prototypes(matrix((3, 4), (0, 2)), torch.tensor([0, 0]), matrix((1, 0)))
    torch.testing.assert_close(prototypes, matrix((0.664364, 0.747409)), atol=1e-6, rtol=0)


SPREAD = (matrix((1, 0), (-1, 0), (1, 1), (1, 1)), torch.tensor([0, 0, 1, 1]), matrix((0, 1), (1, 1)))


def test_a_spread_class_is_not_punished_since_prototypes_have_unit_length() -> None:
    prototypes = unit_prototypes(*SPREAD)
    torch.testing.assert_close(prototypes, matrix((0, 1), (0.707107, 0.707107)), atol=1e-6, rtol=0)
    scores = matrix((0.3, 1)) @ prototypes.T
    torch.testing.assert_close(scores, matrix((1.0, 0.919239)), atol=1e-6, rtol=0)


def test_lengths_of_features_and_rows_do_not_matter() -> None:
    features, labels, rows = SPREAD
    scaled = unit_prototypes(
        features * torch.tensor([[5.0], [0.1], [2.0], [7.0]]), labels, rows * torch.tensor([[3.0], [0.2]])
    )
    torch.testing.assert_close(scaled, unit_prototypes(*SPREAD))
    for factor in (0.01, 1.0, 100.0):
        assert (factor * matrix((0.3, 1)) @ scaled.T).argmax() == 0


def test_the_order_of_exemplars_does_not_matter() -> None:
    features, labels, rows = SPREAD
    order = torch.tensor([3, 0, 2, 1])
    shuffled = unit_prototypes(features[order], labels[order], rows)
    torch.testing.assert_close(shuffled, unit_prototypes(*SPREAD))
    torch.testing.assert_close(
        class_means(features[order], labels[order], 2), class_means(features, labels, 2)
    )


def test_a_class_without_exemplars_is_represented_by_its_classifier_row() -> None:
    prototypes = unit_prototypes(matrix((1, 0)), torch.tensor([0]), matrix((1, 0), (0, 3)))
    torch.testing.assert_close(prototypes, matrix((1, 0), (0, 1)))


def test_features_that_cancel_out_give_no_nan() -> None:
    prototypes = unit_prototypes(matrix((1, 0), (-1, 0)), torch.tensor([0, 0]), matrix((0, 0)))
    assert torch.equal(prototypes, matrix((0, 0)))


@pytest.mark.parametrize(("reserved", "expected"), [(True, 1.407606), (False, 0.313262)])
def test_cross_entropy_runs_over_rows_of_unseen_classes_when_they_are_reserved(
    reserved: bool, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = make(EMAR, hidden_layer=False, reserved=reserved, expected_classes=3)
    method.classes = ["first", "second"]
    method.grow_head()
    rows = matrix((1, 0), (0, 1), (1, 1), width=32)
    method.head.output.weight.data = rows[: len(method.head.output.weight)]
    monkeypatch.setattr(method.encoder, "represent", lambda batch: matrix((1, 2), width=32))
    assert method.classify(labeled(1))["ce"].item() == pytest.approx(expected, abs=1e-6)


def test_reconsolidation_moves_the_encoder_and_leaves_the_classifier_alone() -> None:
    method = make(EMAR, **FAST)
    method.observer = diary = Diary(
        lambda: (method.head.output.weight.clone(), copied(method.encoder.state_dict()))
    )
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    for (name, (rows, encoder)), (_, (rows_after, encoder_after)) in zip(
        diary.begins, diary.ends, strict=True
    ):
        if name == "reconsolidation":
            assert torch.equal(rows, rows_after)
            assert not same(encoder, encoder_after)
    assert diary.stages.count("reconsolidation") == 2


def test_anchors_are_taken_before_the_activation_of_their_round(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(EMAR, **FAST)
    features = "features before activation"
    method.observer = diary = Diary(lambda: method.exemplar_prototypes(method.classes))
    calls: list[str] = diary.stages
    used: list[Tensor] = []
    plain, plain_loss = method.exemplar_prototypes, method.reconsolidate

    def noted(names: list[str]) -> Tensor:
        calls.append(features)
        prototypes: Tensor = plain(names)
        return prototypes

    def watched(anchors: Tensor, batch: Any) -> Any:
        used.append(anchors)
        return plain_loss(anchors, batch)

    method.learn(toy_task("sentence", "fruit", "vehicle"))
    monkeypatch.setattr(method, "exemplar_prototypes", noted)
    monkeypatch.setattr(method, "reconsolidate", watched)
    diary.look = lambda: plain(method.classes)
    calls.clear()
    diary.begins.clear()
    method.learn(toy_task("sentence", "weather"))
    rounds = [features, "activation", "reconsolidation"]
    assert calls == ["initial learning", "memory update", *rounds, *rounds]
    before = [seen for name, seen in diary.begins if name == "activation"]
    steps = len(used) // 2
    assert torch.equal(used[0], before[0])
    assert torch.equal(used[-1], before[1])
    assert all(anchors is used[0] for anchors in used[:steps])
    assert not torch.equal(before[0], before[1])


def test_the_first_task_is_learned_like_the_others() -> None:
    method = make(EMAR, **FAST)
    method.observer = diary = Diary()
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    first = list(diary.stages)
    method.learn(toy_task("sentence", "weather", "place"))
    assert diary.stages == [*first, *first]


def test_exemplars_come_from_their_own_class_and_those_of_old_classes_stay() -> None:
    method = make(EMAR, **FAST)
    task = toy_task("sentence", "fruit", "vehicle")
    lonely = Task(("place",), [toy_example("sentence", "place", 0)], [])
    method.learn(task)
    old = {name: method.memory.of(name) for name in task.classes}
    method.learn(lonely)
    assert method.memory.counts() == {"fruit": 3, "vehicle": 3, "place": 1}
    assert {name: method.memory.of(name) for name in task.classes} == old
    assert all(example in task.train and example.label == name for name in old for example in old[name])


def test_exemplars_are_nearest_to_the_centers() -> None:
    points = matrix((0, 0), (0, 1), (0, 2), (10, 0), (10, 1), (10, 2)).numpy()
    assert sorted(nearest_to_centers(points, 2)) == [1, 4]


def test_updates_of_a_fewrel_run(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = count_updates(make(EMAR, "relation"), fewrel_sized(), monkeypatch)
    assert (steps[0], steps[9], sum(steps)) == (432, 520, 4760)


def test_features_are_taken_without_dropout_and_learning_has_it_on_again() -> None:
    method = make(EMAR, **FAST)
    task = toy_task("sentence", "fruit", "vehicle")
    method.learn(task)
    first, second = (method.for_all(task.train, method.exemplar_features) for _ in range(2))
    assert torch.equal(first, second)
    modes: list[bool] = []
    plain = method.exemplar_features
    method.exemplar_features = lambda batch: (modes.append(method.training), plain(batch))[1]
    method.observer = Diary()
    method.learn(toy_task("sentence", "weather"))
    assert {True, False} == set(modes)
    assert not method.training


def test_labels_are_positions_among_the_seen_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(EMAR)
    method.classes = ["5", "2"]
    batch = next(iter(method.batches(toy_task("sentence", "fruit").train[:1], 4)))
    assert batch.labels.tolist() == [-1]
    example = toy_example("sentence", "fruit", 0)
    relabeled = [type(example)(example.text, "2")]
    batch = next(iter(method.batches(relabeled, 4)))
    assert batch.labels.tolist() == [1]
    monkeypatch.setattr(method, "exemplar_features", lambda batch: matrix((1, 1)))
    terms = method.reconsolidate(matrix((2, 0), (0.5, 0.5)), batch)
    assert terms["prototypes"].item() == pytest.approx(1.313262, abs=1e-6)


def test_hidden_layer_learns_at_the_rate_of_the_encoder() -> None:
    method = make(EMAR, batch_size=64, initial_epochs=1, clip_norm=1e9)
    method.classes = ["fruit", "vehicle"]
    method.grow_head()
    before = copied(method.state_dict())
    method.learn_new(toy_task("sentence", "fruit", "vehicle"))
    moved = longest_moves(before, method.state_dict())
    # the first step of Adam is as long as the learning rate
    assert moved["head.output.weight"] == pytest.approx(1e-3, rel=0.02)
    assert moved["head.hidden.1.weight"] == pytest.approx(1e-5, rel=0.02)
    assert moved["encoder.backbone.encoder.layer.0.output.dense.weight"] == pytest.approx(1e-5, rel=0.02)


@pytest.mark.parametrize("kind", ["sentence", "relation", "event"])
@pytest.mark.parametrize("hidden_layer", [True, False])
def test_features_come_from_the_hidden_layer_unless_it_is_switched_off(kind: Any, hidden_layer: bool) -> None:
    method = make(EMAR, kind, hidden_layer=hidden_layer, **FAST)
    method.learn(toy_task(kind, "fruit", "vehicle"))
    width = 32 if hidden_layer or kind != "relation" else 64
    assert method.prototypes.shape == (2, width)
    assert method.scores(toy_task(kind, "fruit").test).shape == (3, 2)


def test_a_class_of_one_example_a_batch_of_one_class_and_no_memory_give_no_nan() -> None:
    for settings in (FAST, FAST | {"memory_total": 1}, FAST | {"batch_size": 1}):
        method = make(EMAR, **settings)
        method.learn(Task(("fruit",), [toy_example("sentence", "fruit", 0)], []))
        method.learn(toy_task("sentence", "vehicle"))
        assert method.scores(toy_task("sentence", "fruit", "vehicle").test).isfinite().all()
        assert all(value.isfinite().all() for value in method.state_dict().values())
