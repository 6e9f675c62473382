"""EMAR and RP-CRE: a second task, recomputed text by text."""

from typing import Any

from tests.methods.golden.hosts import assert_emar, assert_rp_cre, plain_initial
from tests.methods.golden.plain import Plain, assert_goes_on
from tests.methods.golden.texts import task
from tests.methods.golden.watching import built, watch

SETTINGS: dict[str, Any] = {
    "batch_size": 4,
    "initial_epochs": 2,
    "replay_epochs": 2,
    "memory_per_class": 2,
    "learning_rate": 4e-4,
    "head_learning_rate": 1e-2,
    "clip_norm": 0.3,
}
FIRST, SECOND = task("fruit", "vehicle", each=3), task("weather", "place", each=4, shortest=6)
EVERYTHING = [*FIRST.train, *SECOND.train]


def test_emar_alternates_activation_with_a_return_to_prototypes_from_before_it() -> None:
    method = built("emar", **SETTINGS)
    method.learn(FIRST)
    old = list(method.memory)
    watched = watch(method, SECOND)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)
    assert_emar(method, watched, plain, SECOND, old, plain_initial(SECOND))


def test_the_first_task_of_emar_goes_like_every_other() -> None:
    method = built("emar", **SETTINGS)
    watched = watch(method, SECOND)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)
    assert_emar(method, watched, plain, SECOND, [], plain_initial(SECOND))


def test_rp_cre_trains_a_new_memory_network_on_old_and_new_prototypes() -> None:
    # a fast encoder and more texts, so that the second choice of exemplars differs from the first
    more = {"learning_rate": 2e-3, "network_learning_rate": 4e-3, "attention_heads": 2, "key_size": 5}
    second = task("weather", "place", each=5, shortest=6)
    method = built("rp_cre", **{**SETTINGS, **more})
    method.learn(FIRST)
    old = list(method.memory)
    watched = watch(method, second)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], [*FIRST.train, *second.train])
    assert_rp_cre(method, watched, plain, second, old, plain_initial(second))
