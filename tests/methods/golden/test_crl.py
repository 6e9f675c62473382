"""CRL: a second task, recomputed text by text."""

from typing import Any

import torch
from torch import Tensor

from repcl.data import Example
from repcl.methods import Method
from tests.methods.golden.plain import (
    Plain,
    Stage,
    assert_chosen,
    assert_epochs,
    assert_goes_on,
    assert_memory,
    assert_same_gradients,
    assert_same_weights,
    cosine,
    mean,
    of_class,
    two_rates,
)
from tests.methods.golden.texts import task
from tests.methods.golden.watching import Ids, Watched, built, watch

SETTINGS: dict[str, Any] = {
    "batch_size": 4,
    "initial_epochs": 2,
    "replay_epochs": 2,
    "memory_per_class": 2,
    "learning_rate": 2e-3,
    "head_learning_rate": 5e-3,
    "clip_norm": 0.5,
    "temperature": 0.3,
    "projection_size": 6,
    "distillation_weight": 0.7,
    "distillation_sharpness": 4.0,
}
FIRST, SECOND = task("fruit", "vehicle", each=3), task("weather", "place", each=4, shortest=6)
EVERYTHING = [*FIRST.train, *SECOND.train]


def embedding(plain: Plain, ids: Ids, *, training: bool) -> Tensor:
    """h, what exemplars, prototypes and answers come from."""
    return plain["embedding.weight"] @ plain.represent(ids, training=training) + plain["embedding.bias"]


def feature(plain: Plain, example: Example) -> Tensor:
    return embedding(plain, plain.ids[example], training=False)


def contrasted(plain: Plain, ids: Ids, *, training: bool) -> Tensor:
    """z, the unit vector that is contrasted."""
    inner = (
        plain["projection.0.weight"] @ embedding(plain, ids, training=training) + plain["projection.0.bias"]
    )
    outer = plain["projection.2.weight"] @ torch.relu(inner) + plain["projection.2.bias"]
    return outer / outer.norm()


Bank = dict[Ids, Tensor]


def against_bank(plain: Plain, unit: Tensor, label: int, bank: Bank) -> Tensor:
    """The loss of one text: the mean over all rows of its class, its own row included."""
    scores = {ids: unit @ row / SETTINGS["temperature"] for ids, row in bank.items()}
    largest = max(float(score.detach()) for score in scores.values())
    risen = {ids: torch.exp(score - largest) + 1e-5 for ids, score in scores.items()}
    total = sum(risen.values())
    return mean(-torch.log(value / total) for ids, value in risen.items() if plain.label(ids) == label)


def kept_similarities(plain: Plain, unit: Tensor, label: int, bank: Bank, prototypes: Tensor) -> Tensor:
    """KL from how the old prototypes resemble each other to how a text resembles the old classes' rows."""
    sharpness = SETTINGS["distillation_sharpness"]
    teacher = torch.stack([cosine(prototypes[label], other) for other in prototypes])
    students = []
    for number in range(len(prototypes)):
        direction = mean(row for ids, row in bank.items() if plain.label(ids) == number)
        students.append(unit @ (direction / direction.norm()))
    wanted = torch.softmax(sharpness * teacher, dim=0)
    found = torch.softmax(sharpness * torch.stack(students), dim=0)
    return (wanted * (wanted.log() - found.log())).sum()


def new_bank(plain: Plain, examples: list[Example]) -> Bank:
    with torch.no_grad():
        return {ids: contrasted(plain, ids, training=False) for ids in plain.rows(examples)}


def bank_stage(plain: Plain, watched: Watched, number: int, texts: list[Example], old: Tensor | None) -> None:
    """A stage of contrast with a bank of these texts, compared step by step; in replay similarities are kept.

    Args:
        plain: the weights, which are trained.
        watched: what was seen.
        number: of the stage.
        texts: what was trained on.
        old: the prototypes of the old classes as the last task left them, in replay.
    """
    batches = watched.trained_on(number)
    assert_epochs(batches, plain.rows(texts), 2, 4)
    bank = new_bank(plain, texts)
    stage = Stage(plain, two_rates(2e-3, 5e-3), clip=0.5)
    for batch in batches:
        units = {ids: contrasted(plain, ids, training=True) for ids in batch}
        loss = mean(against_bank(plain, unit, plain.label(ids), bank) for ids, unit in units.items())
        of_old = [(unit, plain.label(ids)) for ids, unit in units.items() if plain.label(ids) < 2]
        if old is not None and of_old:
            kept = mean(kept_similarities(plain, unit, label, bank, old) for unit, label in of_old)
            loss = loss + SETTINGS["distillation_weight"] * kept
        stage.step(loss)
        bank |= {ids: unit.detach() for ids, unit in units.items()}  # the latest, before the step
    assert_same_gradients(watched, number, stage)


def provisional_exemplars(plain: Plain, watched: Watched) -> list[Example]:
    """The exemplars of new classes that replay was shown."""
    rows = dict.fromkeys(ids for batch in watched.trained_on(2) for ids in batch)
    return [plain.examples[ids] for ids in rows if plain.examples[ids].label in SECOND.classes]


def assert_answers(method: Method, plain: Plain) -> None:
    """Answers are distances to the mean embedding of each class's exemplars."""
    with torch.no_grad():
        expected = torch.stack(
            [mean(feature(plain, one) for one in method.memory.of(name)) for name in method.classes]
        )
        distances = [[-((feature(plain, text) - one) ** 2).sum() for one in expected] for text in EVERYTHING]
    torch.testing.assert_close(method.state_dict()["prototypes"], expected, rtol=0.0, atol=1e-8)
    torch.testing.assert_close(method.scores(EVERYTHING), torch.tensor(distances), rtol=0.0, atol=1e-6)


def test_the_first_task_of_crl_contrasts_new_texts_with_a_bank_of_them() -> None:
    method = built("crl", **SETTINGS)
    watched = watch(method, SECOND)
    plain = Plain(method, watched.states[0], EVERYTHING)
    assert watched.training_stages() == [0]
    bank_stage(plain, watched, 0, SECOND.train, None)
    assert_memory(method, [], SECOND, lambda example: feature(plain, example))
    assert_same_weights(method.state_dict(), plain, but=["prototypes"])
    assert_answers(method, plain)


def test_later_tasks_of_crl_replay_and_keep_the_similarities_of_old_classes() -> None:
    method = built("crl", **SETTINGS)
    method.learn(FIRST)
    old = list(method.memory)
    watched = watch(method, SECOND)
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)

    bank_stage(plain, watched, 0, SECOND.train, None)
    provisional = provisional_exemplars(plain, watched)
    for name in SECOND.classes:
        own = of_class(SECOND.train, name)
        assert_chosen(of_class(provisional, name), own, lambda example: feature(plain, example), 2)
    bank_stage(plain, watched, 2, [*old, *provisional], watched.before["prototypes"])
    assert_memory(method, old, SECOND, lambda example: feature(plain, example))
    assert_same_weights(method.state_dict(), plain, but=["prototypes"])
    assert_answers(method, plain)
