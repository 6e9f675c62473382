from typing import Any

import pytest
import torch
from torch import Tensor

from repcl.data import Batch, Example, InputKind, Task
from repcl.methods.base import seeded
from repcl.methods.idbr.head import Reading
from repcl.methods.idbr.method import IDBR
from repcl.training import Observer
from tests.conftest import tiny_encoder, toy_task

CHEAP: dict[str, Any] = {"initial_epochs": 1, "memory_per_class": 3, "learning_rate": 1e-3}


def make(
    kind: InputKind = "sentence", *, dropout: float = 0.1, expected_classes: int = 0, **settings: Any
) -> IDBR:
    encoder = tiny_encoder(kind, dropout=dropout)
    with seeded(7, 0, encoder.device) as generator:
        checked = IDBR.Settings(**{**CHEAP, **settings})
        method = IDBR(encoder, checked, seed=7, expected_classes=expected_classes)
        method.generator = generator
    return method.eval()


def batch_of(method: IDBR, kind: InputKind, *topics: str) -> Batch:
    method.classes = method.classes or list(topics)
    examples = toy_task(kind, *topics, train=2).train
    return method.batches(examples, len(examples)).take(range(len(examples)))


# ---- losses by hand: n = 2, three tasks, S and G two wide ------------------------------------------

SPECIFIC = torch.tensor([[0.5, -0.5], [0.0, 1.0]])
GENERIC = torch.tensor([[0.2, 0.2], [0.4, -0.4]])
OLD = torch.tensor([[0.0, 0.0, 0.0, -0.5], [0.4, 0.0, 0.0, 0.0]])  # generic, then specific
LABELS = torch.zeros(2, dtype=torch.long)
READING = Reading(
    generic=GENERIC.repeat(2, 1),
    specific=SPECIFIC.repeat(2, 1),
    class_scores=torch.tensor([[1.0, 0.0, 0.0, 0.0]]).repeat(4, 1),
    order_scores=torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]),
    task_scores=torch.tensor([[2.0, 1.0, 0.0, 9.0, -3.0, 4.0, 7.0, 1.0, 1.0, 50.0]]).repeat(4, 1),
)


def at_the_third_task(**settings: Any) -> IDBR:
    method = make(feature_size=2, **settings)
    method.tasks_learned = 2
    method.class_tasks = torch.tensor([0, 0, 1, 2])
    return method


@pytest.mark.parametrize(
    ("specific_weight", "ordinary", "replay"), [(0.3, 0.061875, 0.61875), (0.5, 0.093125, 0.93125)]
)
def test_retention_is_the_weighted_mean_square_of_what_moved(
    specific_weight: float, ordinary: float, replay: float
) -> None:
    method = at_the_third_task(specific_weight=specific_weight)
    for is_replay, expected in ((False, ordinary), (True, replay)):
        terms = method.terms(READING, LABELS, OLD, is_replay=is_replay)
        assert terms["retention"].item() == pytest.approx(expected)


def test_an_ordinary_step_has_classes_order_and_retention() -> None:
    terms = at_the_third_task().terms(READING, LABELS, OLD, is_replay=False)
    assert terms["ce"].item() == pytest.approx(0.743668, abs=1e-6)
    assert terms["order"].item() == pytest.approx(0.313262, abs=1e-6)
    assert terms.keys() == {"ce", "order", "retention"}
    assert sum(terms.values()).item() == pytest.approx(1.118805, abs=1e-6)  # type: ignore[union-attr]


def test_a_replay_step_tells_the_tasks_seen_so_far_apart_as_well() -> None:
    terms = at_the_third_task().terms(READING, LABELS, OLD, is_replay=True)
    assert terms["task"].item() == pytest.approx(0.407606, abs=1e-6)
    assert sum(terms.values()).item() == pytest.approx(2.083286, abs=1e-6)  # type: ignore[union-attr]


def test_the_first_task_has_neither_retention_nor_tasks() -> None:
    method = make(feature_size=2)
    assert method.terms(READING, LABELS, None, is_replay=False).keys() == {"ce", "order"}


def test_the_swapped_copies_do_not_count_for_retention() -> None:
    moved = READING._replace(
        generic=torch.cat([GENERIC, GENERIC + 1.0]), specific=torch.cat([SPECIFIC, SPECIFIC + 1.0])
    )
    terms = at_the_third_task().terms(moved, LABELS, OLD, is_replay=False)
    assert terms["retention"].item() == pytest.approx(0.061875)


# ---- gradients -------------------------------------------------------------------------------------


def gradients(method: IDBR, term: str, batch: Batch) -> dict[str, bool]:
    """Which parts of the head a term reaches."""
    method.tasks_learned, method.class_tasks = 1, torch.zeros(2, dtype=torch.long)
    method.head.output.grow_to(2)
    method.head.task.grow_to(2)
    method.zero_grad()
    old = method.for_all(toy_task("sentence", "fruit", "vehicle", train=2).train, method.features) + 0.1
    assert not old.requires_grad
    method.terms(method.read(batch), batch.labels, old, is_replay=True)[term].backward()  # type: ignore[no-untyped-call]
    return {
        name: any(part.grad is not None and bool(part.grad.any()) for part in child.parameters())
        for name, child in method.head.named_children()
        if name != "hidden"
    }


