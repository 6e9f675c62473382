"""The only optimization loop, and its optimizer."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from repcl.model import ALONE, ClassifierHead
from repcl.training import (
    LossTerms,
    Observer,
    Observers,
    ParameterGroup,
    Stage,
    StageSettings,
    default_groups,
    run_stage,
)
from repcl.training import stage as stage_module
from repcl.training.stage import build_optimizer, build_schedule
from tests.conftest import tiny_encoder

SETTINGS = StageSettings(epochs=1, learning_rate=0.1, head_learning_rate=0.5)


class Recorder(Observer):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.terms: list[Mapping[str, Tensor]] = []

    def stage_begins(self, stage: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        self.heard.append(("begins", stage, epochs, steps_per_epoch))

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        self.heard.append("step")
        self.terms.append(terms)

    def stage_ends(self, stage: Stage) -> None:
        self.heard.append(("ends", stage))


class ToyLearner(nn.Module):
    """An encoder and a head of one number each."""

    processes = ALONE

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(1, 1, bias=False)
        self.head = nn.Linear(1, 1, bias=False)
        self.observer = Recorder()
        with torch.no_grad():
            self.encoder.weight.fill_(1.0)
            self.head.weight.fill_(1.0)

    def occurring_rows(self) -> AbstractContextManager[None]:
        return nullcontext()

    def loss(self, batch: float) -> LossTerms:
        return {"loss": batch * (self.encoder.weight + self.head.weight).sum()}


class Optimizers:
    """Keeps every optimizer that a stage builds, with the size of its state when it was new."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.built: list[torch.optim.AdamW] = []
        self.sizes_when_new: list[int] = []
        monkeypatch.setattr(stage_module, "build_optimizer", self.build)

    def build(self, *arguments: object) -> torch.optim.AdamW:
        optimizer = build_optimizer(*arguments)  # type: ignore[arg-type]
        self.built.append(optimizer)
        self.sizes_when_new.append(len(optimizer.state))
        return optimizer


