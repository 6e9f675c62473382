"""ACA on either host: a second task with synthetic relations, recomputed text by text."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.golden.hosts import assert_emar, assert_rp_cre, new_stage
from tests.methods.golden.plain import (
    Plain,
    Stage,
    assert_epochs,
    assert_goes_on,
    cross_entropy,
    mean,
    of_class,
)
from tests.methods.golden.texts import task
from tests.methods.golden.watching import Ids, Watched, built, watch

SETTINGS: dict[str, Any] = {
    "batch_size": 7,
    "initial_epochs": 1,
    "replay_epochs": 1,
    "rp_cre_epochs": 1,
    "memory_per_class": 1,
    "learning_rate": 4e-4,
    "head_learning_rate": 1e-2,
    "clip_norm": 0.3,
    "network_learning_rate": 4e-3,
    "attention_heads": 2,
    "key_size": 5,
    "window": 1,
    "symmetric_classes": ("place",),
}
FIRST = task("fruit", "vehicle", kind="relation", each=3)
SECOND = task("weather", "place", "person", kind="relation", each=3, shortest=6)
EVERYTHING = [*FIRST.train, *SECOND.train]


def hybrid(first: Ids, second: Ids, markers: list[int], window: int) -> Ids:
    """The head of one text and the tail of another, each with a few tokens around it."""
    one, other = first[1:-1], second[1:-1]
    head, head_end, tail, _ = (one.index(marker) for marker in markers)
    _, other_head_end, other_tail, other_tail_end = (other.index(marker) for marker in markers)
    left = one[max(0, head - window) : min(head_end + window + 1, tail)]
    right = other[max(other_head_end + 1, other_tail - window) : min(other_tail_end + window + 1, len(other))]
    return (first[0], *left, *right, first[-1])


def reversed_text(ids: Ids, markers: list[int]) -> Ids:
    """The same words with head and tail exchanged."""
    head, head_end, tail, tail_end = markers
    exchanged = {head: tail, tail: head, head_end: tail_end, tail_end: head_end}
    return tuple(exchanged.get(token, token) for token in ids)


def synthetic_texts(plain: Plain, first_label: int) -> dict[Ids, int]:
    """Synthetic texts of the task, with their labels behind those of all real classes."""
    markers = plain.tokenizer.convert_tokens_to_ids(["[E11]", "[E12]", "[E21]", "[E22]"])
    weather, place, person = (plain.rows(of_class(SECOND.train, name)) for name in SECOND.classes)
    pairs = zip(weather, place, strict=True)  # three classes make one pair; the third has no partner
    labels = {hybrid(one, other, markers, 1): first_label for one, other in pairs}
    labels |= {reversed_text(ids, markers): first_label + 1 for ids in weather}  # places are symmetric
    return labels | {reversed_text(ids, markers): first_label + 2 for ids in person}


def initial_with_synthetic_texts(plain: Plain, watched: Watched, settings: Any, clip_apart: bool) -> Stage:
    """Cross-entropy over real rows and nine spare ones, which only this stage has."""
    (spare,) = [value for value in watched.steps[0].others if value.dim() == 2]
    assert spare.shape == (9, 32)
    plain.weights["other.weight"] = spare.clone().requires_grad_(True)
    synthetic = synthetic_texts(plain, first_label=5)
    assert len(synthetic) == 9
    batches = watched.trained_on(0)
    assert_epochs(batches, [*plain.rows(SECOND.train), *synthetic], 1, settings.batch_size)
    stage = new_stage(plain, settings, clip_apart=clip_apart)

    def loss(ids: Ids) -> Tensor:
        feature = plain.feature(ids, training=True)
        logits = torch.cat([plain["head.output.weight"] @ feature, plain["other.weight"] @ feature])
        return cross_entropy(logits, synthetic[ids] if ids in synthetic else plain.label(ids))

    for batch in batches:
        stage.step(mean(loss(ids) for ids in batch))
    del plain.weights["other.weight"]
    return stage


@pytest.mark.parametrize(
    ("host", "check"), [("emar", assert_emar), ("rp_cre", assert_rp_cre)], ids=["emar", "rp_cre"]
)
def test_aca_adds_synthetic_relations_to_the_initial_learning_of_its_host(
    host: str, check: Callable[..., None]
) -> None:
    method = built("aca", "relation", **SETTINGS, host=host)
    method.learn(FIRST)
    old = list(method.memory)
    watched = watch(method, SECOND)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)
    check(method, watched, plain, SECOND, old, initial_with_synthetic_texts)
