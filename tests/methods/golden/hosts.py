"""EMAR and RP-CRE, recomputed text by text from their specifications; ACA is added to either."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu

from repcl.data import Example, Task
from repcl.methods import Method
from tests.methods.golden.plain import (
    Plain,
    Stage,
    assert_chosen,
    assert_epochs,
    assert_memory,
    assert_same_gradients,
    assert_same_weights,
    cross_entropy,
    layer_norm,
    mean,
    mean_loss,
    of_class,
)
from tests.methods.golden.watching import Ids, Watched

Initial = Callable[[Plain, Watched, Any, bool], Stage]
"""Recomputes initial learning, by the settings, with encoder and classifier clipped apart or together."""


def host_rates(settings: Any) -> Callable[[str], float]:
    """The linear classifier is fast, the memory network has its own rate, all else learns as the encoder."""

    def rate(name: str) -> float:
        if name.startswith("network."):
            return float(settings.network_learning_rate)
        return float(
            settings.head_learning_rate
            if name.startswith(("head.output.", "other."))
            else settings.learning_rate
        )

    return rate


def host_part(name: str) -> str:
    """What RP-CRE clips together: encoder with hidden layer, classifier, memory network."""
    if name.startswith("network."):
        return "network"
    return "classifier" if name.startswith(("head.output.", "other.")) else "encoder"


def plain_initial(task: Task) -> Initial:
    """Initial learning without ACA: cross-entropy on the new texts."""

    def learn(plain: Plain, watched: Watched, settings: Any, clip_apart: bool) -> Stage:
        assert_epochs(
            watched.trained_on(0), plain.rows(task.train), settings.initial_epochs, settings.batch_size
        )
        stage = new_stage(plain, settings, clip_apart=clip_apart)
        for batch in watched.trained_on(0):
            stage.step(mean_loss(plain, batch))
        return stage

    return learn


def new_stage(plain: Plain, settings: Any, *, clip_apart: bool = False) -> Stage:
    if clip_apart:
        return Stage(plain, host_rates(settings), clip=settings.clip_norm, part=host_part)
    return Stage(plain, host_rates(settings), clip=settings.clip_norm)


@torch.no_grad()
def prototype(plain: Plain, exemplars: Sequence[Example]) -> Tensor:
    """The mean feature of exemplars in evaluation mode."""
    return mean(plain.feature(plain.ids[example], training=False) for example in exemplars)


# ---- EMAR ------------------------------------------------------------------------------------------


def assert_emar(
    method: Method, watched: Watched, plain: Plain, task: Task, old: Sequence[Example], initial: Initial
) -> None:
    """A task of EMAR went as its specification says, with this initial learning."""
    settings: Any = method.settings
    stage = initial(plain, watched, settings, False)
    assert_same_gradients(watched, 0, stage)
    assert_memory(method, old, task, plain.kept_feature)
    memory = list(method.memory)
    for number in range(settings.replay_epochs):
        activation, reconsolidation = 2 + 2 * number, 3 + 2 * number
        anchors = torch.stack([prototype(plain, method.memory.of(name)) for name in method.classes])

        assert_epochs(
            watched.trained_on(activation), plain.rows([*memory, *task.train]), 1, settings.batch_size
        )
        stage = new_stage(plain, settings)
        for batch in watched.trained_on(activation):
            stage.step(mean_loss(plain, batch))
        assert_same_gradients(watched, activation, stage, within=1e-5)

        assert_epochs(watched.trained_on(reconsolidation), plain.rows(memory), 1, settings.batch_size)
        stage = new_stage(plain, settings)
        for batch in watched.trained_on(reconsolidation):
            stage.step(
                mean(
                    cross_entropy(anchors @ plain.feature(ids, training=True), plain.label(ids))
                    for ids in batch
                )
            )
        assert_same_gradients(watched, reconsolidation, stage, within=1e-5)
    assert_same_weights(method.state_dict(), plain, within=1e-5, but=["prototypes"])
    assert_emar_scores(method, plain)


def assert_emar_scores(method: Method, plain: Plain) -> None:
    """Answers are similarities to the mean direction of a class: its unit features and its unit row."""
    texts = list(plain.ids)
    with torch.no_grad():
        directions = []
        for index, name in enumerate(method.classes):
            features = [plain.feature(plain.ids[one], training=False) for one in method.memory.of(name)]
            units = [one / one.norm() for one in [*features, plain["head.output.weight"][index]]]
            directions.append(mean(units) / mean(units).norm())
        expected = [
            torch.stack(directions) @ plain.feature(plain.ids[text], training=False) for text in texts
        ]
    torch.testing.assert_close(method.scores(texts), torch.stack(expected), rtol=0.0, atol=1e-4)


# ---- RP-CRE ----------------------------------------------------------------------------------------


def refined(plain: Plain, feature: Tensor, prototypes: Tensor, heads: int, key_size: int) -> Tensor:
    """The memory network on the sequence [prototypes ; feature], all rows computed, the last one read."""
    rows = torch.cat([prototypes, feature[None]])
    value_size = rows.shape[1]

    def linear(name: str, values: Tensor) -> Tensor:
        return values @ plain[f"network.{name}.weight"].T + plain[f"network.{name}.bias"]

    def norm(name: str, values: Tensor) -> Tensor:
        return layer_norm(values, plain[f"network.{name}.weight"], plain[f"network.{name}.bias"])

    queries, keys, values = [], [], []
    for row in rows:
        queries.append(
            norm("query_norm", linear("query", row).reshape(heads, key_size)) / math.sqrt(key_size)
        )
        both = linear("key_value", row).reshape(heads, key_size + value_size)
        keys.append(norm("key_norm", both[:, :key_size]))
        values.append(norm("value_norm", both[:, key_size:]))
    outputs = []
    for query, row in zip(queries, rows, strict=True):
        attended = []
        for head in range(heads):
            scores = torch.stack([query[head] @ key[head] for key in keys])
            weights = scores.exp() / scores.exp().sum()
            attended.append(sum(weight * value[head] for weight, value in zip(weights, values, strict=True)))
        merged = norm("merge_norm", linear("merge", torch.cat(attended)))
        mixed = norm("attention_norm", merged + row)
        outputs.append(norm("output_norm", gelu(linear("output", mixed)) + mixed))
    return outputs[-1]


def assert_rp_cre(
    method: Method, watched: Watched, plain: Plain, task: Task, old: Sequence[Example], initial: Initial
) -> None:
    """A task of RP-CRE went as its specification says, with this initial learning."""
    settings: Any = method.settings
    old_classes = list(dict.fromkeys(example.label for example in old))
    rows = [prototype(plain, of_class(old, name)) for name in old_classes]  # before any training

    stage = initial(plain, watched, settings, True)
    assert_same_gradients(watched, 0, stage)

    batches = watched.trained_on(2)
    shown = [plain.examples[ids] for ids in dict.fromkeys(ids for batch in batches for ids in batch)]
    provisional = [example for example in shown if example.label in task.classes]
    assert_epochs(batches, plain.rows([*old, *provisional]), settings.replay_epochs, settings.batch_size)
    for name in task.classes:
        own = of_class(provisional, name)
        assert_chosen(own, of_class(task.train, name), plain.kept_feature, settings.memory_per_class)
        rows.append(prototype(plain, own))
    length = len(batches) // settings.replay_epochs
    assert all(batches[at] == batches[at % length] for at in range(len(batches)))  # shuffled once only

    for name, value in watched.states[2].items():
        if name.startswith("network."):
            plain.weights[name] = value.clone().requires_grad_(True)
    assert not torch.equal(watched.states[2]["network.query.weight"], watched.before["network.query.weight"])
    sizes = settings.attention_heads, settings.key_size
    train_prototypes = torch.stack(rows)
    stage = new_stage(plain, settings, clip_apart=True)

    def loss(ids: Ids) -> Tensor:
        feature = refined(plain, plain.feature(ids, training=True), train_prototypes, *sizes)
        return cross_entropy(plain["head.output.weight"] @ feature, plain.label(ids))

    for batch in batches:
        stage.step(mean(loss(ids) for ids in batch))
    assert_same_gradients(watched, 2, stage)
    assert_same_weights(method.state_dict(), plain, but=["prototypes"])

    assert_memory(method, old, task, plain.kept_feature)
    test_prototypes = torch.stack([prototype(plain, method.memory.of(name)) for name in method.classes])
    with torch.no_grad():
        features = [
            refined(plain, plain.feature(ids, training=False), test_prototypes, *sizes)
            for ids in plain.examples
        ]
        expected = torch.stack([plain["head.output.weight"] @ feature for feature in features])
    found = method.scores(list(plain.examples.values()))
    torch.testing.assert_close(found, expected[:, : len(method.classes)], rtol=0.0, atol=1e-6)
