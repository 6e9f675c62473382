"""FEA, and fine-tuning on each task or on everything: golden stages, recomputed text by text."""

from typing import Any

import pytest
import torch
from torch import Tensor

from repcl.methods import Method
from tests.methods.golden.plain import (
    Plain,
    Stage,
    assert_epochs,
    assert_goes_on,
    assert_memory,
    assert_same_gradients,
    assert_same_weights,
    cosine,
    cross_entropy,
    mean,
    mean_loss,
    two_rates,
)
from tests.methods.golden.texts import task
from tests.methods.golden.watching import Ids, State, Watched, built, copied, watch

SETTINGS: dict[str, Any] = {
    "batch_size": 3,
    "initial_epochs": 2,
    "learning_rate": 2e-3,
    "head_learning_rate": 1e-2,
    "weight_decay": 0.1,
    "warmup_epochs": 1.0,
    "clip_norm": 0.5,
}
WITH_MEMORY = {**SETTINGS, "replay_epochs": 2, "memory_per_class": 2}
FIRST, SECOND = task("fruit", "vehicle", each=3), task("weather", "place", each=4, shortest=6)
EVERYTHING = [*FIRST.train, *SECOND.train]


def plain_stage(plain: Plain, watched: Watched, number: int, *, passes: int = 1) -> Stage:
    """A stage of two epochs whose rates rise during the first."""
    steps = len(watched.trained_on(number)) // passes
    return Stage(plain, two_rates(2e-3, 1e-2), decay=0.1, clip=0.5, warmup=steps / 2)


def classified(plain: Plain, watched: Watched, number: int) -> Stage:
    """A stage of plain cross-entropy over the batches that were shown."""
    stage = plain_stage(plain, watched, number)
    for batch in watched.trained_on(number):
        stage.step(mean_loss(plain, batch))
    return stage


def assert_scores(method: Method, plain: Plain) -> None:
    """The classifier in evaluation mode answers, for seen classes."""
    texts = EVERYTHING
    expected = torch.stack([plain.logits(plain.ids[text], training=False) for text in texts])
    torch.testing.assert_close(
        method.scores(texts), expected[:, : len(method.classes)].detach(), atol=1e-6, rtol=0
    )


# ---- FEA -------------------------------------------------------------------------------------------


def test_fea_learns_new_texts_alone_and_then_the_memory_of_all_classes() -> None:
    method = built("fea", **WITH_MEMORY)
    method.learn(FIRST)
    old = list(method.memory)
    watched = watch(method, SECOND)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)
    initial, _, replay = range(3)

    assert_epochs(watched.trained_on(initial), plain.rows(SECOND.train), 2, 3)
    assert_same_gradients(watched, initial, classified(plain, watched, initial))
    assert_memory(method, old, SECOND, plain.kept_feature)
    assert_epochs(watched.trained_on(replay), plain.rows(method.memory), 2, 3)
    assert_same_gradients(watched, replay, classified(plain, watched, replay))
    assert_same_weights(method.state_dict(), plain)
    assert_scores(method, plain)


def test_the_first_task_of_fea_ends_with_the_choice_of_exemplars() -> None:
    method = built("fea", **WITH_MEMORY)
    watched = watch(method, SECOND)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)
    assert watched.training_stages() == [0]
    classified(plain, watched, 0)
    assert_memory(method, [], SECOND, plain.kept_feature)
    assert_same_weights(method.state_dict(), plain)


def test_reserved_rows_of_classes_to_come_are_in_the_softmax_and_never_in_the_answer() -> None:
    method = built("fea", **WITH_MEMORY, reserved=True, expected_classes=7)
    watched = watch(method, SECOND)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)
    assert len(plain["head.output.weight"]) == 7
    assert_same_gradients(watched, 0, classified(plain, watched, 0))
    assert_scores(method, plain)


