"""RepCL: a second task, recomputed text by text from the paper, step by step.

Momentum keys, their moving average, the queue, the temperature, masked tokens with their partner's
representation, loss weights, warm-up, clipping, exemplars, perturbations with their radius: whatever is
wired wrongly gives other gradients.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu

from repcl.data import Example, InputKind, Task
from repcl.methods import Method
from tests.methods.golden.plain import (
    WORDS,
    Plain,
    Stage,
    assert_epochs,
    assert_memory,
    assert_same_gradients,
    assert_same_weights,
    cosine,
    cross_entropy,
    layer_norm,
    mean,
    mean_loss,
    two_rates,
)
from tests.methods.golden.texts import task
from tests.methods.golden.watching import Ids, State, Watched, built, noise, watch

SETTINGS: dict[str, Any] = {
    "batch_size": 3,
    "initial_epochs": 2,
    "replay_epochs": 1,
    "memory_per_class": 1,
    "learning_rate": 2e-3,
    "head_learning_rate": 1e-2,
    "weight_decay": 0.1,
    "warmup_epochs": 1.0,
    "clip_norm": 0.5,
    "contrast_weight": 0.7,
    "temperature": 0.3,
    "queue_size": 4,
    "momentum": 0.7,
    "generation_weight": 0.4,
    "mask_probability": 0.5,
    "adversarial_steps": 3,
    "adversarial_step_size": 0.1,
    "adversarial_radius": 0.15,
    "clean_weight": 0.6,
}
CASES: dict[str, dict[str, Any]] = {
    "whole": {},
    "contrast alone": {"generation": "none", "each": 5, "memory_per_class": 2, "queue_size": 8},
    "contrast alone, unclipped": {"generation": "none", "clip_norm": 1e6, "warmup_epochs": 0.0},
    "supcon alone": {"generation": "none", "contrast": "supcon"},
    "infonce alone": {"generation": "none", "contrast": "infonce"},
    "xmlm alone": {"contrast": "none"},
    "xmlm of half the batch": {"contrast": "none", "generation_share": 0.5},
    "mlm alone": {"contrast": "none", "generation": "mlm"},
    "the paper's attack": {"adversarial_steps": 2, "adversarial_radius": 0.2, "clean_weight": 1.0},
    "the released code's attack": {"adversarial_steps": 2, "clean_weight": 0.0},
    "no radius": {"adversarial_radius": 0.0},
    "no attack": {"adversarial": False},
    "relations": {"kind": "relation"},
    "events": {"kind": "event"},
}


@dataclass(frozen=True)
class Run:
    """A method that learned two tasks, what was seen of the second, and its recomputation."""

    method: Method
    task: Task
    watched: Watched
    plain: Plain
    initial: Stage
    after_initial: State
    replay: Stage
    old_exemplars: list[Example]


INITIAL, MEMORY, REPLAY = range(3)  # the stages of a task


@cache
def run(case: str) -> Run:
    changes = dict(CASES[case])
    kind: InputKind = changes.pop("kind", "sentence")
    each: int = changes.pop("each", 2)  # with two texts of a class, who is whose partner leaves no doubt
    first = task("fruit", "vehicle", kind=kind)
    second = task("weather", "place", "person", kind=kind, each=each, shortest=4)
    method = built("repcl", kind, **{**SETTINGS, **changes})
    method.learn(first)
    old = list(method.memory)
    watched = watch(method, second)
    plain = Plain(method, watched.states[INITIAL], [*first.train, *second.train])
    initial = learned_initially(plain, watched, method.settings)
    after = {name: value.detach().clone() for name, value in plain.weights.items()}
    replay = replayed(plain, watched, method.settings)
    return Run(method, second, watched, plain, initial, after, replay, old)


every_case = pytest.mark.parametrize("case", CASES)


# ---- initial learning, from the paper --------------------------------------------------------------


def learned_initially(plain: Plain, watched: Watched, settings: Any) -> Stage:
    """L_ce + λ1 L_con + λ2 L_xmlm over the batches that the encoder was shown."""
    passes = watched.trained_on(INITIAL)
    has_masks = settings.generation != "none"
    batches, masked = (passes[::2], passes[1::2]) if has_masks else (passes, [[]] * len(passes))
    if has_masks:
        add_token_head(plain, watched)
    momentum = {name: value.detach().clone() for name, value in plain.weights.items()}
    queue = first_queue(plain, watched, settings.queue_size) if settings.contrast != "none" else []
    stage = Stage(
        plain,
        two_rates(settings.learning_rate, settings.head_learning_rate),
        decay=settings.weight_decay,
        clip=settings.clip_norm,
        warmup=settings.warmup_epochs * len(batches) / settings.initial_epochs,
    )
    for batch, masked_rows in zip(batches, masked, strict=True):
        seen = {ids: plain.represent(ids, training=True) for ids in batch}
        loss = mean(
            cross_entropy(
                plain["head.output.weight"] @ plain.hidden(seen[ids], training=True), plain.label(ids)
            )
            for ids in batch
        )
        if settings.contrast != "none":
            for name in momentum:
                momentum[name] = (
                    settings.momentum * momentum[name] + (1 - settings.momentum) * plain[name].detach()
                )
            keys = [(momentum_key(plain, momentum, ids), plain.label(ids)) for ids in batch]
            anchors = [predicted(plain, projected(plain.weights, seen[ids], training=True)) for ids in batch]
            labels = [plain.label(ids) for ids in batch]
            loss = loss + settings.contrast_weight * contrast(anchors, labels, keys, queue, settings)
            queue = [*keys, *queue][: len(queue)]
        if has_masks:
            helped = settings.generation == "xmlm"
            loss = loss + settings.generation_weight * token_loss(plain, masked_rows, seen, helped)
        stage.step(loss)
    return stage


def projected(weights: State, representation: Tensor, *, training: bool) -> Tensor:
    """The projection of either branch: two linear layers, LayerNorm, dropout."""
    name = "contrast.projection."
    inner = weights[name + "0.weight"] @ representation + weights[name + "0.bias"]
    inner = weights[name + "1.weight"] @ inner + weights[name + "1.bias"]
    normed = layer_norm(inner, weights[name + "2.weight"], weights[name + "2.bias"])
    return noise(normed) if training else normed


def predicted(plain: Plain, projection: Tensor) -> Tensor:
    """The prediction of the main branch: linear, LayerNorm, dropout, linear, tanh."""
    name = "contrast.prediction."
    inner = plain[name + "0.weight"] @ projection + plain[name + "0.bias"]
    inner = noise(layer_norm(inner, plain[name + "1.weight"], plain[name + "1.bias"]))
    return torch.tanh(plain[name + "3.weight"] @ inner + plain[name + "3.bias"])


@torch.no_grad()
def momentum_key(plain: Plain, momentum: State, ids: Ids) -> Tensor:
    """A key: the momentum copies of encoder and projection, with dropout on."""
    representation = plain.represent(ids, training=True, weights=momentum)
    return projected(momentum, representation, training=True)


@torch.no_grad()
def first_queue(plain: Plain, watched: Watched, size: int) -> list[tuple[Tensor, int]]:
    """Projections by the main branch in evaluation mode, of as many of the task's texts as there is room."""
    return [
        (projected(plain.weights, plain.represent(ids, training=False), training=False), plain.label(ids))
        for ids in queued_rows(watched, size)
    ]


