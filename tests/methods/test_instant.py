from typing import Any

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info
from torch import Tensor

from repcl.data import Example, Task
from repcl.errors import InvalidSetting
from repcl.methods import build_method
from repcl.methods.base import seeded
from repcl.methods.frozen import instant, random_features
from repcl.methods.frozen.instant import Instant
from repcl.methods.frozen.random_features import (
    FEATURE_STEPS,
    REPRESENTATION_STEPS,
    WEIGHT_STEPS,
    RandomFeatures,
    RecentFeatures,
    on_grid,
)
from repcl.methods.frozen.ridge import (
    LARGEST_SPECTRUM,
    RIDGES,
    choose_ridge,
    one_thread,
    ridge_factor,
    ridge_weights,
)
from repcl.methods.voting import standardized
from tests.conftest import tiny_encoder, toy_task
from tests.methods.frozen_helpers import forget

TASK = toy_task("sentence", "fruit", "vehicle", "weather", "place")


def learned(task: Task = TASK, **settings: Any) -> Instant:
    encoder = tiny_encoder()
    with seeded(7, 0, encoder.device):
        checked = Instant.Settings(**{"features": 40, "maps": 2, **settings})
        method = Instant(encoder, checked, seed=7)
    method.learn(task)
    return method


def hidden(method: Instant, examples: list[Example], which: int) -> np.ndarray[Any, Any]:
    """relu(z W), computed plainly."""
    rows = method.embed(examples).double().numpy() / REPRESENTATION_STEPS
    weights = method.maps.weights[which].T.double().numpy() / WEIGHT_STEPS
    plain = np.maximum(rows @ weights, 0.0)
    rounded: np.ndarray[Any, Any] = np.round(plain * FEATURE_STEPS) / FEATURE_STEPS
    return rounded


def one_hot(method: Instant) -> np.ndarray[Any, Any]:
    return np.eye(4)[[method.classes.index(example.label) for example in TASK.train]]


# ---- the solution ----------------------------------------------------------------------------------


def test_scores_are_the_ridge_solution_averaged_over_the_maps() -> None:
    method = learned(ridge=2.0)
    expected = []
    for which in range(2):
        features, targets = hidden(method, TASK.train, which), one_hot(method)
        weights = np.linalg.solve(features.T @ features + 2.0 * np.eye(40), features.T @ targets)
        expected.append(hidden(method, TASK.test, which) @ weights)
    np.testing.assert_allclose(method.scores(TASK.test).numpy(), np.mean(expected, axis=0), atol=1e-6)


def test_ridge_weights_solve_the_normal_equations() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(30, 8, generator=generator, dtype=torch.float64)
    targets = torch.randn(30, 3, generator=generator, dtype=torch.float64)
    found = ridge_weights(ridge_factor(features.T @ features, 0.7), features.T @ targets)
    expected = np.linalg.solve(
        features.numpy().T @ features.numpy() + 0.7 * np.eye(8), features.numpy().T @ targets.numpy()
    )
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_without_a_ridge_given_cross_validation_decides_and_the_maps_share_it() -> None:
    method = learned()
    gram, targets = method._problem(method.ledger.moments()[0], balanced=False)
    chosen = choose_ridge(gram, targets, len(TASK.train)) / 2
    torch.testing.assert_close(method.scores(TASK.test), learned(ridge=chosen).scores(TASK.test))


def test_the_ridge_chosen_does_not_depend_on_the_order_of_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[float] = []
    monkeypatch.setattr(
        instant, "choose_ridge", lambda *given: chosen.append(choose_ridge(*given)) or chosen[-1]
    )
    learned()
    other = learned(task=Task(TASK.classes[::-1], TASK.train[::-1], []))
    forget(other, TASK.train[:3])
    other.learn(Task(("fruit",), TASK.train[:3], []))
    assert chosen[0] == chosen[1] == chosen[-1]


def test_only_the_upper_triangle_is_read() -> None:
    features = torch.randn(30, 8, generator=torch.Generator().manual_seed(0)).double()
    gram, targets = features.T @ features, features.T @ torch.eye(30, 3).double()
    upper, whole = ridge_factor(gram.triu(), 0.7), ridge_factor(gram.clone(), 0.7)
    assert torch.equal(ridge_weights(upper, targets), ridge_weights(whole, targets))
    assert choose_ridge(gram.triu(), targets, 30) == choose_ridge(gram, targets, 30)


