"""FEA + InfoMax: SimCSE's loss on two dropout views of each new text."""

from collections.abc import Mapping
from math import exp, log
from typing import Any

import pytest
import torch
from torch import Tensor

from repcl.experiments import plan_run
from repcl.losses import info_nce
from repcl.methods import build_method, load_method, save_method
from repcl.training import Observer
from tests.conftest import tiny_encoder, toy_task
from tests.experiments.runs.test_run import toy_stream

CHEAP = {"initial_epochs": 1, "replay_epochs": 1, "batch_size": 4, "memory_per_class": 2}


class Terms(Observer):
    """Names and values of all terms, by stage."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, float]]] = []

    def stage_begins(self, name: str, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        self.stage_name = name

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        self.seen.append((self.stage_name, {name: term.item() for name, term in terms.items()}))

    def of(self, stage: str) -> list[dict[str, float]]:
        return [terms for name, terms in self.seen if name == stage]


def learned(*, dropout: float = 0.1, tasks: int = 2, **settings: Any) -> tuple[Any, Terms]:
    method = build_method(
        "fea", "sentence", encoder=tiny_encoder(dropout=dropout), settings={**CHEAP, **settings}
    )
    method.observer = terms = Terms()
    for topics in [("fruit", "vehicle"), ("weather", "place")][:tasks]:
        method.learn(toy_task("sentence", *topics))
    return method, terms


def views_loss(one: Tensor, other: Tensor, temperature: float = 0.05) -> float:
    return info_nce(one, other, temperature=temperature, own_key=torch.arange(len(one))).item()


def test_identical_views_of_orthogonal_texts_give_the_loss_worked_out_by_hand():
    texts = torch.eye(4, dtype=torch.float64)
    assert views_loss(texts, texts) == pytest.approx(log(1 + 3 * exp(-1 / 0.05)), rel=1e-6)
    assert views_loss(7 * texts, 0.1 * texts) == pytest.approx(views_loss(texts, texts))


def test_views_that_are_all_equal_give_ln_of_their_number_and_a_single_text_gives_zero():
    assert views_loss(torch.ones(5, 3), torch.ones(5, 3)) == pytest.approx(log(5), abs=1e-6)
    assert views_loss(torch.ones(1, 3), torch.ones(1, 3)) == 0


def test_two_passes_differ_in_training_and_agree_in_evaluation():
    method = build_method("fea", "sentence", encoder=tiny_encoder(), settings=CHEAP)
    task = toy_task("sentence", "fruit")
    method.classes = ["fruit"]
    batch = next(iter(method.batches(task.train, 4)))
    method.train()
    assert not torch.equal(method.encoder.represent(batch), method.encoder.represent(batch))
    method.eval()
    assert torch.equal(method.encoder.represent(batch), method.encoder.represent(batch))


def test_the_variant_sets_the_weight_of_repcls_contrast():
    plan = plan_run("fea@infomax", toy_stream())
    assert plan.settings["infomax_weight"] == 0.05
    assert plan.settings["infomax_temperature"] == 0.05


def test_infomax_acts_in_initial_learning_only():
    _, terms = learned(infomax_weight=0.05)
    assert all(set(step) == {"ce", "infomax"} for step in terms.of("initial learning"))
    assert all(set(step) == {"ce"} for step in terms.of("replay"))


def test_the_infomax_term_stays_below_its_weight_times_ln_of_the_batch_at_the_start():
    _, terms = learned(infomax_weight=1.0, infomax_temperature=1.0, tasks=1, dropout=0.0)
    assert 0 < terms.of("initial learning")[0]["infomax"] < log(4)


def test_without_weight_the_method_is_plain_fea_to_the_last_bit():
    plain, _ = learned()
    same, _ = learned(infomax_weight=0.0)
    texts = toy_task("sentence", "fruit").test
    assert torch.equal(plain.scores(texts), same.scores(texts))


def test_the_head_of_the_views_is_trained_and_then_dropped(tmp_path):
    plain, _ = learned(tasks=1)
    method, _ = learned(infomax_weight=0.5, tasks=1)
    assert method.state_dict().keys() == plain.state_dict().keys()
    texts = toy_task("sentence", "fruit").test
    assert not torch.equal(plain.scores(texts), method.scores(texts))
    save_method(method, "fea", tmp_path / "saved")
    loaded = load_method(tmp_path / "saved", encoder=tiny_encoder())
    assert torch.equal(loaded.scores(texts), method.scores(texts))


def test_a_batch_of_one_text_gives_no_nan():
    method = build_method(
        "fea", "sentence", encoder=tiny_encoder(), settings={**CHEAP, "infomax_weight": 0.05, "batch_size": 1}
    )
    method.learn(toy_task("sentence", "fruit", train=2))
    assert method.scores(toy_task("sentence", "fruit").test).isfinite().all()
