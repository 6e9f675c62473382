"""RepCL: its momentum branch, its objectives, its replay, its head and its memory."""

import gc
import weakref
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from repcl.data import Batch, Batches, InputKind, Task
from repcl.losses import supervised_info_nce
from repcl.methods import build_method
from repcl.methods import repcl as repcl_module
from repcl.methods.repcl import RepCL, TokenHead, momentum_copy
from repcl.training import Observer
from tests.conftest import library_tokenizer, tiny_encoder, toy_task

CHEAP = {
    "initial_epochs": 1,
    "replay_epochs": 1,
    "batch_size": 4,
    "warmup_epochs": 0.0,
    "memory_per_class": 2,
    "learning_rate": 1e-3,
}
KINDS: tuple[InputKind, ...] = ("sentence", "relation", "event")


class Recorder(Observer):
    """Keeps the names of all stages and the values of all terms."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.terms: list[tuple[str, dict[str, float]]] = []

    def stage_begins(self, name: str, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        self.stages.append(name)

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        self.terms.append((self.stages[-1], {name: term.item() for name, term in terms.items()}))

    def names(self, stage: str) -> set[str]:
        return {name for where, terms in self.terms if where == stage for name in terms}

    def values(self, name: str) -> list[float]:
        return [terms[name] for _, terms in self.terms if name in terms]


def made(kind: InputKind = "sentence", *, expected_classes: int = 0, **settings: Any) -> RepCL:
    method = build_method(
        "repcl",
        kind,
        encoder=tiny_encoder(kind),
        settings={**CHEAP, **settings},
        expected_classes=expected_classes,
    )
    assert isinstance(method, RepCL)
    method.observer = Recorder()
    return method


def recorder(method: RepCL) -> Recorder:
    assert isinstance(method.observer, Recorder)
    return method.observer


def two_tasks(kind: InputKind = "sentence") -> tuple[Task, Task]:
    return toy_task(kind, "fruit", "vehicle"), toy_task(kind, "weather", "place")


def learn_both(method: RepCL) -> RepCL:
    for task in two_tasks(method.encoder.readout.kind):
        method.learn(task)
    return method


# ---- the momentum branch ---------------------------------------------------------------------------


@pytest.fixture
def on_momentum_copy(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[nn.Module], None]], None]:
    """Calls a function with every momentum copy that RepCL makes."""

    def install(told: Callable[[nn.Module], None]) -> None:
        def spied(module: nn.Module) -> nn.Module:
            copied = momentum_copy(module)
            told(copied)
            return copied

        monkeypatch.setattr(repcl_module, "momentum_copy", spied)

    return install


OnCopy = Callable[[Callable[[nn.Module], None]], None]


@pytest.mark.parametrize("kind", KINDS)
def test_the_momentum_branch_is_a_real_copy_for_every_kind(kind: InputKind, on_momentum_copy: OnCopy) -> None:
    copies: list[nn.Module] = []
    on_momentum_copy(copies.append)
    method = made(kind)
    method.learn(two_tasks(kind)[0])
    own = {id(parameter) for parameter in method.parameters()}
    copied = [parameter for module in copies for parameter in module.parameters()]
    trained = [*method.encoder.parameters(), *method.contrast.projection.parameters()]
    assert len(copied) == len(trained)
    assert own.isdisjoint(map(id, copied))


def test_the_momentum_branch_gets_no_gradient(on_momentum_copy: OnCopy) -> None:
    copies: list[nn.Module] = []
    on_momentum_copy(copies.append)
    made().learn(two_tasks()[0])
    parameters = [parameter for module in copies for parameter in module.parameters()]
    assert parameters
    assert all(parameter.grad is None and not parameter.requires_grad for parameter in parameters)


def test_the_optimizer_does_not_move_the_momentum_branch(on_momentum_copy: OnCopy) -> None:
    copies: list[tuple[nn.Module, dict[str, Tensor]]] = []
    on_momentum_copy(
        lambda module: copies.append(
            (module, {name: value.clone() for name, value in module.named_parameters()})
        )
    )
    made(momentum=1.0).learn(two_tasks()[0])
    for module, first in copies:
        assert all(torch.equal(now, first[name]) for name, now in module.named_parameters())


def test_the_momentum_branch_follows_the_encoder(on_momentum_copy: OnCopy) -> None:
    copies: list[tuple[nn.Module, list[Tensor]]] = []
    on_momentum_copy(lambda module: copies.append((module, [value.clone() for value in module.parameters()])))
    made(momentum=0.5).learn(two_tasks()[0])
    for module, first in copies:
        assert any(not torch.equal(now, then) for now, then in zip(module.parameters(), first, strict=True))


def test_the_momentum_branch_is_gone_after_the_task(on_momentum_copy: OnCopy) -> None:
    copies: list[weakref.ref[nn.Module]] = []
    on_momentum_copy(lambda module: copies.append(weakref.ref(module)))
    method = made()
    method.learn(two_tasks()[0])
    gc.collect()
    assert copies
    assert [copied() for copied in copies] == [None] * len(copies)


def test_a_task_leaves_no_new_parts_behind() -> None:
    method = made()
    parts, saved, attributes = (
        dict(method.named_modules()).keys(),
        method.state_dict().keys(),
        set(vars(method)),
    )
    method.learn(two_tasks()[0])
    assert dict(method.named_modules()).keys() == parts
    assert method.state_dict().keys() == saved
    assert set(vars(method)) - attributes <= {"more_follow"}


def test_there_is_no_momentum_branch_in_replay(on_momentum_copy: OnCopy) -> None:
    stages: list[list[str]] = []
    method = made()
    on_momentum_copy(lambda module: stages.append(list(recorder(method).stages)))
    learn_both(method)
    second_task = ["initial learning", "memory update"]
    assert {tuple(seen) for seen in stages} == {(), tuple(second_task)}


# ---- contrast --------------------------------------------------------------------------------------


def test_keys_carry_no_gradient_and_anchors_do(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bool, bool]] = []

    def spied(anchors: Tensor, labels: Tensor, keys: Tensor, key_labels: Tensor, **options: Any) -> Tensor:
        seen.append((anchors.requires_grad, keys.requires_grad))
        return supervised_info_nce(anchors, labels, keys, key_labels, **options)

    monkeypatch.setattr(repcl_module, "supervised_info_nce", spied)
    made().learn(two_tasks()[0])
    assert set(seen) == {(True, False)}


def test_keys_are_those_of_the_batch_and_then_of_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    label_lists: list[list[int]] = []

    def spied(anchors: Tensor, labels: Tensor, keys: Tensor, key_labels: Tensor, **options: Any) -> Tensor:
        sizes.append(len(keys))
        label_lists.append(key_labels.tolist())
        assert key_labels[: len(labels)].tolist() == labels.tolist()
        assert options["own_key"].tolist() == list(range(len(labels)))
        return supervised_info_nce(anchors, labels, keys, key_labels, **options)

    monkeypatch.setattr(repcl_module, "supervised_info_nce", spied)
    made(queue_size=6).learn(two_tasks()[0])
    assert sizes == [4 + 6] * 3
    for before, after in pairwise(label_lists):
        assert after[4:] == before[:6]  # the last batch went to the front of the queue


def test_the_queue_holds_no_more_than_the_task_has(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def spied(anchors: Tensor, labels: Tensor, keys: Tensor, key_labels: Tensor, **options: Any) -> Tensor:
        sizes.append(len(keys) - len(anchors))
        return supervised_info_nce(anchors, labels, keys, key_labels, **options)

    monkeypatch.setattr(repcl_module, "supervised_info_nce", spied)
    made(queue_size=512).learn(two_tasks()[0])
    assert set(sizes) == {12}


@pytest.mark.parametrize("contrast", ["supinfonce", "supcon", "infonce"])
def test_every_contrastive_loss_is_positive_and_finite(contrast: str) -> None:
    method = made(contrast=contrast)
    method.learn(two_tasks()[0])
    values = recorder(method).values("con")
    assert len(values) == 3
    assert all(0 < value < 100 for value in values)


def test_the_contrastive_losses_are_different_ones() -> None:
    first_values = set()
    for contrast in ("supinfonce", "supcon", "infonce"):
        method = made(contrast=contrast)
        method.learn(two_tasks()[0])
        first_values.add(round(recorder(method).values("con")[0], 5))
    assert len(first_values) == 3


def test_a_class_of_one_example_keeps_all_terms_finite() -> None:
    many, one = toy_task("sentence", "fruit"), toy_task("sentence", "vehicle", train=1)
    method = made()
    method.learn(Task(("fruit", "vehicle"), many.train + one.train, []))
    assert all(
        torch.isfinite(torch.tensor(value)) for _, terms in recorder(method).terms for value in terms.values()
    )


# ---- generation ------------------------------------------------------------------------------------


def generation(method: RepCL) -> tuple[Callable[[Batch, Tensor], Tensor], TokenHead, Batch]:
    """The generative loss, its head and a batch, outside of any stage."""
    task = two_tasks(method.encoder.readout.kind)[0]
    method.classes = list(task.classes)
    batches: Batches = method.batches(task.train, 6)
    loss, head = method._generation_loss(batches)
    return loss, head, next(iter(batches))


def loss_with(method: RepCL, loss: Callable[[Batch, Tensor], Tensor], batch: Batch, help_: Tensor) -> Tensor:
    method.generator.manual_seed(0)  # the same partners and masks each time
    return loss(batch, help_)


def test_crossed_generation_reads_the_other_text() -> None:
    method = made()
    loss, _, batch = generation(method)
    one, other = (loss_with(method, loss, batch, torch.full((6, 32), value)) for value in (0.0, 5.0))
    assert one.item() != pytest.approx(other.item(), abs=1e-4)


def test_plain_generation_ignores_the_other_text() -> None:
    method = made(generation="mlm")
    loss, _, batch = generation(method)
    one, other = (loss_with(method, loss, batch, torch.full((6, 32), value)) for value in (0.0, 5.0))
    assert one.item() == other.item()


def test_generation_sends_gradients_into_both_passes() -> None:
    method = made()
    loss, head, batch = generation(method)
    representation = method.encoder.represent(batch).detach().requires_grad_()
    loss_with(method, loss, batch, representation).backward()
    assert representation.grad is not None
    assert representation.grad.abs().sum() > 0  # the pass over x
    layer = method.encoder.backbone.encoder.layer[0].output.dense.weight
    assert layer.grad is not None
    assert layer.grad.abs().sum() > 0  # the pass over x'
    assert all(parameter.grad is not None for parameter in head.parameters())


def helped_rows(method: RepCL) -> tuple[Batch, Batch, list[list[int]]]:
    """The batch, the batch of masked texts, and whose representation helped each masked token of a text."""
    loss, head, batch = generation(method)
    masked: list[Batch] = []
    helps: list[Tensor] = []
    method.encoder.register_forward_pre_hook(lambda module, inputs: masked.append(inputs[0]))
    head.register_forward_hook(lambda module, inputs, output: helps.append(inputs[1]))
    numbered = torch.arange(6.0)[:, None].expand(6, method.encoder.representation_size)
    loss_with(method, loss, batch, numbered)
    counts = (masked[0].ids == method.encoder.tokenizer.mask_token_id).sum(dim=1).tolist()
    return batch, masked[0], [part[:, 0].int().tolist() for part in helps[0].split(counts)]


def test_all_masked_tokens_of_a_text_are_helped_by_one_other_text() -> None:
    _, masked, helpers = helped_rows(made(mask_probability=1.0))
    assert all(len(set(rows)) == 1 for rows in helpers)
    assert sorted(rows[0] for rows in helpers) == list(range(len(masked)))


@pytest.mark.parametrize(("share", "texts"), [(1.0, 6), (0.5, 3), (0.01, 1)])
def test_generation_can_be_computed_on_a_share_of_the_batch(share: float, texts: int) -> None:
    _, masked, _ = helped_rows(made(mask_probability=1.0, generation_share=share))
    assert len(masked) == texts


def test_a_text_is_helped_by_another_text_of_its_own_class() -> None:
    batch, masked, helpers = helped_rows(made(mask_probability=1.0))
    rows = [row for row, *_ in helpers]
    assert batch.labels[rows].tolist() == masked.labels.tolist()
    assert (batch.positions[rows] != masked.positions).all()


@pytest.mark.parametrize("kind", KINDS)
def test_full_masking_leaves_only_special_tokens_and_markers(kind: InputKind) -> None:
    method = made(kind, mask_probability=1.0)
    loss, _, batch = generation(method)
    names: set[str] = set()

    def collect(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        for row in inputs[0].ids.tolist():
            names.update(library_tokenizer(method.encoder).convert_ids_to_tokens(row))

    method.encoder.register_forward_pre_hook(collect)
    loss_with(method, loss, batch, torch.zeros(6, method.encoder.representation_size))
    assert names - {"[PAD]"} == {"[CLS]", "[SEP]", "[MASK]", *method.encoder.readout.markers}


@pytest.mark.parametrize("kind", ["xmlm", "mlm"])
def test_a_batch_with_nothing_masked_has_a_term_of_zero(kind: str) -> None:
    method = made(generation=kind, mask_probability=0.0)
    method.learn(two_tasks()[0])
    assert recorder(method).values(kind) == [0.0, 0.0, 0.0]


def test_each_task_has_a_token_head_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[TokenHead] = []

    class Spied(TokenHead):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            heads.append(self)

    monkeypatch.setattr(repcl_module, "TokenHead", Spied)
    learn_both(made())
    assert len(heads) == 2


def test_the_token_head_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[TokenHead] = []

    class Spied(TokenHead):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            heads.append(self)

    monkeypatch.setattr(repcl_module, "TokenHead", Spied)
    made().learn(two_tasks()[0])
    assert heads[0].bias.abs().sum() > 0  # it started at zero


# ---- objectives and stages -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "initial", "replay"),
    [
        ({}, {"ce", "con", "xmlm"}, {"clean", "adversarial 1"}),
        ({"contrast": "none"}, {"ce", "xmlm"}, {"clean", "adversarial 1"}),
        ({"generation": "none"}, {"ce", "con"}, {"clean", "adversarial 1"}),
        ({"generation": "mlm"}, {"ce", "con", "mlm"}, {"clean", "adversarial 1"}),
        ({"adversarial": False}, {"ce", "con", "xmlm"}, {"ce"}),
        ({"contrast": "none", "generation": "none", "adversarial": False}, {"ce"}, {"ce"}),
        ({"adversarial_steps": 3}, {"ce", "con", "xmlm"}, {"clean", "adversarial 1", "adversarial 2"}),
    ],
    ids=["all", "no contrast", "no generation", "mlm", "no attack", "none", "three steps"],
)
def test_each_objective_can_be_switched_off(
    settings: dict[str, Any], initial: set[str], replay: set[str]
) -> None:
    method = learn_both(made(**settings))
    assert recorder(method).names("initial learning") == initial
    assert recorder(method).names("replay") == replay


def test_every_variant_has_settings_that_exist() -> None:
    for name, settings in RepCL.variants.items():
        changed = made(**settings).settings
        assert all(getattr(changed, key) == value for key, value in settings.items()), name


@pytest.mark.parametrize(("weight", "term"), [("contrast_weight", "con"), ("generation_weight", "xmlm")])
def test_a_weight_multiplies_its_term(weight: str, term: str) -> None:
    values = []
    for factor in (0.1, 0.2):
        method = made(**{weight: factor})
        method.learn(two_tasks()[0])
        values.append(recorder(method).values(term)[0])
    assert values[1] == pytest.approx(2 * values[0], rel=1e-4)


def test_replay_is_skipped_for_the_first_task() -> None:
    method = learn_both(made())
    assert recorder(method).stages == [
        "initial learning", "memory update",
        "initial learning", "memory update", "replay",
    ]  # fmt: skip


# ---- head and memory -------------------------------------------------------------------------------


def test_a_growing_head_has_rows_for_seen_classes_only() -> None:
    method = made(expected_classes=7)
    rows = []
    for task in two_tasks():
        method.learn(task)
        rows.append(len(method.head.output.weight))
    assert rows == [2, 4]


def test_a_reserved_head_has_rows_for_all_classes_and_scores_for_seen_ones() -> None:
    method = made(reserved=True, expected_classes=7)
    first, _ = two_tasks()
    method.learn(first)
    assert method.head.output.weight.shape == (7, 32)
    assert method.scores(first.test).shape == (6, 2)


def chosen_by(method: RepCL, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], Task]:
    """Learn one task; the features by which its exemplars were chosen, class by class."""
    from repcl.methods import base

    features: list[Any] = []
    select = base.nearest_to_centers
    monkeypatch.setattr(
        base, "nearest_to_centers", lambda rows, count: features.append(rows) or select(rows, count)
    )
    task = two_tasks(method.encoder.readout.kind)[0]
    method.learn(task)
    return features, task


@pytest.mark.parametrize("kind", ["sentence", "relation"])
def test_exemplars_are_chosen_by_the_output_of_the_hidden_block(
    kind: InputKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = made(kind)
    features, task = chosen_by(method, monkeypatch)
    fruit = [example for example in task.train if example.label == "fruit"]
    expected = method.for_all(fruit, lambda batch: method.head.hidden(method.encoder.represent(batch)))
    assert features[0].shape == (6, 32)
    torch.testing.assert_close(torch.from_numpy(features[0]), expected)


def test_exemplars_of_events_are_chosen_by_the_trigger_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    method = made("event")
    features, task = chosen_by(method, monkeypatch)
    fruit = [example for example in task.train if example.label == "fruit"]
    torch.testing.assert_close(torch.from_numpy(features[0]), method.for_all(fruit, method.encoder.represent))


def test_contrast_may_read_the_hidden_layer_of_the_classifier() -> None:
    method = build_method(
        "repcl", "relation", encoder=tiny_encoder("relation"), settings={"contrast_reads": "hidden"}
    )
    assert isinstance(method, RepCL)
    keys = method._key_head()
    representation = torch.randn(2, 64)
    expected = method.contrast.projection(method.head.features(representation))
    torch.testing.assert_close(keys(representation), expected)
    assert method.contrast.projection[0].in_features == 32  # the hidden layer's, not the representation's 64


def test_another_draw_gives_other_first_weights_and_the_same_draw_the_same() -> None:
    def first_weights(draw: int) -> torch.Tensor:
        settings = {"draw": draw}
        method = build_method("repcl", "sentence", encoder=tiny_encoder(), settings=settings, seed=5)
        assert isinstance(method, RepCL)
        return method.contrast.projection[0].weight.detach()

    assert torch.equal(first_weights(1), first_weights(1))
    assert not torch.equal(first_weights(0), first_weights(1))