def test_balanced_classes_with_equal_counts_change_nothing() -> None:
    torch.testing.assert_close(
        learned(balanced=True, ridge=1.0).scores(TASK.test), learned(ridge=1.0).scores(TASK.test)
    )


def test_balanced_statistics_are_those_of_classes_that_weigh_the_same() -> None:
    # One class of three equal rows and one of one row: without spread inside, weights are all that differs.
    method = learned(balanced=True)
    moments = method.ledger.moments()[0]
    for name, value in moments.named_buffers():
        setattr(moments, name, torch.zeros_like(value))
    first, second = torch.zeros(1, 40, dtype=torch.float64), torch.zeros(1, 40, dtype=torch.float64)
    first[0, 0], second[0, 1] = FEATURE_STEPS, 2 * FEATURE_STEPS
    moments.add(torch.cat([first, first, first, second]), torch.tensor([0, 0, 0, 1]))
    gram, targets = method._problem(moments, balanced=True)
    assert gram[:2, :2].tolist() == [[2.0, 0.0], [0.0, 8.0]]  # n / C = 2 examples of each
    assert targets[:2, :2].tolist() == [[2.0, 0.0], [0.0, 4.0]]


# ---- the choice of the ridge -----------------------------------------------------------------------


def gcv(features: Tensor, targets: Tensor, ridge: float) -> float:
    """n ‖Y - SY‖² / (n - tr S)², with the hat matrix S written out."""
    size = features.shape[1]
    gram = features.T @ features + ridge * torch.eye(size, dtype=torch.float64)
    hat = features @ torch.linalg.solve(gram, features.T)
    residual = targets - hat @ targets
    return float(len(features) * (residual**2).sum() / (len(features) - hat.trace()) ** 2)


@pytest.mark.parametrize("examples", [12, 40, 300])
def test_the_chosen_ridge_minimizes_generalized_cross_validation(examples: int) -> None:
    generator = torch.Generator().manual_seed(examples)
    features = 5 * torch.randn(examples, 20, generator=generator, dtype=torch.float64).relu()
    labels = (features[:, :3] + 4 * torch.randn(examples, 3, generator=generator)).argmax(dim=1)
    targets = torch.nn.functional.one_hot(labels, 3).double()
    chosen = choose_ridge(features.T @ features, features.T @ targets, examples)
    best = min(gcv(features, targets, float(ridge)) for ridge in RIDGES)
    assert gcv(features, targets, chosen) == pytest.approx(best, rel=1e-6)


def test_a_large_spectrum_is_judged_by_its_first_features() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(50, LARGEST_SPECTRUM + 50, generator=generator, dtype=torch.float64)
    targets = torch.nn.functional.one_hot(torch.arange(50) % 5, 5).double()
    features[:, LARGEST_SPECTRUM:] = 100.0 * targets.repeat(1, 10)  # all of them would choose another ridge
    part = features[:, :LARGEST_SPECTRUM]
    assert choose_ridge(features.T @ features, features.T @ targets, 50) == choose_ridge(
        part.T @ part, part.T @ targets, 50
    )


def test_rounding_does_not_decide_where_the_criterion_is_flat() -> None:
    # With a single example every ridge is as good as any other.
    features = torch.rand(1, 10, dtype=torch.float64)
    targets = torch.ones(1, 1, dtype=torch.float64)
    assert choose_ridge(features.T @ features, features.T @ targets, 1) == float(RIDGES.max())


def test_features_that_are_all_zero_give_a_ridge_all_the_same() -> None:
    assert choose_ridge(torch.zeros(4, 4).double(), torch.zeros(4, 2).double(), 3) in RIDGES


# ---- random features -------------------------------------------------------------------------------


def test_features_are_the_rectified_products_in_whole_steps() -> None:
    maps = RandomFeatures(6, 9, 2, seed=3)
    rows = on_grid(torch.randn(5, 6, generator=torch.Generator().manual_seed(0)))
    found = maps(rows, 1)
    plain = (rows.double() / REPRESENTATION_STEPS @ (maps.weights[1].T.double() / WEIGHT_STEPS)).relu()
    assert torch.equal(found, found.round())
    torch.testing.assert_close(found / FEATURE_STEPS, plain, rtol=0.0, atol=0.5 / FEATURE_STEPS)