@pytest.mark.parametrize(
    ("term", "reached"),
    [
        ("ce", {"generic", "specific", "output"}),
        ("order", {"generic", "order"}),
        ("task", {"specific", "task"}),
        ("retention", {"generic", "specific"}),
    ],
)
def test_each_loss_reaches_its_own_parts_only(term: str, reached: set[str]) -> None:
    method = make()
    found = gradients(method, term, batch_of(method, "sentence", "fruit", "vehicle"))
    assert {name for name, is_reached in found.items() if is_reached} == reached


def test_retention_is_zero_before_the_first_step() -> None:
    method = make()
    batch = batch_of(method, "sentence", "fruit", "vehicle")
    method.tasks_learned, method.class_tasks = 1, torch.zeros(2, dtype=torch.long)
    method.head.output.grow_to(2)
    with torch.no_grad():
        features = method.features(batch)
        reading = method.head.read(method.exemplar_features(batch))
    assert method.terms(reading, batch.labels, features, is_replay=False)["retention"].item() == 0.0


def test_features_lie_between_minus_one_and_one() -> None:
    method = make()
    features = method.features(batch_of(method, "sentence", "fruit", "vehicle"))
    assert features.shape == (4, 256)
    assert bool((features.abs() < 1).all())


# ---- reading ---------------------------------------------------------------------------------------


def encoded_rows(method: IDBR, batch: Batch) -> int:
    rows = []
    hook = method.encoder.register_forward_pre_hook(lambda encoder, inputs: rows.append(len(inputs[0])))
    method.read(batch)
    hook.remove()
    return sum(rows)


def test_without_order_prediction_half_as_many_texts_are_encoded() -> None:
    with_order, without = make(dropout=0.0), make(dropout=0.0, order_weight=0.0)
    batch = batch_of(with_order, "sentence", "fruit", "vehicle")
    without.classes = with_order.classes
    assert encoded_rows(with_order, batch) == 8
    assert encoded_rows(without, batch) == 4


def test_without_order_prediction_the_class_loss_of_texts_in_order_is_the_same() -> None:
    losses: list[Tensor] = []
    for order_weight in (1.0, 0.0):
        method = make(dropout=0.0, order_weight=order_weight)
        batch = batch_of(method, "sentence", "fruit", "vehicle")
        with torch.random.fork_rng([]):
            torch.manual_seed(3)
            method.head.output.grow_to(2)
        method.generator = torch.Generator().manual_seed(5)
        scores = method.read(batch).class_scores[:4]
        losses.append(torch.nn.functional.cross_entropy(scores, batch.labels))
    torch.testing.assert_close(losses[0], losses[1])


@pytest.mark.parametrize("kind", ["sentence", "relation", "event"])
def test_texts_of_every_kind_are_read_in_both_orders(kind: InputKind) -> None:
    method = make(kind)
    reading = method.read(batch_of(method, kind, "fruit", "vehicle"))
    assert reading.generic.shape == reading.specific.shape == (8, 128)
    assert reading.order_scores.shape == (8, 2)
    assert bool(reading.generic.isfinite().all())


def test_segments_tell_the_parts_apart() -> None:
    method = make(dropout=0.0)
    batch = batch_of(method, "sentence", "fruit", "vehicle")
    one_part = torch.zeros_like(batch.ids)
    two_parts = one_part.clone()
    two_parts[:, 4:] = 1
    assert not torch.equal(
        method.encoder(batch, segments=one_part), method.encoder(batch, segments=two_parts)
    )


def test_an_encoder_that_knows_no_segments_is_not_given_any() -> None:
    method = make(dropout=0.0)
    batch = batch_of(method, "sentence", "fruit", "vehicle")
    plain = method.encoder(batch)
    method.encoder.backbone.config.type_vocab_size = 1
    torch.testing.assert_close(method.encoder(batch, segments=torch.ones_like(batch.ids)), plain)


@pytest.mark.parametrize("kind", ["sentence", "relation", "event"])
def test_the_first_token_can_be_read_instead(kind: InputKind) -> None:
    method = make(kind, representation="cls")
    assert method.exemplar_features(batch_of(method, kind, "fruit")).shape == (2, 32)


# ---- procedure -------------------------------------------------------------------------------------


class Steps(Observer):
    """Writes down the terms of every step."""

    def __init__(self) -> None:
        self.terms: list[set[str]] = []

    def step_ends(self, terms: Any) -> None:
        self.terms.append(set(terms))


def test_only_replay_steps_of_later_tasks_tell_tasks_apart() -> None:
    method = make(replay_every=16)
    seen = []
    for task in (
        toy_task("sentence", "fruit", "vehicle", train=16),
        toy_task("sentence", "weather", train=32),
    ):
        method.observer = Steps()
        method.learn(task)
        seen.append(method.observer.terms)
    assert seen[0] == [{"ce", "order"}] * 4
    assert seen[1].count({"ce", "order", "retention"}) == 2
    assert seen[1].count({"ce", "order", "retention", "task"}) == 2 * 2  # 8 new and 6 old in steps of 8


