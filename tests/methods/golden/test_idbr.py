"""IDBR: a second and a first task, recomputed text by text."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from repcl.data import Example
from repcl.methods import Method
from tests.methods.golden.plain import (
    Plain,
    Stage,
    assert_goes_on,
    assert_memory,
    assert_same_gradients,
    assert_same_weights,
    cross_entropy,
    mean,
)
from tests.methods.golden.texts import task
from tests.methods.golden.watching import Ids, Shown, State, Watched, built, watch

SETTINGS: dict[str, Any] = {
    "batch_size": 4,
    "initial_epochs": 2,
    "memory_per_class": 2,
    "learning_rate": 2e-3,
    "head_learning_rate": 4e-3,
    "task_learning_rate": 1.2e-2,
    "weight_decay": 0.1,
    "adam_epsilon": 1e-4,
    "warmup_epochs": 0.5,
    "feature_size": 5,
    "order_weight": 0.9,
    "task_weight": 0.8,
    "generic_weight": 0.5,
    "specific_weight": 0.3,
    "retention": 0.5,
    "replay_retention": 5.0,
    "replay_every": 8,
    "replay_per_task": 3,
}
FIRST, SECOND = task("fruit", "vehicle", each=3), task("weather", "place", each=4, shortest=6)
EVERYTHING = [*FIRST.train, *SECOND.train]


@dataclass(frozen=True)
class Reading:
    """What the model makes of one layout of one text."""

    generic: Tensor
    specific: Tensor
    classes: Tensor
    order: Tensor
    tasks: Tensor


def in_two_parts(first: Ids, second: Ids, plain: Plain) -> tuple[Ids, Ids]:
    """`[CLS] first [SEP] second [SEP]` and its segments."""
    start, separator = plain.tokenizer.cls_token_id, plain.tokenizer.sep_token_id
    ids = (start, *first, separator, *second, separator)
    return ids, (0,) * (len(first) + 2) + (1,) * (len(second) + 1)


def cut_in_the_middle(plain: Plain, ids: Ids) -> tuple[Ids, Ids]:
    words = ids[1:-1]
    return in_two_parts(words[: len(words) // 2], words[len(words) // 2 :], plain)


def represent(
    plain: Plain, layout: tuple[Ids, Ids], *, training: bool, weights: State | None = None
) -> Tensor:
    """The mean over all tokens of a layout."""
    ids, segments = layout
    return plain.states(ids, training=training, segments=segments, weights=weights).mean(dim=0)


def features(weights: State, representation: Tensor) -> tuple[Tensor, Tensor]:
    """Generic and specific features."""
    generic, specific = (
        torch.tanh(weights[f"head.{name}.0.weight"] @ representation + weights[f"head.{name}.0.bias"])
        for name in ("generic", "specific")
    )
    return generic, specific


def read(plain: Plain, layout: tuple[Ids, Ids]) -> Reading:
    generic, specific = features(plain.weights, represent(plain, layout, training=True))
    return Reading(
        generic,
        specific,
        plain["head.output.weight"] @ torch.cat([generic, specific]) + plain["head.output.bias"],
        plain["head.order.weight"] @ generic + plain["head.order.bias"],
        plain["head.task.weight"] @ specific + plain["head.task.bias"],
    )


class TextsByWords:
    """Finds the text of a layout: the parts, put together in one order or the other."""

    def __init__(self, plain: Plain) -> None:
        self.plain = plain
        self.known = {ids[1:-1]: ids for ids in plain.examples}

    def find(self, layout: tuple[Ids, Ids], *, is_swapped: bool) -> Ids:
        ids, segments = layout
        first = ids[1 : segments.index(1) - 1]
        second = ids[segments.index(1) : -1]
        assert first
        assert second  # a cut leaves something on both sides
        assert in_two_parts(first, second, self.plain) == layout
        return self.known[second + first if is_swapped else first + second]


def step_loss(
    plain: Plain, pair: tuple[Shown, Shown], before: State | None, texts: TextsByWords, *, is_replay: bool
) -> Tensor:
    """The total of one step on texts in order and, below them, with their parts swapped."""
    layouts = [list(zip(shown.rows, shown.segments or [], strict=True)) for shown in pair]
    found = [
        [texts.find(layout, is_swapped=bool(swapped)) for layout in rows]
        for swapped, rows in enumerate(layouts)
    ]
    assert found[0] == found[1]
    kept = found[0]
    readings = [[read(plain, layout) for layout in rows] for rows in layouts]
    both = [(one, ids) for rows in readings for one, ids in zip(rows, kept, strict=True)]
    loss = mean(cross_entropy(one.classes, plain.label(ids)) for one, ids in both)
    orders = [cross_entropy(one.order, swapped) for swapped, rows in enumerate(readings) for one in rows]
    loss = loss + 0.9 * mean(orders)
    if before is None:
        return loss
    held = torch.zeros(())
    for one, ids in zip(readings[0], kept, strict=True):  # the texts in order only
        with torch.no_grad():
            seen = represent(plain, cut_in_the_middle(plain, ids), training=False, weights=before)
            generic, specific = features(before, seen)
        held = (
            held + 0.3 * ((one.specific - specific) ** 2).mean() + 0.5 * ((one.generic - generic) ** 2).mean()
        )
    loss = loss + (5.0 if is_replay else 0.5) * held / len(kept)
    if is_replay:
        # classes 0 and 1 came with task 0, classes 2 and 3 with task 1
        loss = loss + 0.8 * mean(cross_entropy(one.tasks, plain.label(ids) // 2) for one, ids in both)
    return loss


def recomputed(method: Method, watched: Watched, *, is_first: bool) -> Plain:
    """The weights after the steps that were shown; every step's gradients are compared on the way."""
    assert_goes_on(watched)
    plain = Plain(method, watched.states[0], EVERYTHING)
    passes = [shown for shown in watched.shown if shown.can_learn]
    pairs = list(zip(passes[::2], passes[1::2], strict=True))
    texts = TextsByWords(plain)

    def rate(name: str) -> float:
        if name.startswith("head.task."):
            return 1.2e-2
        return 2e-3 if name.startswith("encoder.") else 4e-3

    stage = Stage(
        plain,
        rate,
        decay=0.1,
        decays_everything=True,
        clip=1e6,
        epsilon=1e-4,
        warmup=0.5 * len(pairs) / 2,
    )
    before = None if is_first else watched.before
    for number, pair in enumerate(pairs):
        # two batches of four in an epoch; the second comes with exemplars, and makes two steps
        is_replay = not is_first and number % 3 != 0
        stage.step(step_loss(plain, pair, before, texts, is_replay=is_replay))
    assert_same_gradients(watched, 0, stage, within=1e-6)
    return plain


