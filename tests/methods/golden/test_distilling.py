"""KCN and KDRK: a second task, recomputed text by text."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from repcl.data import Example
from repcl.methods import METHODS, Method
from tests.methods.golden.plain import (
    Plain,
    Stage,
    assert_epochs,
    assert_goes_on,
    assert_memory,
    assert_same_gradients,
    assert_same_weights,
    centers,
    cosine,
    cross_entropy,
    mean,
    nearest_to_mean,
    of_class,
    soft_cross_entropy,
    two_rates,
)
from tests.methods.golden.texts import task
from tests.methods.golden.watching import Ids, State, Watched, built, noise, watch

SETTINGS: dict[str, Any] = {
    "batch_size": 5,  # not as many as there are exemplars, or any weight of the two would be a half
    "initial_epochs": 2,
    "memory_per_class": 2,
    "learning_rate": 2e-3,
    "head_learning_rate": 5e-3,
    "weight_decay": 0.1,
    "clip_norm": 0.5,
    "feature_size": 16,
    "temperature": 1.7,
}
FIRST, SECOND = task("fruit", "vehicle", each=3), task("weather", "place", each=4, shortest=6)
EVERYTHING = [*FIRST.train, *SECOND.train]
NAMES = ("0.weight", "0.bias", "3.weight", "3.bias")


def features(plain: Plain, ids: Ids, *, training: bool, weights: State | None = None) -> Tensor:
    """φ(z): linear, ReLU, dropout, linear, ReLU; z itself for the plain linear head."""
    used = weights or plain.weights
    representation = plain.represent(ids, training=training, weights=used)
    if "head.hidden.0.weight" not in used:
        return representation
    first, first_bias, second, second_bias = (used[f"head.hidden.{name}"] for name in NAMES)
    inner = torch.relu(first @ representation + first_bias)
    return torch.relu(second @ (noise(inner) if training else inner) + second_bias)


def slots(feature: Tensor, weights: State, *, has_none: bool) -> Tensor:
    """Scores of all classes behind the constant 0 of the virtual None."""
    scores = weights["head.output.weight"] @ feature
    if "head.output.bias" in weights:
        scores = scores + weights["head.output.bias"]
    return torch.cat([torch.zeros(1), scores]) if has_none else scores


class Text:
    """What student and teacher make of one text."""

    def __init__(self, plain: Plain, before: State, ids: Ids, *, has_none: bool) -> None:
        self.feature = features(plain, ids, training=True)
        self.slots = slots(self.feature, plain.weights, has_none=has_none)
        with torch.no_grad():
            self.old_feature = features(plain, ids, training=False, weights=before)
            self.old_slots = slots(self.old_feature, before, has_none=has_none)
        self.old = len(self.old_slots)
        self.hard = cross_entropy(self.slots, plain.label(ids) + int(has_none))

    def distilled(self, temperature: float, *, own_temperature: float | None = None) -> Tensor:
        """Cross-entropy with the teacher's softened answers, over the slots it knew."""
        targets = torch.softmax(self.old_slots / temperature, dim=0)
        return soft_cross_entropy(self.slots[: self.old] / (own_temperature or temperature), targets)


def new_stage(plain: Plain) -> Stage:
    return Stage(plain, two_rates(2e-3, 5e-3), decay=0.1, clip=0.5)


def learned(name: str, **settings: Any) -> tuple[Method, list[Example], Watched, Plain]:
    """A method after two tasks, its first exemplars, what was seen of the second, and its weights before."""
    method = built(name, **{**SETTINGS, **settings})
    method.learn(FIRST)
    spread_answers(method)
    old = list(method.memory)
    watched = watch(method, SECOND)
    if name == "kcn":  # KDRK's new rows are no random ones
        assert_goes_on(watched)
    return method, old, watched, Plain(method, watched.states[0], EVERYTHING)


def spread_answers(method: Method) -> None:
    """Make the teacher answer each text differently: of equal answers, any teacher gives the same."""
    rows = method.head.output.weight.data
    rows.copy_(torch.cos(torch.arange(rows.numel())).reshape(rows.shape))
    for part in method.head.hidden:
        if isinstance(part, torch.nn.Linear):
            part.weight.data *= 2


