"""CRECL: a second task, recomputed text by text."""

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from repcl.data import Example
from repcl.methods import Method
from tests.methods.golden.plain import (
    Plain,
    Stage,
    assert_epochs,
    assert_goes_on,
    assert_memory,
    assert_same_gradients,
    assert_same_weights,
    cross_entropy,
    layer_norm,
    mean,
)
from tests.methods.golden.texts import task
from tests.methods.golden.watching import Ids, Watched, built, watch

SETTINGS: dict[str, Any] = {
    "initial_batch_size": 3,
    "batch_size": 6,
    "consistency_batch": 15,
    "initial_epochs": 1,
    "consistency_epochs": 1,
    "contrast_epochs": 2,
    "replay_epochs": 2,
    "memory_per_class": 2,
    "learning_rate": 2e-3,
    "head_learning_rate": 1e-2,
    "contrast_learning_rate": 4e-3,
    "contrast_rate_decay": 0.7,
    "contrast_decay_steps": 1,  # of 15 texts: every 2.5 steps of 6
    "dropout_samples": 3,
    "projection_size": 6,
    "temperature": 0.2,
}
FIRST, SECOND = task("fruit", "vehicle", each=3), task("weather", "place", each=4, shortest=6)
EVERYTHING = [*FIRST.train, *SECOND.train]
PLAIN, CONSISTENT, _, CONTRAST, REPLAY = range(5)  # the stages of a task


def row_noise(values: Tensor, row: int) -> Tensor:
    return values + 0.5 * torch.cos((1.0 + row) * torch.arange(len(values)))


class RowNoise(nn.Module):
    """Stands in for the dropout that is drawn several times: every row of a batch gets noise of its own."""

    def forward(self, values: Tensor) -> Tensor:
        if not self.training:
            return values
        return torch.stack([row_noise(row, number) for number, row in enumerate(values)])


def made() -> Method:
    method = built("crecl", **SETTINGS)
    method.head.hidden[0] = RowNoise()
    return method.eval()


def embedding(plain: Plain, representation: Tensor, row: int | None) -> Tensor:
    """e, the hidden layer before its activation; without a row it is in evaluation mode."""
    dropped = representation if row is None else row_noise(representation, row)
    return plain["head.hidden.1.weight"] @ dropped + plain["head.hidden.1.bias"]


def classified(plain: Plain, representation: Tensor, row: int) -> Tensor:
    """Scores of the classifier."""
    inner = gelu(embedding(plain, representation, row))
    return plain["head.output.weight"] @ layer_norm(
        inner, plain["head.hidden.3.weight"], plain["head.hidden.3.bias"]
    )


def projected(plain: Plain, vector: Tensor) -> Tensor:
    inner = gelu(plain["projector.0.weight"] @ vector + plain["projector.0.bias"])
    inner = layer_norm(inner, plain["projector.2.weight"], plain["projector.2.bias"])
    outer = plain["projector.3.weight"] @ inner + plain["projector.3.bias"]
    return outer / outer.norm()


def matched(plain: Plain, vector: Tensor, prototypes: list[Tensor]) -> Tensor:
    """Cosines with all prototypes after projection, over the temperature."""
    return torch.stack([projected(plain, vector) @ projected(plain, one) for one in prototypes]) / 0.2


def feature(plain: Plain, example: Example) -> Tensor:
    return embedding(plain, plain.represent(plain.ids[example], training=False), None)


@torch.no_grad()
def prototypes_of(plain: Plain, method: Method) -> list[Tensor]:
    """The mean embedding of each class's exemplars in evaluation mode."""
    return [mean(feature(plain, one) for one in method.memory.of(name)) for name in method.classes]


def slow_but_for_the_classifier(name: str) -> float | None:
    if name.startswith("projector."):
        return None
    return 1e-2 if name.startswith("head.output.") else 2e-3