def feature(plain: Plain, example: Example) -> Tensor:
    return represent(plain, cut_in_the_middle(plain, plain.ids[example]), training=False)


def assert_ends(method: Method, plain: Plain, old: list[Example]) -> None:
    """Weights, exemplars and answers are those recomputed."""
    assert_same_weights(method.state_dict(), plain, within=1e-6, but=["class_tasks"])
    assert_memory(method, old, SECOND, lambda example: feature(plain, example))
    with torch.no_grad():
        both = [torch.cat(features(plain.weights, feature(plain, text))) for text in EVERYTHING]
        expected = [plain["head.output.weight"] @ one + plain["head.output.bias"] for one in both]
    torch.testing.assert_close(method.scores(EVERYTHING), torch.stack(expected), rtol=0.0, atol=1e-6)


def test_the_first_task_of_idbr_tells_classes_and_the_order_of_parts() -> None:
    method = built("idbr", **SETTINGS)
    watched = watch(method, SECOND)
    assert_ends(method, recomputed(method, watched, is_first=True), [])


def test_later_tasks_of_idbr_hold_both_features_and_tell_tasks_apart_in_replay() -> None:
    method = built("idbr", **SETTINGS)
    method.learn(FIRST)
    old = list(method.memory)
    watched = watch(method, SECOND)
    assert_ends(method, recomputed(method, watched, is_first=False), old)


def test_a_replay_of_idbr_mixes_a_batch_with_some_exemplars_of_each_old_task() -> None:
    method = built("idbr", **SETTINGS)
    method.learn(FIRST)
    old = list(method.memory)
    watched = watch(method, SECOND)
    plain = Plain(method, watched.states[0], EVERYTHING)
    texts = TextsByWords(plain)
    passes = [shown for shown in watched.shown if shown.can_learn][::2]
    steps = [
        [
            texts.find(layout, is_swapped=False)
            for layout in zip(shown.rows, shown.segments or [], strict=True)
        ]
        for shown in passes
    ]
    new = set(plain.rows(SECOND.train))
    for at in range(0, len(steps), 3):
        ordinary, *replay = steps[at : at + 3]
        mixed = [ids for step in replay for ids in step]
        assert [len(step) for step in (ordinary, *replay)] == [4, 4, 3]
        assert set(ordinary) | (set(mixed) & new) == new
        exemplars = [ids for ids in mixed if ids not in new]
        assert len(set(exemplars)) == 3
        assert set(exemplars) <= set(plain.rows(old))


def test_the_two_layouts_of_a_text_are_cut_at_random_each_by_itself() -> None:
    method = built("idbr", **SETTINGS)
    watched = watch(method, SECOND)
    passes = [shown for shown in watched.shown if shown.can_learn]
    pairs = []
    for in_order, swapped in zip(passes[::2], passes[1::2], strict=True):
        for one, other in zip(in_order.segments or [], swapped.segments or [], strict=True):
            pairs.append(
                (one.index(1) - 2, other.count(1) - 1, len(one) - 3)
            )  # tokens before either cut, of all
    assert any(first != second for first, second, _ in pairs)
    assert any(first != tokens // 2 for first, _, tokens in pairs)
    assert any(second != tokens // 2 for _, second, tokens in pairs)
