"""The contract that every method keeps, on every input kind it supports; new methods are met in `METHODS`."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from repcl.data import Example, InputKind, Task, TokenizedExample
from repcl.methods import METHODS, Method, build_method, load_method, save_method
from repcl.methods.settings import MemorySettings
from repcl.model import Encoder
from tests.conftest import readout_of, tiny_encoder, toy_task


def cases(applies: Callable[[type[Method]], bool] = lambda method: True) -> pytest.MarkDecorator:
    """Every method with every input kind it supports, as far as a test applies to it."""
    return pytest.mark.parametrize(
        ("name", "kind"),
        [
            pytest.param(name, kind, id=f"{name}-{kind}")
            for name, method in METHODS.items()
            if applies(method)
            for kind in method.kinds
        ],
    )


def has_memory(method: type[Method]) -> bool:
    return issubclass(method.Settings, MemorySettings)


every_case = cases()

PER_CLASS = 3
WANTED = {
    "batch_size": 6,
    "features": 64,
    "learning_rate": 1e-3,
    "memory_per_class": PER_CLASS,
    "warmup_epochs": 0.0,
}


def cheap_settings(name: str) -> dict[str, float]:
    fields = METHODS[name].Settings.model_fields
    once = {field: 1 for field in fields if field.endswith("epochs")}
    return {**once, **{field: value for field, value in WANTED.items() if field in fields}}


def encoder_for(name: str, kind: InputKind) -> Encoder:
    return tiny_encoder(kind, readout=readout_of(name, kind))


def made(name: str, kind: InputKind, **settings: float) -> Method:
    return build_method(
        name,
        kind,
        encoder=encoder_for(name, kind),
        settings={**cheap_settings(name), **settings},
        seed=2021,
        expected_classes=6,
    )


@cache
def tasks(kind: InputKind) -> tuple[Task, Task, Task]:
    return (
        toy_task(kind, "fruit", "vehicle"),
        toy_task(kind, "weather", "place"),
        toy_task(kind, "person", "conflict"),
    )


def unseen_texts(kind: InputKind) -> list[Example]:
    return [example for task in tasks(kind) for example in task.test]


def random_states() -> tuple[object, ...]:
    """The global generators of torch, numpy and Python."""
    _, numbers, index, *rest = np.random.get_state()
    return torch.get_rng_state().tolist(), numbers.tolist(), index, rest, random.getstate()


@dataclass
class Story:
    """A method that learned two tasks, and what was seen on the way; only to be looked at."""

    method: Method
    scores_after_each_task: list[Tensor]
    tokenized_while_learning: set[str]
    random_states_before_and_after: list[object]


@cache
def learned(name: str, kind: InputKind) -> Story:
    story = Story(made(name, kind), [], set(), [random_states()])
    tokenize = Encoder.tokenize

    def spied(encoder: Encoder, examples: Sequence[Example]) -> list[TokenizedExample]:
        story.tokenized_while_learning.update(example.text for example in examples)
        return tokenize(encoder, examples)

    for task in tasks(kind)[:2]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Encoder, "tokenize", spied)
            story.method.learn(task)
        story.scores_after_each_task.append(story.method.scores(unseen_texts(kind)))
    story.random_states_before_and_after.append(random_states())
    return story


@cache
def mixed_tasks(kind: InputKind) -> tuple[Task, Task]:
    """The second task has a new class, five more fruits after a single one, and a second place."""
    first = [toy_task(kind, "fruit", "place", train=1), toy_task(kind, "vehicle")]
    second = [
        toy_task(kind, "weather"),
        toy_task(kind, "fruit", train=5, start=20),
        toy_task(kind, "place", train=1, start=20),
    ]
    return tuple(  # type: ignore[return-value]
        Task(
            tuple(name for part in parts for name in part.classes),
            [example for part in parts for example in part.train],
            [],
        )
        for parts in (first, second)
    )


@cache
def learned_mixed(name: str, kind: InputKind) -> tuple[Method, bool]:
    """A method after these tasks, and whether it learned from the new examples of old classes."""
    method = made(name, kind)
    first, second = mixed_tasks(kind)
    method.learn(first)
    seen = Seen(method)
    method.learn(second)
    return method, seen.holds([example for example in second.train if example.label in first.classes])


class Seen:
    """The words of every text that a method's encoder is shown, and of those it can learn from.

    Words are compared without order and special tokens: IDBR cuts a text in two and swaps the halves.
    """

    def __init__(self, method: Method) -> None:
        self.shown: set[tuple[int, ...]] = set()
        self.trained: set[tuple[int, ...]] = set()
        self.method = method
        method.encoder.register_forward_pre_hook(lambda _, inputs: self.look(inputs[0].ids))
        # a frozen encoder packs texts, and passes them from here on itself
        method.encoder.backbone.embeddings.register_forward_pre_hook(
            lambda _, __, named: self.look(named["input_ids"]) if "input_ids" in named else None,
            with_kwargs=True,
        )

    def look(self, batch: torch.Tensor) -> None:
        rows = {self.words(ids.tolist()) for ids in batch}
        self.shown |= rows
        if torch.is_grad_enabled():
            self.trained |= rows

    def words(self, ids: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted(token for token in ids if token not in self.method.encoder.special_ids))

    def holds(self, examples: list[Example]) -> bool:
        """Whether all examples were trained on (where the encoder is frozen: were shown)."""
        expected = {self.words(row.ids) for row in self.method.encoder.tokenize(examples)}
        return expected <= (self.trained or self.shown)


def assert_equal_state(one: Method, other: Method) -> None:
    assert one.classes == other.classes
    assert {name: one.memory.of(name) for name in one.memory.classes} == {
        name: other.memory.of(name) for name in other.memory.classes
    }
    ours, theirs = one.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


# ---- predictions -----------------------------------------------------------------------------------


@every_case
def test_scores_have_one_finite_column_per_seen_class(name: str, kind: InputKind) -> None:
    scores = learned(name, kind).scores_after_each_task
    assert [tuple(part.shape) for part in scores] == [(18, 2), (18, 4)]
    assert all(part.isfinite().all() for part in scores)


@every_case
def test_classes_come_in_the_order_in_which_they_were_learned(name: str, kind: InputKind) -> None:
    assert learned(name, kind).method.classes == ["fruit", "vehicle", "weather", "place"]


@every_case
def test_only_seen_classes_are_predicted(name: str, kind: InputKind) -> None:
    method = learned(name, kind).method
    predicted = method.predict(unseen_texts(kind))
    assert len(predicted) == 18
    assert set(predicted) <= {"fruit", "vehicle", "weather", "place"}


@every_case
def test_a_prediction_does_not_depend_on_the_label_or_the_neighbors(name: str, kind: InputKind) -> None:
    method = learned(name, kind).method
    examples = unseen_texts(kind)
    alone = Example(examples[0].text, "unheard of", examples[0].head, examples[0].tail, examples[0].trigger)
    torch.testing.assert_close(method.scores([alone])[0], method.scores(examples)[0])


@every_case
def test_dropout_is_off_after_learning(name: str, kind: InputKind) -> None:
    method = learned(name, kind).method
    assert not any(part.training for part in method.modules())
    assert torch.equal(method.scores(unseen_texts(kind)), method.scores(unseen_texts(kind)))


# ---- memory ----------------------------------------------------------------------------------------


@cases(lambda method: not method.keeps_everything)
def test_the_memory_stays_within_its_budget(name: str, kind: InputKind) -> None:
    method = learned(name, kind).method
    budget = PER_CLASS if has_memory(METHODS[name]) else 0
    assert all(count <= budget for count in method.memory.counts().values())


@cases(lambda method: method.keeps_everything)
def test_a_method_that_keeps_everything_does(name: str, kind: InputKind) -> None:
    counts = learned(name, kind).method.memory.counts()
    assert counts == {"fruit": 6, "vehicle": 6, "weather": 6, "place": 6}


@cases(has_memory)
def test_a_memory_holds_something_of_every_class(name: str, kind: InputKind) -> None:
    method = learned(name, kind).method
    assert set(method.memory.classes) == set(method.classes)
    assert all(method.memory.counts().values())


@every_case
def test_exemplars_are_training_examples_of_their_class(name: str, kind: InputKind) -> None:
    method = learned(name, kind).method
    train = {example for task in tasks(kind)[:2] for example in task.train}
    for label in method.memory.classes:
        kept = method.memory.of(label)
        assert {example.label for example in kept} == {label}
        assert set(kept) <= train
        assert len(set(kept)) == len(kept)


@cases(lambda method: "memory_total" in method.Settings.model_fields)
def test_a_total_budget_is_kept_however_many_classes_come(name: str, kind: InputKind) -> None:
    method = made(name, kind, memory_total=5)
    for task in tasks(kind)[:2]:
        method.learn(task)
        assert 0 < len(method.memory) <= 5


# ---- randomness ------------------------------------------------------------------------------------


@every_case
def test_the_same_seed_gives_the_same_method(name: str, kind: InputKind) -> None:
    story = learned(name, kind)
    again = made(name, kind)
    with torch.random.fork_rng([]):
        torch.manual_seed(5)  # whatever the global generator says
        for task in tasks(kind)[:2]:
            again.learn(task)
    assert torch.equal(again.scores(unseen_texts(kind)), story.scores_after_each_task[-1])
    assert_equal_state(again, story.method)


@every_case
def test_learning_leaves_all_global_generators_untouched(name: str, kind: InputKind) -> None:
    before, after = learned(name, kind).random_states_before_and_after
    assert after == before


# ---- saving ----------------------------------------------------------------------------------------


@every_case
def test_a_loaded_method_predicts_as_before(name: str, kind: InputKind, tmp_path: Path) -> None:
    method = learned(name, kind).method
    save_method(method, name, tmp_path)
    loaded = load_method(tmp_path, encoder=encoder_for(name, kind))
    assert torch.equal(loaded.scores(unseen_texts(kind)), method.scores(unseen_texts(kind)))
    assert_equal_state(loaded, method)


@every_case
def test_saving_and_loading_changes_nothing_about_the_third_task(
    name: str, kind: InputKind, tmp_path: Path
) -> None:
    unbroken = made(name, kind)
    # Whether the stream goes on matters to methods that wait for its end, which is where loading is hardest.
    more_follow = METHODS[name].keeps_everything
    for task in tasks(kind)[:2]:
        unbroken.learn(task, more_follow=more_follow)
    save_method(unbroken, name, tmp_path)
    resumed = load_method(tmp_path, encoder=encoder_for(name, kind))
    for method in (unbroken, resumed):
        method.learn(tasks(kind)[2])
    assert resumed.tasks_learned == unbroken.tasks_learned == 3
    assert torch.equal(resumed.scores(unseen_texts(kind)), unbroken.scores(unseen_texts(kind)))
    assert_equal_state(resumed, unbroken)


@cases(lambda method: method.keeps_everything)
def test_a_method_that_trained_before_it_was_saved_starts_over_as_if_it_never_was(
    name: str, kind: InputKind, tmp_path: Path
) -> None:
    unbroken = made(name, kind)
    unbroken.learn(tasks(kind)[0])
    save_method(unbroken, name, tmp_path)
    resumed = load_method(tmp_path, encoder=encoder_for(name, kind))
    for method in (unbroken, resumed):
        method.learn(tasks(kind)[1])
    assert_equal_state(resumed, unbroken)


@pytest.mark.parametrize("text", ["one\u2028two", "a\u0085b", "tab\tand\nline", 'quote " and \\', "漢字 🚗"])
def test_any_text_in_the_memory_survives_saving(text: str, tmp_path: Path) -> None:
    method = made("fea", "sentence")
    method.learn(Task(("x", "y"), [Example(text, "x"), Example("rain", "y")], []))
    save_method(method, "fea", tmp_path)
    loaded = load_method(tmp_path, encoder=encoder_for("fea", "sentence"))
    assert list(loaded.memory) == [Example(text, "x"), Example("rain", "y")]


# ---- what reaches training -------------------------------------------------------------------------


@every_case
def test_test_texts_never_reach_training(name: str, kind: InputKind) -> None:
    train = {example.text for task in tasks(kind)[:2] for example in task.train}
    tested = {example.text for example in unseen_texts(kind)}
    assert train.isdisjoint(tested)
    tokenized = learned(name, kind).tokenized_while_learning
    assert train <= tokenized
    assert tokenized.isdisjoint(tested)


@every_case
def test_a_task_may_mix_an_old_class_with_a_new_one(name: str, kind: InputKind) -> None:
    method, _ = learned_mixed(name, kind)
    assert method.classes == ["fruit", "place", "vehicle", "weather"]
    scores = method.scores(unseen_texts(kind))
    assert scores.shape == (18, 4)
    assert_finite(method, scores)


@every_case
def test_more_examples_of_an_old_class_reach_training(name: str, kind: InputKind) -> None:
    _, learned_from_them = learned_mixed(name, kind)
    assert learned_from_them


def of_class(label: str, *tasks: Task) -> set[Example]:
    return {example for task in tasks for example in task.train if example.label == label}


@cases(has_memory)
def test_more_examples_of_an_old_class_join_the_choice_of_its_exemplars(name: str, kind: InputKind) -> None:
    method, _ = learned_mixed(name, kind)
    kept = method.memory.of("fruit")
    assert 1 < len(kept) <= PER_CLASS  # the first task had one
    assert set(kept) <= of_class("fruit", *mixed_tasks(kind))


@cases(has_memory)
def test_old_exemplars_stay_in_the_choice_when_more_examples_come(name: str, kind: InputKind) -> None:
    method, _ = learned_mixed(name, kind)
    assert set(method.memory.of("place")) == of_class("place", *mixed_tasks(kind))  # two, budget three


# ---- small tasks -----------------------------------------------------------------------------------


@every_case
def test_tasks_of_one_class_give_finite_scores(name: str, kind: InputKind) -> None:
    method = made(name, kind)
    for number, topic in enumerate(("fruit", "vehicle"), start=1):
        method.learn(toy_task(kind, topic))
        scores = method.scores(unseen_texts(kind))
        assert scores.shape == (18, number)
        assert_finite(method, scores)


@every_case
def test_a_class_of_one_example_gives_finite_scores(name: str, kind: InputKind) -> None:
    method = made(name, kind)
    for alone, many in (("fruit", "vehicle"), ("weather", "place")):
        one, others = toy_task(kind, alone, train=1), toy_task(kind, many)
        method.learn(Task((alone, many), one.train + others.train, []))
    scores = method.scores(unseen_texts(kind))
    assert scores.shape == (18, 4)
    assert_finite(method, scores)
    assert method.memory.counts().get("fruit", 1) == 1


@every_case
def test_a_first_task_of_a_single_example_gives_finite_scores(name: str, kind: InputKind) -> None:
    method = made(name, kind)
    method.learn(toy_task(kind, "fruit", train=1))
    assert_finite(method, method.scores(unseen_texts(kind)))


def assert_finite(method: Method, scores: Tensor) -> None:
    assert scores.isfinite().all()
    assert [name for name, value in method.state_dict().items() if not value.isfinite().all()] == []
