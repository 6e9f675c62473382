"""The first task trains the encoder; from then on it is `instant` on an encoder that never changes."""

import copy
from typing import Any

import pytest
import torch

from repcl.methods.base import seeded
from repcl.methods.build import build_method
from repcl.methods.frozen.first_session import FirstSession
from repcl.methods.frozen.instant import Instant, InstantSettings
from repcl.methods.sequential import Sequential
from repcl.methods.settings import make_settings
from repcl.methods.state import load_method, save_method
from repcl.presets import load_preset
from tests.conftest import tiny_encoder, toy_task

FIRST, SECOND = toy_task("sentence", "fruit", "vehicle"), toy_task("sentence", "weather")
CHEAP: dict[str, Any] = {"features": 32, "maps": 2, "initial_epochs": 1, "learning_rate": 1e-3}


def made(**settings: Any) -> FirstSession:
    method = build_method(
        "first_session", "sentence", encoder=tiny_encoder(), settings={**CHEAP, **settings}, seed=7
    )
    assert isinstance(method, FirstSession)
    return method


def weights(method: FirstSession) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in method.encoder.parameters()])


def test_the_first_task_trains_the_encoder() -> None:
    method = made()
    before = weights(method)
    method.learn(FIRST)
    assert not torch.equal(weights(method), before)


def test_later_tasks_leave_the_encoder_as_it_is() -> None:
    method = made()
    method.learn(FIRST)
    before = weights(method)
    method.learn(SECOND)
    assert torch.equal(weights(method), before)
    assert not any(parameter.requires_grad for parameter in method.encoder.parameters())


def test_it_is_fine_tuning_on_the_first_task_then_instant() -> None:
    method = made()
    by_hand = copy.deepcopy(method.encoder).requires_grad_(True)
    with seeded(7, 0, by_hand.device):  # the first weights of the classifier
        trainer = Sequential(by_hand, method.settings.of_the_first_task, seed=7)
    trainer.learn(FIRST)
    settings = make_settings(
        InstantSettings, method.settings.model_dump(include=set(InstantSettings.model_fields))
    )
    expected = Instant(by_hand, settings, seed=7)
    for task in (FIRST, SECOND):
        method.learn(task)
        expected.learn(task)
    asked = [*FIRST.test, *SECOND.test]
    assert torch.equal(method.scores(asked), expected.scores(asked))


def test_texts_embedded_before_the_training_are_embedded_again() -> None:
    method = made()
    untouched = method.embed(FIRST.test)
    method.learn(FIRST)
    assert not torch.equal(method.embed(FIRST.test), untouched)


@pytest.mark.parametrize("vote", [False, True])
def test_saved_and_loaded_it_learns_on_as_if_nothing_had_happened(tmp_path: Any, vote: bool) -> None:
    method = made(vote=vote)
    method.learn(FIRST)
    save_method(method, "first_session", tmp_path)
    loaded = load_method(tmp_path, encoder=tiny_encoder())
    for one in (method, loaded):
        one.learn(SECOND)
    asked = [*FIRST.test, *SECOND.test]
    assert torch.equal(loaded.scores(asked), method.scores(asked))


def test_presets_of_fine_tuning_are_its_own() -> None:
    found = load_preset("cpu").settings_for("first_session", "demo", "sentence")
    assert (found["initial_epochs"], found["batch_size"], found["learning_rate"]) == (3, 8, 5e-5)


def test_relations_are_read_without_new_words_and_can_be_trained() -> None:
    method = build_method("first_session", "relation", encoder=tiny_encoder(), settings=CHEAP)
    method.learn(toy_task("relation", "fruit", "vehicle"))
    assert len(method.predict(toy_task("relation", "fruit").test)) == len(toy_task("relation", "fruit").test)
