"""The learners on a frozen encoder: two tasks and their answers, recomputed from all texts at once."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from repcl.methods import Method
from tests.conftest import library_tokenizer
from tests.methods.golden.plain import Plain
from tests.methods.golden.texts import task
from tests.methods.golden.watching import built, copied, watch


@pytest.fixture(autouse=True, scope="module")
def _double_precision() -> None:
    """Embeddings are kept in single precision, whatever the encoder computes in."""


Rows = NDArray[np.float64]
FIRST, SECOND = task("fruit", "vehicle", each=3), task("weather", "place", each=4, shortest=6)
EVERYTHING = [*FIRST.train, *SECOND.train]
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])


def learned(name: str, **settings: Any) -> tuple[Method, Rows]:
    """A method that reads the last layer, after two tasks, and all representations as it rounds them."""
    method = built(name, layers=(1.0,), **settings)
    before = copied(method.encoder)
    watched = [watch(method, FIRST), watch(method, SECOND)]
    assert not any(one.steps or any(shown.is_training for shown in one.shown) for one in watched)
    assert all(torch.equal(value, before[key]) for key, value in method.encoder.state_dict().items())
    plain = Plain(method, copied(method), EVERYTHING)
    with torch.no_grad():
        rows = (
            torch.stack([plain.represent(ids, training=False) for ids in plain.rows(EVERYTHING)])
            .double()
            .numpy()
        )
    return method, np.round(rows / np.linalg.norm(rows, axis=1, keepdims=True) * 2**15) / 2**15


def assert_scores(method: Method, expected: Rows, *, within: float = 1e-5) -> None:
    np.testing.assert_allclose(method.scores(EVERYTHING).numpy(), expected, rtol=0.0, atol=within)


def test_ncm_answers_with_the_cosine_to_the_mean_of_each_class() -> None:
    method, rows = learned("ncm")
    means = np.stack([rows[label == LABELS].mean(axis=0) for label in range(4)])
    lengths = np.outer(np.linalg.norm(rows, axis=1), np.linalg.norm(means, axis=1))
    assert_scores(method, rows @ means.T / lengths)


def test_lda_answers_with_gaussians_of_one_shrunk_covariance() -> None:
    method, rows = learned("lda", shrinkage=0.2)
    means = np.stack([rows[label == LABELS].mean(axis=0) for label in range(4)])
    around = rows - means[LABELS]
    covariance = around.T @ around / (len(rows) - 4)
    shrunk = 0.8 * covariance + 0.2 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    inverse = np.linalg.inv(shrunk)
    likelihoods = np.array([[-0.5 * (row - one) @ inverse @ (row - one) for one in means] for row in rows])
    common = np.array([-0.5 * row @ inverse @ row for row in rows])  # the same for all classes
    assert_scores_relative(method, likelihoods - common[:, None])


def assert_scores_relative(method: Method, expected: Rows) -> None:
    np.testing.assert_allclose(method.scores(EVERYTHING).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_refit_answers_with_a_logistic_regression_on_all_texts() -> None:
    method, rows = learned("refit", inverse_penalty=3.0)
    model = LogisticRegression(C=3.0, max_iter=1000).fit(rows, LABELS)
    # a component half way between two grid points may be rounded up on one processor and down on another
    assert_scores(method, model.decision_function(rows), within=1e-3)


def random_features(rows: Rows, maps: int, size: int, seed: int) -> list[Rows]:
    """relu(z W) of every map, rounded to the grids that keep sums exact."""
    drawn = np.random.RandomState(seed).standard_normal((maps, rows.shape[1], size))
    return [np.round(np.maximum(rows @ (np.round(one * 2**10) / 2**10), 0) * 2**6) / 2**6 for one in drawn]


def ridge_scores(features: Rows, ridge: float) -> Rows:
    """Ridge regression on one-hot targets."""
    gram = features.T @ features + ridge * np.eye(features.shape[1])
    scores: Rows = features @ np.linalg.solve(gram, features.T @ np.eye(4)[LABELS])
    return scores


def test_instant_answers_with_ridge_regression_on_random_features() -> None:
    method, rows = learned("instant", features=30, maps=2, map_seed=5, ridge=0.7)
    features = random_features(rows, 2, 30, 5)
    assert_scores(method, np.mean([ridge_scores(one, 0.7) for one in features], axis=0))


def test_balanced_instant_gives_every_class_the_same_weight() -> None:
    method, rows = learned("instant", features=30, maps=1, ridge=0.7, balanced=True)
    (features,) = random_features(rows, 1, 30, 0)
    means = np.stack([features[label == LABELS].mean(axis=0) for label in range(4)])
    around = features - means[LABELS]  # the spread inside classes is taken as shared
    gram = around.T @ around + 14 / 4 * means.T @ means
    expected = features @ np.linalg.solve(gram + 0.7 * np.eye(30), 14 / 4 * means.T)
    assert_scores(method, expected)


def cross_validated(features: Rows) -> float:
    """The ridge of the smallest generalized cross-validation error n |y - Hy|² / tr(I - H)²."""
    targets, size = np.eye(4)[LABELS], len(features)
    errors = {}
    for ridge in np.logspace(-1, 4, 21):
        hat = features @ np.linalg.inv(features.T @ features + ridge * np.eye(features.shape[1])) @ features.T
        errors[ridge] = ((targets - hat @ targets) ** 2).sum() / np.trace(np.eye(size) - hat) ** 2
    return float(min(errors, key=lambda ridge: errors[ridge]))


def test_instant_takes_the_ridge_of_generalized_cross_validation_over_the_number_of_maps() -> None:
    method, rows = learned("instant", features=30, maps=2, map_seed=5)
    features = random_features(rows, 2, 30, 5)
    ridge = cross_validated(features[0]) / 2
    assert_scores(method, np.mean([ridge_scores(one, ridge) for one in features], axis=0))


@pytest.mark.parametrize("kind", ["relation", "event"])
def test_relations_and_events_are_read_from_two_layers_at_unit_length(kind: Any) -> None:
    first = task("fruit", "vehicle", kind=kind, each=3)
    method = built("ncm", kind)
    method.learn(first)
    rows = []
    for example in first.train:
        tokenizer = library_tokenizer(method.encoder)
        encoded = tokenizer(example.text, return_offsets_mapping=True, return_tensors="pt")
        offsets = encoded.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            layers = method.encoder.backbone(**encoded, output_hidden_states=True).hidden_states
        marks = [mark for mark in (example.head, example.tail, example.trigger) if mark is not None]
        inside = [list(range(1, len(offsets) - 1))]
        inside += [
            [at for at, (start, end) in enumerate(offsets) if start < mark.end and end > mark.start]
            for mark in marks
        ]
        # of two layers the first stands for one half, the second for five sixths
        parts = [layers[depth][0, positions].mean(dim=0) for positions in inside for depth in (1, 2)]
        rows.append(torch.cat([part / part.norm() for part in parts]))
    units = torch.stack(rows) / torch.stack(rows).norm(dim=1, keepdim=True)
    means = torch.stack([units[:3].mean(dim=0), units[3:].mean(dim=0)])
    expected = units @ (means / means.norm(dim=1, keepdim=True)).T
    torch.testing.assert_close(method.scores(first.train), expected, rtol=0.0, atol=1e-4)


def test_the_tower_answers_with_a_softmax_regression_that_holds_old_classes() -> None:
    method, rows = learned("tower", memory_per_class=2, old_pull=3.0, new_pull=0.5, iterations=500)
    first = tower_by_gradient_descent(
        rows[:6], LABELS[:6], np.ones(6), np.zeros((2, rows.shape[1] + 1)), [0.5, 0.5]
    )
    kept = {example for example in FIRST.train if example in set(method.memory)}
    assert len(kept) == 4
    used = [at for at, example in enumerate(EVERYTHING) if at >= 6 or example in kept]
    # four new texts of each new class, and two exemplars of each old one, which count twice
    shares = np.array([2.0 if at < 6 else 1.0 for at in used])
    start = np.vstack([first, np.zeros((2, rows.shape[1] + 1))])
    second = tower_by_gradient_descent(rows[used], LABELS[used], shares, start, [3.0, 3.0, 0.5, 0.5])
    expected = np.hstack([rows, np.ones((len(rows), 1))]) @ second.T
    found = method.scores(EVERYTHING).numpy()
    # small steps take for ever to find what all offsets have in common, which changes no probability
    difference = found - found.mean(axis=1, keepdims=True) - expected + expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(difference, 0.0, atol=1e-3)


def tower_by_gradient_descent(rows: Rows, labels: Any, shares: Any, start: Rows, pulls: list[float]) -> Rows:
    """Where Σ s CE + ½ Σ λ |W - W⁰|² is least, the pull on offsets a hundredth; found by small steps."""
    inputs = torch.from_numpy(np.hstack([rows, np.ones((len(rows), 1))]))
    anchor = torch.from_numpy(start)
    scale = torch.ones(inputs.shape[1], dtype=torch.float64)
    scale[-1] = 0.01
    weights = anchor.clone().requires_grad_(True)
    for _ in range(600):
        losses = [
            share * -torch.log_softmax(weights @ row, dim=0)[label]
            for row, label, share in zip(inputs, labels, shares, strict=True)
        ]
        pull = sum(
            0.5 * strength * (scale * (row - old) ** 2).sum()
            for strength, row, old in zip(pulls, weights, anchor, strict=True)
        )
        (slope,) = torch.autograd.grad(torch.stack(losses).sum() + pull, weights)
        weights = (weights - 0.1 * slope).detach().requires_grad_(True)
    return weights.detach().numpy()