def queued_rows(watched: Watched, size: int) -> list[Ids]:
    """The texts that the encoder was shown before it learned anything."""
    begin = next(at for at, shown in enumerate(watched.shown) if shown.can_learn)
    return [ids for shown in watched.shown[:begin] for ids in shown.rows][:size]


def contrast(
    anchors: list[Tensor],
    labels: list[int],
    keys: list[tuple[Tensor, int]],
    queue: list[tuple[Tensor, int]],
    settings: Any,
) -> Tensor:
    """SupInfoNCE, SupCon or InfoNCE of every anchor against the other keys of the batch and the queue."""
    losses = []
    for number, (anchor, label) in enumerate(zip(anchors, labels, strict=True)):
        own = cosine(anchor, keys[number][0]) / settings.temperature
        others = [
            (cosine(anchor, key) / settings.temperature, key_label)
            for key, key_label in [*keys[:number], *keys[number + 1 :], *queue]
        ]
        positives = [similarity for similarity, key_label in others if key_label == label]
        negatives = [similarity for similarity, key_label in others if key_label != label]
        if settings.contrast == "infonce":
            everything = torch.stack([own, *(similarity for similarity, _ in others)])
            losses.append(torch.log(everything.exp().sum()) - own)
        elif positives:
            against = negatives if settings.contrast == "supinfonce" else [*negatives, *positives]
            rest = sum(similarity.exp() for similarity in against)
            own_part = 1.0 if settings.contrast == "supinfonce" else 0.0
            losses.append(
                mean(
                    -torch.log(positive.exp() / (own_part * positive.exp() + rest)) for positive in positives
                )
            )
    return mean(losses)


def add_token_head(plain: Plain, watched: Watched) -> None:
    """A new head for masked tokens; of its first weights only those of one layer are drawn."""
    (dense,) = [value for value in watched.steps[0].others if value.dim() == 2]
    size, words = len(dense), len(plain[WORDS])
    plain.weights |= {
        "other.0.weight": dense.clone().requires_grad_(True),
        "other.0.bias": torch.zeros(size, requires_grad=True),
        "other.2.weight": torch.ones(size, requires_grad=True),
        "other.2.bias": torch.zeros(size, requires_grad=True),
        "other.bias": torch.zeros(words, requires_grad=True),
    }


def token_loss(plain: Plain, rows: list[Ids], seen: dict[Ids, Tensor], helped: bool) -> Tensor:
    """Cross-entropy of masked tokens of each partner, helped by what was made of the text itself."""
    mask = plain.tokenizer.mask_token_id
    losses = []
    for ids in rows:
        (original,) = [known for known in plain.examples if len(known) == len(ids)]  # lengths are unique
        (text,) = [
            known for known in seen if plain.label(known) == plain.label(original) and known != original
        ]
        states = plain.states(ids, training=True)
        for state, token, known in zip(states, ids, original, strict=True):
            if token != mask:
                assert token == known
                continue
            assert known not in plain.tokenizer.all_special_ids
            inner = torch.cat([state, seen[text]]) if helped else state
            inner = gelu(plain["other.0.weight"] @ inner + plain["other.0.bias"])
            inner = layer_norm(inner, plain["other.2.weight"], plain["other.2.bias"])
            losses.append(cross_entropy(plain[WORDS] @ inner + plain["other.bias"], known))
    return mean(losses) if losses else torch.zeros(())


