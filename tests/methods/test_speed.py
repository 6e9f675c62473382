"""`speed`: one setting that decides all that is left open, and what its parts do."""

from typing import Any

import pytest
import torch
from torch import Tensor

from repcl.data import InputKind
from repcl.methods import METHODS, settings
from repcl.methods.build import build_method
from repcl.methods.duet import Duet
from repcl.methods.fea import FEA, FEASettings
from repcl.methods.repcl import RepCL, RepCLSettings, clean_partners
from repcl.methods.settings import TrainingSettings
from tests.conftest import tiny_encoder, toy_task
from tests.methods.golden.watching import built, watch

TRAINED = [name for name, method in METHODS.items() if issubclass(method.Settings, TrainingSettings)]
SHORT: dict[str, Any] = {"initial_epochs": 1, "batch_size": 6, "warmup_epochs": 0.0}


def resolved(kind: InputKind = "sentence", *, gains: bool = False, **values: Any) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "gains_from_bfloat16", lambda: gains)
        return RepCL.resolved(RepCLSettings(**values), kind).model_dump()


PARTS = ("precision", "frozen_layers", "generation_in_pass", "task_vocabulary", "cached_attack")


@pytest.mark.parametrize(
    ("given", "gains", "expected"),
    [
        ({}, True, ("full", 0.0, False, False, False)),
        ({"speed": "fast"}, True, ("bf16", 0.5, True, True, True)),
        ({"speed": "fast"}, False, ("full", 0.5, True, True, True)),
        ({"speed": "fast", "frozen_layers": 0.0, "precision": "full"}, True, ("full", 0.0, True, True, True)),
        ({"cached_attack": True}, True, ("full", 0.0, False, False, True)),
    ],
)
def test_speed_decides_what_is_left_open(
    given: dict[str, Any], gains: bool, expected: tuple[object, ...]
) -> None:
    found = resolved(gains=gains, **given)
    assert tuple(found[part] for part in PARTS) == expected


def test_markers_of_relations_have_to_learn() -> None:
    assert resolved("relation", speed="fast")["frozen_layers"] == 0.0


def test_what_was_decided_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure() -> bool:
        raise AssertionError("measured again")

    monkeypatch.setattr(settings, "gains_from_bfloat16", measure)
    decided = FEASettings(speed="fast", precision="bf16", frozen_layers=0.5)
    assert FEA.resolved(decided, "sentence") == decided


@pytest.mark.parametrize("name", TRAINED)
def test_every_trained_method_learns_fast(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "gains_from_bfloat16", lambda: True)
    kind: InputKind = METHODS[name].kinds[0]
    fields = METHODS[name].Settings.model_fields
    short = {key: value for key, value in {**SHORT, "replay_epochs": 1}.items() if key in fields}
    encoder = tiny_encoder(kind, readout=METHODS[name].readout(METHODS[name].Settings(), kind))
    method = build_method(name, kind, encoder=encoder, settings={**short, "speed": "fast"})
    method.learn(toy_task(kind, "fruit", "vehicle"))
    method.learn(toy_task(kind, "weather"))
    assert method.processes.precision == "bf16"
    scores = method.scores(toy_task(kind, "fruit").test)
    assert scores.isfinite().all()


def test_the_trained_part_of_a_duet_learns_in_half_precision_and_the_frozen_one_in_full(monkeypatch) -> None:
    monkeypatch.setattr(settings, "gains_from_bfloat16", lambda: True)
    values = {**SHORT, "replay_epochs": 1, "speed": "fast", "trained": "fea"}
    duet = build_method("duet", "sentence", encoder=tiny_encoder(), settings=values)
    assert isinstance(duet, Duet)
    assert duet.trained.processes.precision == "bf16"
    assert [part.processes.precision for part in duet.frozen_parts.values()] == ["no"]


def test_partners_are_clean_rows_of_the_same_class() -> None:
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 2])
    for seed in range(20):
        chosen, partners = clean_partners(labels, 3, torch.Generator().manual_seed(seed))
        assert not set(chosen.tolist()) & set(partners.tolist())
        assert labels[chosen].tolist() == labels[partners].tolist()
        assert 8 not in chosen.tolist()  # its class has no other row


def test_without_any_pair_nothing_is_masked() -> None:
    chosen, partners = clean_partners(torch.tensor([0, 1, 2]), 2, torch.Generator().manual_seed(0))
    assert len(chosen) == len(partners) == 0


def test_masks_within_a_batch_take_one_pass_and_a_quarter_of_the_texts() -> None:
    method = built(
        "repcl", **SHORT, generation_in_pass=True, contrast="none", mask_probability=1.0, generation_share=1.0
    )
    task = toy_task("sentence", "fruit", "vehicle")
    watched = watch(method, task)
    passes = watched.trained_on(0)
    assert [len(texts) for texts in passes] == [6, 6]  # one pass for each step
    mask = method.encoder.tokenizer.mask_token_id
    assert all(sum(mask in ids for ids in texts) <= 2 for texts in passes)
    assert any(mask in ids for texts in passes for ids in texts)


def test_a_cached_attack_takes_one_pass_and_comes_back_to_each_exemplar() -> None:
    method = built(
        "repcl", **SHORT, replay_epochs=2, cached_attack=True, adversarial_steps=3, adversarial_radius=0.15
    )
    assert isinstance(method, RepCL)
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    batch = next(iter(method.memory_batches(6)))
    kept: dict[int, Tensor] = {}
    method.train()
    for terms in method._attacked_again(kept, batch):
        sum(terms.values()).backward()  # type: ignore[union-attr]
    assert set(kept) == set(batch.positions.tolist())
    assert all(float(one.norm()) == pytest.approx(0.1, abs=1e-4) for one in kept.values())
    for _ in range(5):
        for terms in method._attacked_again(kept, batch):
            sum(terms.values()).backward()  # type: ignore[union-attr]
    norms = sorted(float(one.norm()) for one in kept.values())
    assert norms[-1] <= 0.15 + 1e-4
    watched = watch(method, toy_task("sentence", "weather"))
    replay = watched.stages.index("replay")
    assert len(watched.trained_on(replay)) == len(watched.steps_of(replay))


def test_a_vocabulary_of_the_task_predicts_no_other_tokens() -> None:
    sizes = []
    for is_small in (False, True):
        method = built("repcl", **SHORT, task_vocabulary=is_small, contrast="none")
        watched = watch(method, toy_task("sentence", "fruit", "vehicle"))
        lengths = {len(value) for value in watched.steps[0].others if value.dim() == 1}
        sizes.append(lengths - {method.encoder.hidden_size})  # but for biases of the layers before
    task = toy_task("sentence", "fruit", "vehicle")
    assert sizes == [{len(method.encoder.tokenizer)}, {len(method.encoder.occurring_ids(task.train))}]
