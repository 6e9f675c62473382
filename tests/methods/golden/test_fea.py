"""FEA, sequential and joint training: golden stages recomputed text by text."""

import torch

from repcl.methods import Method
from tests.methods.golden.plain import (
    Plain,
    Stage,
    assert_epochs,
    assert_same_gradients,
    assert_same_weights,
    assert_memory,
    mean_loss,
    two_rates,
)
from tests.methods.golden.texts import task
from tests.methods.golden.watching import Watched, built, watch

RATES = {"learning_rate": 2e-3, "head_learning_rate": 1e-2, "weight_decay": 0.1, "clip_norm": 0.5}
FIRST, SECOND = task("fruit", "vehicle", each=3), task("weather", "place", each=4, shortest=6)


def plain_stage(plain: Plain, *, warmup: float = 0.0) -> Stage:
    return Stage(plain, two_rates(2e-3, 1e-2), decay=0.1, clip=0.5, warmup=warmup)


def test_fea_learns_new_texts_alone_and_then_the_memory_of_all_classes() -> None:
    method = built(
        "fea", initial_epochs=2, replay_epochs=2, batch_size=3, memory_per_class=2, warmup_epochs=1.0, **RATES
    )
    method.learn(FIRST)
    old = list(method.memory)
    watched = watch(method, SECOND)
    plain = Plain(method, watched.states[0], [*FIRST.train, *SECOND.train])

    initial, memory, replay = range(3)
    batches = watched.trained_on(initial)
    assert_epochs(batches, plain.rows(SECOND.train), 2)
    stage = plain_stage(plain, warmup=3)
    for batch in batches:
        stage.step(mean_loss(plain, batch))
    assert_same_gradients(watched, initial, stage)

    assert_memory(method, old, SECOND, plain.kept_feature)

    batches = watched.trained_on(replay)
    assert_epochs(batches, plain.rows(method.memory), 2)
    stage = plain_stage(plain, warmup=3)
    for batch in batches:
        stage.step(mean_loss(plain, batch))
    assert_same_gradients(watched, replay, stage)
    assert_same_weights(method.state_dict(), plain)