# ---- replay, from the paper ------------------------------------------------------------------------


def replayed(plain: Plain, watched: Watched, settings: Any) -> Stage:
    """L_ce + 1/K Σ_t L(x + δ_t) over the exemplars of all classes."""
    steps = settings.adversarial_steps if settings.adversarial else 1
    batches = watched.trained_on(REPLAY)[::steps]
    stage = Stage(
        plain,
        two_rates(settings.learning_rate, settings.head_learning_rate),
        decay=settings.weight_decay,
        clip=settings.clip_norm,
        warmup=settings.warmup_epochs * len(batches) / settings.replay_epochs,
    )
    for batch in batches:
        if settings.adversarial:
            stage.step(mean(attacked(plain, ids, settings) for ids in batch))
        else:
            stage.step(mean_loss(plain, batch))
    return stage


def attacked(plain: Plain, ids: Ids, settings: Any) -> Tensor:
    """One text under attack: each δ is one step of length α uphill from the last, inside the ball of ε."""
    delta = torch.zeros(len(ids), plain[WORDS].shape[1])
    loss = torch.zeros(())
    for step in range(settings.adversarial_steps):
        delta = delta.detach().requires_grad_(True)
        here = cross_entropy(plain.logits(ids, training=True, perturbation=delta), plain.label(ids))
        loss = loss + here / settings.adversarial_steps
        if step == 0:
            loss = loss + settings.clean_weight * here
        (uphill,) = torch.autograd.grad(here, delta, retain_graph=True)
        delta = delta + settings.adversarial_step_size * uphill / uphill.norm()
        if settings.adversarial_radius and delta.norm() > settings.adversarial_radius:
            delta = settings.adversarial_radius * delta / delta.norm()
    return loss


# ---- what must agree -------------------------------------------------------------------------------


@every_case
def test_initial_learning_shows_the_new_texts_alone(case: str) -> None:
    done = run(case)
    passes = done.watched.trained_on(INITIAL)
    batches = passes[:: 1 if done.method.settings.generation == "none" else 2]
    assert_epochs(batches, done.plain.rows(done.task.train), 2, 3)


@every_case
def test_the_first_queue_is_of_different_new_texts(case: str) -> None:
    done = run(case)
    if done.method.settings.contrast != "none":
        rows = queued_rows(done.watched, done.method.settings.queue_size)
        assert len(set(rows)) == done.method.settings.queue_size
        assert set(rows) <= set(done.plain.rows(done.task.train))


@every_case
def test_every_step_of_initial_learning_has_the_recomputed_gradients(case: str) -> None:
    done = run(case)
    assert_same_gradients(done.watched, INITIAL, done.initial)


@every_case
def test_initial_learning_leaves_the_recomputed_weights(case: str) -> None:
    done = run(case)
    for name, value in done.watched.states[MEMORY].items():
        torch.testing.assert_close(value, done.after_initial[name], rtol=0.0, atol=1e-8)


@every_case
def test_exemplars_are_chosen_by_the_weights_after_initial_learning(case: str) -> None:
    done = run(case)
    then = Plain(done.method, done.after_initial, done.plain.examples.values())
    assert_memory(done.method, done.old_exemplars, done.task, then.kept_feature)


@every_case
def test_replay_shows_the_exemplars_of_all_classes_as_often_as_they_are_attacked(case: str) -> None:
    done = run(case)
    settings = done.method.settings
    steps = settings.adversarial_steps if settings.adversarial else 1
    passes = done.watched.trained_on(REPLAY)
    for first in range(0, len(passes), steps):
        assert passes[first : first + steps] == [passes[first]] * steps
    assert_epochs(passes[::steps], done.plain.rows(done.method.memory), 1, 3)
    assert set(done.method.memory.classes) == {"fruit", "vehicle", "weather", "place", "person"}


@every_case
def test_every_step_of_replay_has_the_recomputed_gradients(case: str) -> None:
    done = run(case)
    assert_same_gradients(done.watched, REPLAY, done.replay)


@every_case
def test_a_task_leaves_the_recomputed_weights(case: str) -> None:
    done = run(case)
    assert_same_weights(done.method.state_dict(), done.plain)


@every_case
def test_a_task_begins_with_the_weights_of_the_last_and_new_rows_for_new_classes(case: str) -> None:
    done = run(case)
    before, begin = done.watched.before, done.watched.states[INITIAL]
    rows = "head.output.weight"
    assert [name for name in before if name != rows and not torch.equal(before[name], begin[name])] == []
    assert torch.equal(begin[rows][:2], before[rows])
    assert 0.005 < begin[rows][2:].std() < 0.05