def assert_ends(
    method: Method, old: list[Example], plain: Plain, choice: Callable[[Tensor, int], list[set[int]]]
) -> None:
    """Weights, exemplars and answers are those recomputed; None is never an answer."""
    assert_same_weights(method.state_dict(), plain)
    assert_memory(method, old, SECOND, lambda one: features(plain, plain.ids[one], training=False), choice)
    expected = [
        slots(features(plain, plain.ids[one], training=False), plain.weights, has_none=False).detach()
        for one in EVERYTHING
    ]
    torch.testing.assert_close(method.scores(EVERYTHING), torch.stack(expected), rtol=0.0, atol=1e-6)


# ---- the first task, which both share --------------------------------------------------------------


@pytest.mark.parametrize("name", ["kcn", "kdrk"])
def test_the_first_task_is_plain_cross_entropy_beside_none(name: str) -> None:
    method = built(name, **SETTINGS)
    watched = watch(method, SECOND)
    plain = Plain(method, watched.states[0], EVERYTHING)
    assert_epochs(watched.trained_on(0), plain.rows(SECOND.train), 2, 5)
    stage = new_stage(plain)
    for batch in watched.trained_on(0):
        stage.step(mean(hard_loss(plain, ids) for ids in batch))
    assert_same_gradients(watched, 0, stage)
    assert_ends(method, [], plain, nearest_to_mean if name == "kcn" else centers)


def hard_loss(plain: Plain, ids: Ids) -> Tensor:
    return cross_entropy(
        slots(features(plain, ids, training=True), plain.weights, has_none=True), plain.label(ids) + 1
    )


# ---- KCN -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", ["feature_map", "linear"])
def test_kcn_learns_memory_and_new_texts_together_under_two_distillations(head: str) -> None:
    has_none = head == "feature_map"
    method, old, watched, plain = learned(
        "kcn", head=head, virtual_none=has_none, prediction_weight=0.8, feature_weight=0.3
    )
    assert_epochs(watched.trained_on(0), plain.rows([*old, *SECOND.train]), 2, 5)
    stage = new_stage(plain)

    def loss(ids: Ids) -> Tensor:
        text = Text(plain, watched.before, ids, has_none=has_none)
        return text.hard + 0.8 * text.distilled(1.7) + 0.3 * (1 - cosine(text.feature, text.old_feature))

    for batch in watched.trained_on(0):
        stage.step(mean(loss(ids) for ids in batch))
    assert_same_gradients(watched, 0, stage)
    assert_ends(method, old, plain, nearest_to_mean)


def assert_pairs(passes: list[list[Ids]], plain: Plain, old: list[Example]) -> None:
    """New texts in epochs, each batch followed by exemplars, which go round by themselves."""
    assert_epochs(passes[::2], plain.rows(SECOND.train), 2, 5)
    exemplars = passes[1::2]
    assert {ids for batch in exemplars for ids in batch} == set(plain.rows(old))
    assert all(len(set(batch)) == len(old) for batch in exemplars)  # fewer than a batch


PAIRED = METHODS["kcn"].variants["paired"]


@pytest.mark.parametrize(
    ("form", "is_balanced"),
    [(PAIRED, False), ({"combination": "paired", "replay_weights": "balanced"}, True)],
)
def test_kcn_in_pairs_weighs_distillation_by_old_and_the_labels_by_new_classes(
    form: dict[str, Any], is_balanced: bool
) -> None:
    method, old, watched, plain = learned("kcn", **form)
    passes = watched.trained_on(0)
    assert_pairs(passes, plain, old)
    stage = new_stage(plain)

    def loss(ids: Ids) -> Tensor:
        text = Text(plain, watched.before, ids, has_none=True)
        kept = text.distilled(1.7) + 1 - cosine(text.feature, text.old_feature)
        return (3 * kept + 2 * text.hard) / 5  # None and two old classes, two new ones

    for batch, exemplars in zip(passes[::2], passes[1::2], strict=True):
        share = 0.5 if is_balanced else len(batch) / (len(batch) + len(old))
        stage.step(share * mean(map(loss, batch)) + (1 - share) * mean(map(loss, exemplars)))
    assert_same_gradients(watched, 0, stage)
    # KDRK's authors, who pair them, also choose KCN's exemplars as their own
    assert_ends(method, old, plain, nearest_to_mean if is_balanced else centers)