def infomax(plain: Plain, batch: list[Ids], weight: float, temperature: float) -> Tensor:
    """Cross-entropy, and SimCSE's loss of two views of each text against the other texts' second views."""

    def views() -> list[Tensor]:
        seen = (plain.represent(ids, training=True) for ids in batch)
        return [torch.tanh(plain["other.0.weight"] @ one + plain["other.0.bias"]) for one in seen]

    first, second = views(), views()
    losses = []
    for number, view in enumerate(first):
        similarities = torch.stack([cosine(view, other) / temperature for other in second])
        losses.append(cross_entropy(similarities, number))
    return mean_loss(plain, batch) + weight * mean(losses)


def test_infomax_contrasts_two_views_of_each_text() -> None:
    method = built("fea", **WITH_MEMORY, infomax_weight=0.6, infomax_temperature=0.4)
    watched = watch(method, SECOND)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)
    (drawn,) = [value for value in watched.steps[0].others if value.dim() == 2]
    plain.weights["other.0.weight"] = drawn.clone().requires_grad_(True)
    plain.weights["other.0.bias"] = torch.zeros(len(drawn), requires_grad=True)
    stage = plain_stage(plain, watched, 0, passes=2)
    for batch in watched.trained_on(0)[::2]:
        stage.step(infomax(plain, batch, 0.6, 0.4))
    assert_same_gradients(watched, 0, stage)
    assert_same_weights(method.state_dict(), plain)


@pytest.mark.parametrize("name", ["fea", "repcl"])
def test_retention_pulls_toward_the_encoder_before_the_first_task(name: str) -> None:
    more = {"contrast": "none", "generation": "none"} if name == "repcl" else {}
    method = built(name, **WITH_MEMORY, **more, retain=0.8)
    untouched: State = copied(method)
    method.learn(FIRST)
    watched = watch(method, SECOND)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)

    def pull(ids: Ids) -> Tensor:
        target = plain.represent(ids, training=False, weights=untouched)
        return ((plain.represent(ids, training=True) - target) ** 2).sum()

    stage = plain_stage(plain, watched, 0)
    for batch in watched.trained_on(0):
        stage.step(mean_loss(plain, batch) + 0.8 * mean(pull(ids) for ids in batch))
    assert_same_gradients(watched, 0, stage)


# ---- the bounds ------------------------------------------------------------------------------------


def test_sequential_learning_goes_on_with_new_texts_only() -> None:
    method = built("sequential", **SETTINGS)
    method.learn(FIRST)
    watched = watch(method, SECOND)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)
    assert watched.training_stages() == [0]
    assert_epochs(watched.trained_on(0), plain.rows(SECOND.train), 2, 3)
    assert_same_gradients(watched, 0, classified(plain, watched, 0))
    assert_same_weights(method.state_dict(), plain)
    assert_scores(method, plain)
    assert len(method.memory) == 0


def test_joint_learning_waits_for_the_end_of_the_stream() -> None:
    method = built("joint", **SETTINGS)
    untouched = copied(method)
    watched = watch(method, FIRST, more_follow=True)
    assert watched.steps == []
    assert_same_weights(method.state_dict(), Plain(method, untouched, []))


@pytest.mark.parametrize("every_task", [False, True])
def test_joint_learning_starts_from_the_pretrained_encoder_with_all_texts(every_task: bool) -> None:
    method = built("joint", **SETTINGS, every_task=every_task)
    untouched = copied(method)
    method.learn(FIRST, more_follow=True)
    watched = watch(method, SECOND)
    plain = Plain(method, watched.states[0], EVERYTHING)
    for name, value in untouched.items():
        if name.startswith("encoder."):
            assert torch.equal(watched.states[0][name], value), name
    assert watched.states[0]["head.output.weight"].shape == (4, 32)
    assert_epochs(watched.trained_on(0), plain.rows(EVERYTHING), 2, 3)
    if not every_task:  # a head that was made anew has a real dropout
        assert_same_gradients(watched, 0, classified(plain, watched, 0))
        assert_same_weights(method.state_dict(), plain)
        assert_scores(method, plain)
