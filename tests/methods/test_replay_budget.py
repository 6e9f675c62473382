"""Replay of a part of the memory, drawn anew for each epoch."""

import pytest

from repcl.methods import METHODS
from repcl.methods.settings import ReplaySettings
from tests.conftest import toy_task
from tests.methods.golden.watching import Watched, built, watch

REPLAYING = [name for name, method in METHODS.items() if issubclass(method.Settings, ReplaySettings)]
OF_MEMORY = ("replay", "reconsolidation")


def learned(name: str, budget: int | None) -> Watched:
    """What was seen of a second task, with four exemplars of each of five classes."""
    kind = "relation" if name == "aca" else "sentence"
    own = {"rp_cre_epochs": 1} if name == "aca" else {}
    shared = {"initial_epochs": 1, "replay_epochs": 1, "memory_per_class": 4, "batch_size": 4}
    if name == "repcl":
        shared["adversarial_steps"] = 1
    method = built(name, kind, **shared, replay_budget=budget, **own)
    method.learn(toy_task(kind, "fruit", "vehicle"))
    return watch(method, toy_task(kind, "weather", "place", "person"))


def shown(watched: Watched, *stages: str) -> int:
    """How many texts training has shown in stages of these names."""
    return sum(
        len(texts)
        for number, stage in enumerate(watched.stages)
        if stage in stages
        for texts in watched.trained_on(number)
    )


@pytest.mark.parametrize("name", REPLAYING)
def test_an_epoch_shows_as_many_exemplars_as_the_budget_says(name: str) -> None:
    assert shown(learned(name, 12), *OF_MEMORY) == 12


@pytest.mark.parametrize("name", REPLAYING)
def test_without_a_budget_all_are_shown(name: str) -> None:
    assert shown(learned(name, None), *OF_MEMORY) == 20


@pytest.mark.parametrize("name", ["emar", "aca"])
def test_activation_shows_the_new_texts_beside_the_budget(name: str) -> None:
    few, all_of_them = (shown(learned(name, budget), "activation") for budget in (12, None))
    assert all_of_them - few == 8
