"""The pull toward the untouched encoder."""

from pathlib import Path
from typing import Any

import pytest
import torch

from repcl.data import InputKind
from repcl.losses import squared_distance
from repcl.methods import build_method, load_method, save_method
from repcl.methods.retention import retention
from tests.conftest import save_encoder, tiny_encoder, toy_task
from tests.methods.test_infomax import Terms

CHEAP = {
    "initial_epochs": 1,
    "replay_epochs": 1,
    "batch_size": 4,
    "memory_per_class": 2,
    "learning_rate": 1e-3,
    "warmup_epochs": 0.0,
}


def made(name: str, kind: InputKind = "sentence", encoder: Any = None, **settings: Any) -> Any:
    encoder = encoder or tiny_encoder(kind, dropout=0.0)
    return build_method(name, kind, encoder=encoder, settings={**CHEAP, **settings}, seed=7)


def test_the_distance_is_squared_summed_over_coordinates_and_averaged_over_texts():
    one, other = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[0.0, 0.0], [0.0, 3.0]])
    assert squared_distance(one, other).item() == pytest.approx((5 + 9) / 2)
    assert squared_distance(torch.zeros(0, 2), torch.zeros(0, 2)).item() == 0


@pytest.mark.parametrize("name", ["fea", "repcl"])
def test_the_pull_is_zero_at_the_first_step_and_grows_in_initial_learning_only(name):
    method = made(name, retain=0.5)
    method.observer = terms = Terms()
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    method.learn(toy_task("sentence", "weather", "place"))
    pulls = [step["retain"] for step in terms.of("initial learning")]
    assert pulls[0] == pytest.approx(0, abs=1e-9)
    assert pulls[1] > 0
    assert all("retain" not in step for step in terms.of("replay"))


@pytest.mark.parametrize("name", ["fea", "repcl"])
def test_without_weight_nothing_changes(name):
    plain, same = made(name), made(name, retain=0.0)
    for method in (plain, same):
        method.learn(toy_task("sentence", "fruit", "vehicle"))
    texts = toy_task("sentence", "fruit").test
    assert torch.equal(plain.scores(texts), same.scores(texts))


def drift(method: Any) -> float:
    task = toy_task("sentence", "fruit", "vehicle")
    method.learn(task)
    start = made("fea")
    now, before = (one.for_all(task.test, one.encoder.represent) for one in (method, start))
    return (now - before).norm().item()


def test_a_strong_pull_keeps_representations_where_they_were():
    assert drift(made("fea", retain=100.0, initial_epochs=8)) < 0.5 * drift(made("fea", initial_epochs=8))


@pytest.fixture(scope="module")
def relation_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder on disk that does not know the markers of relations yet."""
    folder = tmp_path_factory.mktemp("tiny")
    encoder = tiny_encoder("sentence", dropout=0.0)
    save_encoder(encoder, folder)
    return folder


def test_markers_of_the_untouched_encoder_are_those_the_run_began_with(relation_folder, tmp_path):
    method = made("fea", "relation", str(relation_folder), retain=0.5)
    task = toy_task("relation", "weather", "place")
    start = method.for_all(task.train, method.encoder.represent)
    method.learn(toy_task("relation", "fruit", "vehicle"))
    save_method(method, "fea", tmp_path / "saved")
    for later in (method, load_method(tmp_path / "saved", encoder=str(relation_folder))):
        later.classes = [*later.classes, *task.classes]
        batch = next(iter(later.batches(task.train, 4)))
        pull = retention(later, task.train, 1.0)
        assert pull is not None
        assert pull(batch, start[batch.positions]).item() == pytest.approx(0, abs=1e-9)