def test_maps_are_standard_normal_and_differ() -> None:
    weights = RandomFeatures(50, 400, 2, seed=0).weights / WEIGHT_STEPS
    assert weights.mean().item() == pytest.approx(0.0, abs=0.02)
    assert weights.std().item() == pytest.approx(1.0, abs=0.02)
    assert not torch.equal(weights[0], weights[1])


def test_maps_are_drawn_from_their_seed_for_ever() -> None:
    # These numbers must never change, or saved learners would read other features than they learned.
    assert RandomFeatures(2, 2, 1, seed=0).weights.mT.flatten().tolist() == [1806.0, 410.0, 1002.0, 2295.0]


def test_maps_are_not_saved() -> None:
    assert not any("maps" in name for name in learned().state_dict())


def test_the_seed_of_a_round_does_not_change_the_maps() -> None:
    encoder = tiny_encoder()
    one, other = (Instant(encoder, Instant.Settings(features=8), seed=seed) for seed in (1, 2))
    assert torch.equal(one.maps.weights, other.maps.weights)


def test_features_do_not_depend_on_the_other_rows() -> None:
    maps = RandomFeatures(32, 64, 1, seed=0)
    rows = on_grid(torch.randn(100, 32, generator=torch.Generator().manual_seed(0)))
    assert torch.equal(torch.cat([maps(row[None], 0) for row in rows]), maps(rows, 0))


# ---- memory ----------------------------------------------------------------------------------------


def test_recent_features_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = RandomFeatures(8, 5, 2, seed=0)
    rows = on_grid(torch.randn(4, 8, generator=torch.Generator().manual_seed(0)))
    recent = RecentFeatures(maps)
    recent(rows[:3], 0)
    expected, forward, computed = maps(rows, 1), maps.forward, list[int]()

    def counted(rows: Tensor, which: int) -> Tensor:
        computed.append(len(rows))
        return forward(rows, which)

    monkeypatch.setattr(maps, "forward", counted)
    assert torch.equal(recent(rows, 1), expected)
    assert computed == [1, 1]  # the row that is new, by both maps


def test_features_that_are_no_longer_recent_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_features, "MOST_RECENT", 2)
    maps = RandomFeatures(8, 5, 2, seed=0)
    rows = on_grid(torch.randn(4, 8, generator=torch.Generator().manual_seed(0)))
    recent = RecentFeatures(maps)
    recent(rows, 0)
    assert torch.equal(recent(rows, 0), maps(rows, 0))


def test_linear_algebra_can_be_held_to_one_thread() -> None:
    with one_thread():
        used = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    assert set(used) == {1}


def test_the_bytes_of_the_statistics_are_those_of_a_float32_triangle_and_the_class_sums() -> None:
    method = learned(keep_embeddings=False)
    triangle, sums, counts = 40 * 41 // 2 * 4, 4 * 40 * 4, 4 * 4
    assert method.statistics_bytes() == 2 * (triangle + sums + counts)
    embeddings = len(TASK.train) * (3 * 32 * 2 + 4)
    assert learned().statistics_bytes() == 2 * (triangle + sums + counts) + embeddings


def test_the_vote_adds_the_standardized_scores_of_instant_and_refit() -> None:
    task, small = toy_task("sentence", "fruit", "vehicle", "weather"), {"features": 32, "maps": 2}
    found = {}
    for name, settings in (("instant", small), ("refit", {}), ("instant", {**small, "vote": True})):
        method = build_method(name, "sentence", encoder=tiny_encoder(), settings=settings)
        method.learn(task)
        found[type(method).__name__] = method.scores(task.test)
    expected = standardized(found["Instant"]) + standardized(found["Refit"])
    torch.testing.assert_close(found["Vote"], expected.float())


def test_a_vote_without_embeddings_is_refused() -> None:
    settings = {"vote": True, "keep_embeddings": False}
    with pytest.raises(InvalidSetting, match="keep_embeddings"):
        build_method("instant", "sentence", encoder=tiny_encoder(), settings=settings)