def test_the_memory_grows_by_the_budget_of_each_new_class_and_keeps_what_it_has() -> None:
    method = make()
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    old = list(method.memory)
    assert len(old) == 2 * 3
    method.learn(toy_task("sentence", "weather", "place"))
    assert len(method.memory) == 4 * 3
    assert [example for name in ("fruit", "vehicle") for example in method.memory.of(name)] == old


def test_each_class_remembers_the_task_it_came_with() -> None:
    method = make()
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    method.learn(toy_task("sentence", "weather", "fruit", start=20))
    assert method.class_tasks.tolist() == [0, 0, 1]
    assert method._exemplars_by_task(first=10) == [[10, 11, 12, 13, 14, 15], [16, 17, 18]]


def test_the_task_scores_have_one_column_for_each_task_learned() -> None:
    method = make()
    for number, topic in enumerate(("fruit", "vehicle", "weather"), start=1):
        method.learn(toy_task("sentence", topic))
        assert len(method.head.task.weight) == number


def test_the_task_scores_learn_at_their_own_rate() -> None:
    # Adam's first step moves a weight by the rate, if its gradient is well above epsilon
    method = make(
        initial_epochs=1,
        warmup_epochs=0.0,
        replay_every=1,
        weight_decay=0.0,
        batch_size=64,
        adam_epsilon=1e-12,
    )
    method.learn(toy_task("sentence", "fruit"))
    start: dict[str, Tensor] = {}

    class Start(Observer):
        def stage_begins(self, name: str, **_: Any) -> None:
            start.setdefault("task", method.head.task.weight.detach().clone())
            start.setdefault("order", method.head.order.weight.detach().clone())

    method.observer = Start()
    method.learn(toy_task("sentence", "vehicle"))
    task_moved = (method.head.task.weight - start["task"]).abs().max().item()
    order_moved = (method.head.order.weight - start["order"]).abs().max().item()
    assert task_moved == pytest.approx(5e-4, rel=0.01)
    assert order_moved == pytest.approx(3e-5, rel=0.01)


def test_warm_up_ends_after_so_many_examples_at_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    monkeypatch.setattr(
        "repcl.methods.idbr.method.run_stage", lambda *parts, **_: found.append((len(parts[2]), parts[4]))
    )
    method = make(warmup_epochs=2.5, initial_epochs=4, warmup_examples=16)
    method.learn(toy_task("sentence", "fruit", "vehicle", train=16))
    ((steps_per_epoch, stage),) = found
    assert stage.warmup_epochs * steps_per_epoch == pytest.approx(2)  # two steps of eight examples


def test_warm_up_ends_after_a_quarter_of_the_epochs_at_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    monkeypatch.setattr("repcl.methods.idbr.method.run_stage", lambda *parts, **_: found.append(parts[4]))
    make(warmup_epochs=2.5, initial_epochs=2).learn(toy_task("sentence", "fruit", "vehicle", train=16))
    assert [stage.warmup_epochs for stage in found] == [0.5]


def test_reserved_rows_are_there_from_the_start_but_not_predicted() -> None:
    method = make(reserved=True, expected_classes=6)
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    assert len(method.head.output.weight) == 6
    assert method.scores(toy_task("sentence", "fruit").test).shape == (3, 2)


def test_a_merged_class_belongs_to_the_earliest_task_of_its_parts() -> None:
    method = make()
    method.learn(toy_task("sentence", "fruit"))
    method.learn(toy_task("sentence", "vehicle", "weather"))
    method.regroup_classes({"weather": ["weather"], "thing": ["fruit", "vehicle"]})
    assert method.class_tasks.tolist() == [1, 0]
    method.learn(toy_task("sentence", "place"))
    assert method.class_tasks.tolist() == [1, 0, 2]


# ---- numerical safety ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sentence", "relation", "event"])
def test_single_examples_of_single_classes_give_finite_scores(kind: InputKind) -> None:
    method = make(kind, replay_every=1)
    for topic in ("fruit", "vehicle", "weather"):
        method.learn(toy_task(kind, topic, train=1))
    assert bool(method.scores(toy_task(kind, "place").test).isfinite().all())


def test_a_task_without_any_memory_left_learns_without_replay() -> None:
    method = make(replay_every=1)
    method.learn(toy_task("sentence", "fruit"))
    method.memory.keep("fruit", [])
    method.learn(toy_task("sentence", "vehicle"))
    assert bool(method.scores(toy_task("sentence", "place").test).isfinite().all())


def test_the_longest_texts_fit_although_a_separator_is_added() -> None:
    method = make()
    long = [Example(" ".join(["apple"] * 62), "fruit"), Example(" ".join(["car"] * 62), "vehicle")]
    assert len(method.encoder.tokenize(long)[0].ids) == method.encoder.max_length == 64
    method.learn(Task(("fruit", "vehicle"), long, []))
    assert bool(method.scores(long).isfinite().all())