def consistent_loss(plain: Plain, batch: list[Ids]) -> Tensor:
    """Cross-entropy over three dropout samples, and the divergence of each sample from their mean."""
    seen = [plain.represent(ids, training=True) for ids in batch]
    samples = [
        [classified(plain, one, sample * len(batch) + index) for index, one in enumerate(seen)]
        for sample in range(3)
    ]
    hard = mean(
        cross_entropy(logits, plain.label(ids))
        for sample in samples
        for logits, ids in zip(sample, batch, strict=True)
    )
    apart = torch.zeros(())
    for index in range(len(batch)):
        center = torch.log_softmax(mean(sample[index] for sample in samples), dim=0)
        for sample in samples:
            logs = torch.log_softmax(sample[index], dim=0)
            apart = apart + (logs.exp() * (logs - center)).sum() / 3
    # a sum over the batch: 15 is the authors' batch, 6 is this one
    return hard + 15 / 6 * apart


def assert_full_batches(batches: list[list[Ids]], texts: list[Ids], size: int) -> None:
    """Every batch has exactly the nominal size, and every text is there once or, to fill up, twice."""
    assert {len(batch) for batch in batches} == {size}
    assert len(batches) == -(-len(texts) // size)
    counts = Counter(ids for batch in batches for ids in batch)
    assert counts.keys() == set(texts)
    assert max(counts.values()) <= 2


def contrast_stage(plain: Plain, watched: Watched, number: int, prototypes: list[Tensor]) -> None:
    """A stage of prototype contrast, compared step by step; all parts have one rate."""
    stage = Stage(plain, lambda name: 4e-3, clip=1e6, rate_decay=(0.7, 2.5))
    for batch in watched.trained_on(number):
        losses = []
        for row, ids in enumerate(batch):
            vector = embedding(plain, plain.represent(ids, training=True), row)
            losses.append(cross_entropy(matched(plain, vector, prototypes), plain.label(ids)))
        stage.step(mean(losses))
    assert_same_gradients(watched, number, stage)


def test_crecl_classifies_under_many_dropouts_and_then_matches_texts_with_prototypes() -> None:
    method = made()
    method.learn(FIRST)
    old = list(method.memory)
    watched = watch(method, SECOND)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)

    for number, size in ((PLAIN, 3), (CONSISTENT, 6)):
        batches = watched.trained_on(number)
        assert_epochs(batches, plain.rows(SECOND.train), 1, size)
        stage = Stage(plain, slow_but_for_the_classifier, clip=1e6)
        for batch in batches:
            if number == CONSISTENT:
                stage.step(consistent_loss(plain, batch))
                continue
            logits = [
                classified(plain, plain.represent(ids, training=True), row) for row, ids in enumerate(batch)
            ]
            stage.step(
                mean(cross_entropy(one, plain.label(ids)) for one, ids in zip(logits, batch, strict=True))
            )
        assert_same_gradients(watched, number, stage)

    assert_memory(method, old, SECOND, lambda example: feature(plain, example))
    prototypes = prototypes_of(plain, method)
    contrasted = watched.trained_on(CONTRAST)
    assert_full_batches(contrasted[: len(contrasted) // 2], plain.rows(SECOND.train), 6)
    contrast_stage(plain, watched, CONTRAST, prototypes)
    replayed = watched.trained_on(REPLAY)
    assert_full_batches(replayed[: len(replayed) // 2], plain.rows(method.memory), 4)
    contrast_stage(plain, watched, REPLAY, prototypes)  # where they stood before both

    assert_same_weights(method.state_dict(), plain, but=["prototypes"])
    with torch.no_grad():
        final = prototypes_of(plain, method)
        expected = [matched(plain, feature(plain, text), final) for text in EVERYTHING]
    torch.testing.assert_close(method.state_dict()["prototypes"], torch.stack(final), rtol=0.0, atol=1e-8)
    torch.testing.assert_close(method.scores(EVERYTHING), torch.stack(expected), rtol=0.0, atol=1e-6)