def plain_descent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps as long as the gradient, so that a test can read the gradient off the weights."""
    monkeypatch.setattr(
        stage_module,
        "build_optimizer",
        lambda groups, settings: torch.optim.SGD(
            [parameter for group in groups for parameter in group.parameters()], lr=1.0
        ),
    )


# ---- the optimizer ---------------------------------------------------------------------------------


def test_the_rate_warms_up_from_zero_over_two_epochs() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    warmup = build_schedule(optimizer, SETTINGS, 2 * 100)
    rates = []
    for _ in range(300):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        warmup.step()
    assert [rates[step] for step in (0, 100, 199, 200, 299)] == [0.0, 0.5, 0.995, 1.0, 1.0]


def test_without_warm_up_the_first_step_has_the_full_rate() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    build_schedule(optimizer, SETTINGS)
    assert optimizer.param_groups[0]["lr"] == 1.0


def test_the_rate_decays_by_a_factor_after_every_so_many_steps() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = build_schedule(optimizer, replace(SETTINGS, rate_decay=0.9, decay_steps=2.5), 2)
    rates = []
    for _ in range(9):
        rates.append(round(optimizer.param_groups[0]["lr"], 6))
        optimizer.step()
        schedule.step()
    assert rates == [0.0, 0.5, 1.0, 0.9, 0.9, 0.81, 0.81, 0.81, 0.729]


def test_a_stage_hands_its_epsilon_to_the_optimizer() -> None:
    learner = ToyLearner()
    settings = replace(SETTINGS, epsilon=1e-3)
    optimizer = build_optimizer(default_groups(learner, settings), settings)
    assert {group["eps"] for group in optimizer.param_groups} == {1e-3}


def test_a_stage_decays_its_rates_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_descent(monkeypatch)
    learner = ToyLearner()
    start = learner.head.weight.item()
    settings = StageSettings(
        epochs=3, learning_rate=1.0, head_learning_rate=1.0, rate_decay=0.5, decay_steps=1
    )
    run_stage(learner, Stage.REPLAY, [1.0], learner.loss, settings)
    assert start - learner.head.weight.item() == pytest.approx(1 + 0.5 + 0.25)


def test_a_stage_counts_its_warm_up_in_its_own_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_descent(monkeypatch)
    learner = ToyLearner()
    weights = []

    def losses(batch: float) -> LossTerms:
        weights.append(learner.head.weight.item())
        return learner.loss(batch)

    settings = StageSettings(epochs=2, learning_rate=1.0, head_learning_rate=1.0, warmup_epochs=1.0)
    run_stage(learner, Stage.REPLAY, [1.0, 1.0], losses, settings)
    steps = [
        before - after
        for before, after in zip(weights, [*weights[1:], learner.head.weight.item()], strict=True)
    ]
    assert steps == [0.0, 0.5, 1.0, 1.0]


def two_groups(
    encoder: nn.Module, head: nn.Module, settings: StageSettings = SETTINGS
) -> list[ParameterGroup]:
    """The default groups of a learner with these two parts."""
    learner = ToyLearner()
    learner.encoder, learner.head = encoder, head  # type: ignore[assignment]
    return default_groups(learner, settings)


def group_of(optimizer: torch.optim.Optimizer) -> dict[int, tuple[float, float]]:
    """(rate, decay) by parameter."""
    return {
        id(parameter): (group["lr"], group["weight_decay"])
        for group in optimizer.param_groups
        for parameter in group["params"]
    }


def test_parameters_fall_into_four_groups_by_rate_and_decay() -> None:
    encoder = tiny_encoder("relation")
    head = ClassifierHead(64, 32, has_hidden_layer=True, dropout=0.0)
    head.output.grow_to(3)
    settings = StageSettings(epochs=1, learning_rate=1e-5, head_learning_rate=1e-3, weight_decay=0.01)
    optimizer = build_optimizer(two_groups(encoder, head, settings), settings)
    groups = group_of(optimizer)
    assert sorted(set(groups.values())) == [(1e-5, 0.0), (1e-5, 0.01), (1e-3, 0.0), (1e-3, 0.01)]
    for name, parameter in encoder.named_parameters():
        is_decayed = "bias" not in name and "LayerNorm.weight" not in name
        assert groups[id(parameter)] == (1e-5, 0.01 if is_decayed else 0.0), name
    for name, parameter in head.named_parameters():
        assert groups[id(parameter)] == (1e-3, 0.0 if name.endswith("bias") else 0.01), name


def test_a_group_may_decay_everything_biases_and_layer_norms_included() -> None:
    encoder = tiny_encoder("sentence")
    group = ParameterGroup((encoder,), 1e-5, decays_everything=True)
    assert len(group.decayed(True)) == len(list(encoder.parameters()))
    assert group.decayed(False) == []


def test_the_layer_norm_of_a_head_is_decayed() -> None:
    head = ClassifierHead(4, 4, has_hidden_layer=True, dropout=0.0)
    groups = group_of(build_optimizer(two_groups(nn.Linear(1, 1), head), SETTINGS))
    norm = head.hidden[3]
    assert groups[id(norm.weight)] == (0.5, 0.01)


def test_every_parameter_is_in_one_group_only() -> None:
    encoder = tiny_encoder()
    head = ClassifierHead(32, 32, has_hidden_layer=True, dropout=0.0)
    optimizer = build_optimizer(two_groups(encoder, head), SETTINGS)
    held = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    assert sorted(held) == sorted(map(id, [*encoder.parameters(), *head.parameters()]))


def test_frozen_parameters_are_left_out() -> None:
    frozen = nn.Linear(2, 2).requires_grad_(False)
    optimizer = build_optimizer(two_groups(nn.Linear(1, 1), frozen), SETTINGS)
    assert not group_of(optimizer).keys() & set(map(id, frozen.parameters()))


def test_an_encoder_that_is_frozen_altogether_is_no_trouble() -> None:
    optimizer = build_optimizer(two_groups(nn.Linear(1, 1).requires_grad_(False), nn.Linear(1, 1)), SETTINGS)
    assert {group["lr"] for group in optimizer.param_groups} == {0.5}


def test_each_stage_has_a_fresh_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizers = Optimizers(monkeypatch)
    learner = ToyLearner()
    for stage in (Stage.INITIAL_LEARNING, Stage.REPLAY):
        run_stage(learner, stage, [1.0, 1.0], learner.loss, SETTINGS)
    first, second = optimizers.built
    assert first is not second
    assert optimizers.sizes_when_new == [0, 0]
    assert {int(state["step"]) for state in second.state.values()} == {2}


# ---- the loop --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "expected"), [(100.0, 2.0), (1.0, 2**0.5)])
def test_gradients_are_clipped_to_their_global_norm(
    scale: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain_descent(monkeypatch)
    learner = ToyLearner()
    settings = StageSettings(epochs=1, learning_rate=1.0, head_learning_rate=1.0, clip_norm=2.0)
    run_stage(learner, Stage.REPLAY, [scale], learner.loss, settings)
    moved = torch.tensor([1 - learner.encoder.weight.item(), 1 - learner.head.weight.item()])
    assert moved.norm().item() == pytest.approx(expected, rel=1e-4)


def test_gradients_do_not_pile_up_from_step_to_step(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_descent(monkeypatch)
    learner = ToyLearner()
    run_stage(learner, Stage.REPLAY, [1.0, 1.0, 1.0], learner.loss, SETTINGS)
    assert learner.head.weight.item() == pytest.approx(1 - 3)


def test_the_terms_of_a_batch_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_descent(monkeypatch)
    learner = ToyLearner()

    def losses(batch: float) -> LossTerms:
        return {"one": learner.head.weight.sum(), "two": 3 * learner.head.weight.sum()}

    run_stage(learner, Stage.REPLAY, [1.0], losses, SETTINGS)
    assert learner.head.weight.item() == pytest.approx(1 - 4)


def test_backward_runs_on_each_group_before_the_next_is_asked_for() -> None:
    learner = ToyLearner()
    gradients_when_asked = []

    def losses(batch: float) -> Iterator[LossTerms]:
        for factor in (1.0, 2.0, 4.0):
            gradient = learner.head.weight.grad
            gradients_when_asked.append(0.0 if gradient is None else gradient.item())
            yield {f"times {factor}": factor * learner.head.weight.sum()}

    run_stage(learner, Stage.REPLAY, [1.0], losses, SETTINGS)
    assert gradients_when_asked == [0.0, 1.0, 3.0]


def test_groups_of_a_batch_make_one_step_with_all_their_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_descent(monkeypatch)
    learner = ToyLearner()

    def losses(batch: float) -> Iterator[LossTerms]:
        yield {"first": 1.0 * learner.head.weight.sum()}
        yield {"second": 2.0 * learner.head.weight.sum()}

    run_stage(learner, Stage.REPLAY, [1.0], losses, SETTINGS)
    assert learner.head.weight.item() == pytest.approx(1 - 3)
    assert learner.observer.heard.count("step") == 1
    assert list(learner.observer.terms[0]) == ["first", "second"]


def test_parts_that_live_for_one_stage_are_trained() -> None:
    learner, extra = ToyLearner(), nn.Linear(1, 1)
    before = extra.weight.item()
    groups = default_groups(learner, SETTINGS, also=[extra])
    run_stage(
        learner, Stage.REPLAY, [1.0], lambda batch: {"loss": extra.weight.sum()}, SETTINGS, groups=groups
    )
    assert before - extra.weight.item() == pytest.approx(
        0.5, abs=0.01
    )  # one step of AdamW at the heads' rate


def test_encoder_and_head_learn_at_their_own_rates() -> None:
    learner = ToyLearner()
    settings = StageSettings(epochs=1, learning_rate=0.1, head_learning_rate=0.5, weight_decay=0.0)
    run_stage(learner, Stage.REPLAY, [1.0], learner.loss, settings)
    assert learner.encoder.weight.item() == pytest.approx(1 - 0.1)
    assert learner.head.weight.item() == pytest.approx(1 - 0.5)


def test_the_observer_hears_of_every_step() -> None:
    learner = ToyLearner()
    settings = StageSettings(epochs=2, learning_rate=0.1, head_learning_rate=0.1)
    run_stage(learner, Stage.INITIAL_LEARNING, [1.0, 1.0, 1.0], learner.loss, settings)
    assert learner.observer.heard == [
        ("begins", "initial learning", 2, 3),
        *["step"] * 6,
        ("ends", "initial learning"),
    ]


def tiny() -> float:
    return (torch.tensor(2.0**-126) * 0.5).item()


def test_kept_memory_is_looked_at_after_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = ToyLearner()
    heard = learner.observer.heard

    class Kept:
        def step_ends(self) -> None:
            heard.append("looked at")

    monkeypatch.setattr(stage_module, "KeptMemory", Kept)
    settings = StageSettings(epochs=1, learning_rate=0.1, head_learning_rate=0.1)
    run_stage(learner, Stage.REPLAY, [1.0, 1.0], learner.loss, settings)
    assert heard[1:-1] == ["looked at", "step"] * 2


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="this processor cannot take them for zero")
def test_numbers_too_small_for_a_normal_float_are_zero_during_a_stage_only() -> None:
    learner, during = ToyLearner(), []

    def losses(batch: float) -> LossTerms:
        during.append(tiny())
        return learner.loss(batch)

    run_stage(learner, Stage.REPLAY, [1.0], losses, SETTINGS)
    assert (during, tiny()) == ([0.0], 2.0**-127)


def test_the_observer_gets_values_without_their_graphs() -> None:
    learner = ToyLearner()
    run_stage(learner, Stage.REPLAY, [3.0], learner.loss, SETTINGS)
    (terms,) = learner.observer.terms
    assert {name: term.item() for name, term in terms.items()} == {"loss": 6.0}
    assert not terms["loss"].requires_grad


def test_dropout_is_on_during_a_stage_and_off_after_it() -> None:
    learner = ToyLearner().eval()
    during = []

    def losses(batch: float) -> LossTerms:
        during.append((learner.training, learner.encoder.training, learner.head.training))
        return learner.loss(batch)

    run_stage(learner, Stage.REPLAY, [1.0], losses, SETTINGS)
    assert during == [(True, True, True)]
    assert (learner.training, learner.encoder.training, learner.head.training) == (False, False, False)


def test_no_gradients_are_left_behind() -> None:
    learner = ToyLearner()
    run_stage(learner, Stage.REPLAY, [1.0], learner.loss, SETTINGS)
    assert all(parameter.grad is None for parameter in learner.parameters())


def test_a_stage_without_batches_changes_nothing() -> None:
    learner = ToyLearner()
    run_stage(learner, Stage.REPLAY, [], learner.loss, SETTINGS)
    assert (learner.encoder.weight.item(), learner.head.weight.item()) == (1.0, 1.0)


def test_a_term_that_cannot_be_differentiated_is_reported_and_does_no_harm() -> None:
    learner = ToyLearner()
    run_stage(learner, Stage.REPLAY, [1.0], lambda batch: {"constant": torch.tensor(2.0)}, SETTINGS)
    assert learner.observer.terms[0]["constant"].item() == 2.0
    assert learner.head.weight.item() == 1.0


def test_a_stage_without_steps_of_its_own_is_told_to_the_observer() -> None:
    recorder = Recorder()
    with recorder.stage(Stage.MEMORY_UPDATE):
        recorder.heard.append("inside")
    assert recorder.heard == [
        ("begins", "memory update", 1, 1), "inside", ("ends", "memory update"),
    ]  # fmt: skip


# ---- parameter groups ------------------------------------------------------------------------------


def apart(learner: ToyLearner, *, rates: tuple[float, float] = (1.0, 1.0)) -> list[ParameterGroup]:
    """Encoder and head, each clipped by itself."""
    return [
        ParameterGroup((part,), rate, is_clipped_alone=True)
        for part, rate in zip((learner.encoder, learner.head), rates, strict=True)
    ]


def gradients(learner: ToyLearner) -> tuple[float, float]:
    """How far one step of plain descent has moved encoder and head."""
    return 1 - learner.encoder.weight.item(), 1 - learner.head.weight.item()


def uneven(learner: ToyLearner) -> LossTerms:
    """A loss whose gradient is 3 at the encoder and 4 at the head."""
    return {"loss": 3 * learner.encoder.weight.sum() + 4 * learner.head.weight.sum()}


def test_a_group_that_is_clipped_alone_has_a_norm_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_descent(monkeypatch)
    learner = ToyLearner()
    settings = StageSettings(epochs=1, learning_rate=1.0, head_learning_rate=1.0, clip_norm=2.0)
    run_stage(learner, Stage.REPLAY, [1.0], lambda batch: uneven(learner), settings, groups=apart(learner))
    assert gradients(learner) == pytest.approx((2.0, 2.0), rel=1e-4)


def test_groups_that_are_not_clipped_alone_share_one_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_descent(monkeypatch)
    learner = ToyLearner()
    settings = StageSettings(epochs=1, learning_rate=1.0, head_learning_rate=1.0, clip_norm=2.5)
    run_stage(learner, Stage.REPLAY, [1.0], lambda batch: uneven(learner), settings)
    assert gradients(learner) == pytest.approx((1.5, 2.0), rel=1e-4)  # (3, 4) has norm 5


def test_one_group_clipped_alone_leaves_the_norm_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_descent(monkeypatch)
    learner, extra = ToyLearner(), nn.Linear(1, 1, bias=False)
    before = extra.weight.item()
    groups = [*default_groups(learner, SETTINGS), ParameterGroup((extra,), 1.0, is_clipped_alone=True)]
    settings = StageSettings(epochs=1, learning_rate=1.0, head_learning_rate=1.0, clip_norm=5.0)

    def losses(batch: float) -> LossTerms:
        return {**uneven(learner), "extra": 100 * extra.weight.sum()}

    run_stage(learner, Stage.REPLAY, [1.0], losses, settings, groups=groups)
    assert gradients(learner) == pytest.approx((3.0, 4.0), rel=1e-4)
    assert before - extra.weight.item() == pytest.approx(5.0, rel=1e-4)


def test_each_group_learns_at_its_own_rate() -> None:
    learner = ToyLearner()
    settings = StageSettings(epochs=1, learning_rate=9.0, head_learning_rate=9.0, weight_decay=0.0)
    groups = apart(learner, rates=(0.25, 0.75))
    run_stage(learner, Stage.REPLAY, [1.0], learner.loss, settings, groups=groups)
    assert gradients(learner) == pytest.approx((0.25, 0.75))


def test_what_is_in_no_group_does_not_learn() -> None:
    learner = ToyLearner()
    groups = [ParameterGroup((learner.head,), 0.5)]
    run_stage(learner, Stage.REPLAY, [1.0], learner.loss, SETTINGS, groups=groups)
    assert learner.encoder.weight.item() == 1.0
    assert learner.head.weight.item() < 1.0


@pytest.mark.parametrize(("only_matrices", "decay"), [(True, 0.0), (False, 0.01)])
def test_a_group_says_whether_its_layer_norms_are_decayed(only_matrices: bool, decay: float) -> None:
    norm = nn.LayerNorm(4)
    group = ParameterGroup((norm,), 0.5, decays_only_matrices=only_matrices)
    groups = group_of(build_optimizer([group], SETTINGS))
    assert groups[id(norm.weight)] == (0.5, decay)
    assert groups[id(norm.bias)] == (0.5, 0.0)


# ---- observers -------------------------------------------------------------------------------------


def test_several_observers_hear_everything_in_their_order() -> None:
    learner, together = ToyLearner(), Recorder()

    class Second(Recorder):
        def __init__(self) -> None:
            super().__init__()
            self.heard = together.heard

    learner.observer = Observers([together, Second()])  # type: ignore[assignment]
    settings = StageSettings(epochs=2, learning_rate=0.1, head_learning_rate=0.1)
    run_stage(learner, Stage.REPLAY, [1.0, 1.0, 1.0], learner.loss, settings)
    twice = [("begins", "replay", 2, 3), *["step"] * 6, ("ends", "replay")]
    assert together.heard == [heard for heard in twice for _ in range(2)]


def test_several_observers_hear_the_losses_of_a_step() -> None:
    one, two = Recorder(), Recorder()
    terms = {"ce": torch.tensor(2.0)}
    Observers([one, two]).step_ends(terms)
    assert (one.terms, two.terms) == ([terms], [terms])


def test_several_observers_hear_of_a_stage_without_steps_of_its_own() -> None:
    recorder = Recorder()
    with Observers([recorder]).stage(Stage.MEMORY_UPDATE):
        pass
    assert recorder.heard == [("begins", "memory update", 1, 1), ("ends", "memory update")]


def test_a_stage_is_written_as_its_name() -> None:
    assert f"{Stage.INITIAL_LEARNING}" == str(Stage.INITIAL_LEARNING) == "initial learning"


def test_a_fraction_of_a_warm_up_step_lasts_one_step() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    warmup = build_schedule(optimizer, SETTINGS, 0.5)
    assert optimizer.param_groups[0]["lr"] == 0.0
    optimizer.step()
    warmup.step()
    assert optimizer.param_groups[0]["lr"] == 1.0


def test_a_warm_up_of_one_and_a_half_steps_is_risen_to_two_thirds_after_one() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    warmup = build_schedule(optimizer, SETTINGS, 1.5)
    optimizer.step()
    warmup.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(1 / 1.5)