# ---- KDRK ------------------------------------------------------------------------------------------


KDRK = {"gate": 0.9, "gate_decay": 0.0, "none_threshold": 0.22, "likeness_threshold": 0.9}


@pytest.mark.parametrize("variant", [None, "balanced", "sharp-replay", "no-none"])
def test_kdrk_teaches_old_classes_by_new_texts_that_resemble_them(variant: str | None) -> None:
    has_none = variant != "no-none"
    method, old, watched, plain = learned("kdrk", **KDRK, **METHODS["kdrk"].variants.get(variant or "", {}))
    passes = watched.trained_on(0)
    assert_pairs(passes, plain, old)
    stage = new_stage(plain)
    slots_before, resembling = 2 + has_none, 0
    for batch, exemplars in zip(passes[::2], passes[1::2], strict=True):
        texts = [Text(plain, watched.before, ids, has_none=has_none) for ids in batch]
        sharp = [torch.softmax(1.7 * text.old_slots, dim=0) for text in texts]
        like_old = [at for at, answer in enumerate(sharp) if resembles_old(answer, has_none=has_none)]
        resembling += len(like_old)
        taught = [text.distilled(1.7) for text in texts]
        taught += [soft_cross_entropy(texts[at].slots[:slots_before], sharp[at]) for at in like_old]
        on_new = slots_before * mean(taught) + 2 * mean(text.hard for text in texts)
        replayed = [Text(plain, watched.before, ids, has_none=has_none) for ids in exemplars]
        own_temperature = 1.0 if variant == "sharp-replay" else 1.7
        kept = mean(text.distilled(1.7, own_temperature=own_temperature) for text in replayed)
        on_memory = slots_before * kept + 2 * mean(text.hard for text in replayed)
        share = 0.5 if variant == "balanced" else len(batch) / (len(batch) + len(old))
        stage.step((share * on_new + (1 - share) * on_memory) / (slots_before + 2))
    assert 0 < resembling < sum(map(len, passes[::2]))  # or the threshold would not be tested
    assert_same_gradients(watched, 0, stage)
    assert_ends(method, old, plain, centers)


def resembles_old(answer: Tensor, *, has_none: bool) -> bool:
    """Whether the teacher does not call a text None, or without None takes it for an old class."""
    return bool(answer[0] < 0.22 if has_none else answer.max() > 0.9)


def mixture(plain: Plain, before: State, examples: list[Example]) -> Tensor:
    """p + r of one new class, from the old model's features of its most telling texts."""
    rows = before["head.output.weight"]
    length = mean(row.norm() for row in rows)
    with torch.no_grad():
        own = torch.stack(
            [features(plain, plain.ids[one], training=False, weights=before) for one in examples]
        )
        (telling,) = centers(own, 1)  # one exemplar, the nearest to the mean
        parts = []
        for feature in own[list(telling)]:
            weights = torch.softmax(torch.cat([torch.zeros(1), 1.3 * rows @ feature]), dim=0)
            parts.append(weights[0] * length * feature / feature.norm() + weights[1:] @ rows)
    return mean(parts)


@pytest.mark.parametrize(("gate", "decay"), [(1.0, 0.0), (0.4, 0.2)])
def test_new_rows_of_kdrk_mix_old_rows_the_classs_own_features_and_noise(gate: float, decay: float) -> None:
    more = {"transfer_sharpness": 1.3, "memory_per_class": 1}
    _, _, watched, plain = learned("kdrk", **more, gate=gate, gate_decay=decay)
    _, _, bare, _ = learned("kdrk", **more, gate=0.0)  # the same draws, and nothing else in the rows
    share = gate * math.exp(-decay * 4)
    for index, name in enumerate(SECOND.classes, start=2):
        mixed = mixture(plain, watched.before, of_class(SECOND.train, name))
        noise_row = bare.states[0]["head.output.weight"][index]
        found = watched.states[0]["head.output.weight"][index]
        torch.testing.assert_close(found, share * mixed + (1 - share) * noise_row, rtol=0.0, atol=1e-8)
