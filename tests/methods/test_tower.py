"""The tower fits new texts beside class-balanced exemplars and holds old classes where they were."""

import numpy as np
import torch

from repcl.methods import build_method
from repcl.methods.frozen.tower import AnchoredSoftmax, Tower
from tests.conftest import tiny_encoder, toy_task

FIRST, SECOND = toy_task("sentence", "fruit", "vehicle"), toy_task("sentence", "weather", "place")


def tower(**settings: float) -> Tower:
    made = build_method("tower", "sentence", encoder=tiny_encoder(), settings=settings)
    assert isinstance(made, Tower)
    return made


def problem() -> AnchoredSoftmax:
    generator = np.random.default_rng(0)
    return AnchoredSoftmax(
        rows=generator.normal(size=(5, 3)),
        labels=np.array([0, 1, 1, 2, 0]),
        shares=np.array([1.0, 2.0, 0.5, 1.0, 3.0]),
        start=generator.normal(size=(3, 3)),
        pulls=np.array([[2.0], [0.5], [1.0]]) * np.ones(3),
    )


def test_the_slope_is_that_of_the_value() -> None:
    one, at = problem(), np.linspace(-1, 1, 9)
    _, slope = one.value_and_slope(at)
    for index in range(9):
        step = np.zeros(9)
        step[index] = 1e-6
        rise = (one.value_and_slope(at + step)[0] - one.value_and_slope(at - step)[0]) / 2e-6
        np.testing.assert_allclose(slope[index], rise, rtol=1e-5, atol=1e-7)


def test_the_value_counts_each_text_by_its_share_and_each_weight_by_its_pull() -> None:
    one = problem()
    at = one.start + 1.0
    expected = 0.5 * (2.0 + 0.5 + 1.0) * 3
    for row, label, share in zip(one.rows, one.labels, one.shares, strict=True):
        logits = [sum(weight * number for weight, number in zip(own, row, strict=True)) for own in at]
        expected += share * (np.log(sum(np.exp(logits))) - logits[label])
    np.testing.assert_allclose(one.value_and_slope(at.ravel())[0], expected)


def test_a_strong_pull_holds_old_classes() -> None:
    held, loose = tower(old_pull=1e6), tower(old_pull=0.01)
    moved = []
    for method in (held, loose):
        method.learn(FIRST)
        before = method.weights.detach().clone()
        method.learn(SECOND)
        moved.append(float((method.weights.detach()[:2] - before).abs().max()))
    assert moved[0] < 1e-4 < moved[1]


def test_a_class_that_comes_again_may_move() -> None:
    method = tower(old_pull=1e6)
    method.learn(FIRST)
    before = method.weights.detach().clone()
    method.learn(toy_task("sentence", "fruit", start=20))
    moved = (method.weights.detach() - before).abs().amax(dim=1)
    assert moved[0] > 1e-3 > moved[1]


def test_only_exemplars_of_old_texts_are_kept() -> None:
    method = tower(memory_per_class=2)
    method.learn(FIRST)
    assert method.memory.counts() == {"fruit": 2, "vehicle": 2}
    assert method.statistics_bytes() == 0


def test_each_text_is_encoded_once(monkeypatch) -> None:
    method, asked = tower(memory_per_class=2), []
    encode = method.embedder.encode
    monkeypatch.setattr(
        method.embedder, "encode", lambda examples: asked.extend(examples) or encode(examples)
    )
    method.learn(FIRST)
    method.learn(SECOND)
    assert len(asked) == len(set(asked)) == 24


def test_the_fit_does_not_depend_on_the_number_of_layers_side_by_side() -> None:
    method = build_method("tower", "sentence", encoder=tiny_encoder(), settings={"layers": (0.5, 1.0)})
    assert isinstance(method, Tower)
    lengths = method._scaled(method.embed(FIRST.train)).reshape(12, 2, 32).norm(dim=2)
    torch.testing.assert_close(lengths, torch.ones(12, 2).double(), rtol=0, atol=1e-3)
