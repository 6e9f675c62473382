"""FreeLB: norms, values, costs, and the proof that sharing the clean pass changes no gradient."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from repcl.data import Batch, Example
from repcl.data.batches import collate
from repcl.model import ALONE, ClassifierHead, Encoder
from repcl.training import LossTerms, Observer, Stage, StageSettings, adversarial_losses, ascend, run_stage
from tests.conftest import tiny_encoder

STEP, RADIUS = 0.1, 0.2


def attack(
    loss_at: Callable[[Tensor], Tensor],
    *,
    steps: int,
    shape: tuple[int, int, int] = (1, 1, 2),
    step_size: float = STEP,
    radius: float = RADIUS,
    clean_weight: float = 0.0,
) -> tuple[float, list[Tensor]]:
    """The whole objective and the perturbations, with backward run between passes as the loop does."""
    perturbations: list[Tensor] = []

    def spied(perturbation: Tensor) -> Tensor:
        perturbations.append(perturbation.detach().clone())
        return loss_at(perturbation)

    total = 0.0
    for terms in adversarial_losses(
        spied,
        torch.zeros(shape),
        steps=steps,
        step_size=step_size,
        radius=radius,
        clean_weight=clean_weight,
    ):
        loss = torch.stack(list(terms.values())).sum()
        if loss.requires_grad:
            loss.backward()
        total += loss.item()
    return total, perturbations


SLOPE = torch.tensor([3.0, 4.0])  # norm 5


def linear(perturbation: Tensor) -> Tensor:
    return 7.0 + (SLOPE * perturbation).sum()


def logistic(perturbation: Tensor) -> Tensor:
    return torch.log1p(torch.exp(-(SLOPE * perturbation).sum()))


def norms(perturbations: list[Tensor]) -> list[float]:
    return [perturbation.norm().item() for perturbation in perturbations]


# ---- worked numbers --------------------------------------------------------------------------------


def test_perturbations_grow_by_a_step_until_the_radius_stops_them() -> None:
    _, perturbations = attack(linear, steps=4)
    assert norms(perturbations) == pytest.approx([0.0, 0.1, 0.2, 0.2])


@pytest.mark.parametrize(("steps", "gain"), [(1, 0.0), (2, 0.05), (3, 0.10), (4, 0.125)])
def test_a_linear_loss_rises_by_its_slope_times_the_mean_norm(steps: int, gain: float) -> None:
    total, _ = attack(linear, steps=steps)
    assert total - 7.0 == pytest.approx(5 * gain, abs=1e-5)


def test_the_first_step_goes_along_the_gradient() -> None:
    _, perturbations = attack(linear, steps=2)
    assert perturbations[1].flatten().tolist() == pytest.approx([0.06, 0.08])


def test_a_logistic_loss_has_the_worked_value() -> None:
    total, perturbations = attack(logistic, steps=2)
    assert logistic(perturbations[0]).item() == pytest.approx(math.log(2))
    assert logistic(perturbations[1]).item() == pytest.approx(0.974077)
    assert total == pytest.approx(0.833612)


def test_the_clean_loss_is_added_once_more() -> None:
    total, _ = attack(logistic, steps=2, clean_weight=1.0)
    assert total == pytest.approx(math.log(2) + 0.833612)


def test_terms_are_weighted_as_one_and_a_half_to_one_half() -> None:
    terms: dict[str, float] = {}
    for group in adversarial_losses(
        lambda perturbation: 8.0 + 0 * perturbation.sum(),
        torch.zeros(1, 1, 2),
        steps=2,
        step_size=0.1,
        radius=0.2,
    ):
        terms.update({name: term.item() for name, term in group.items()})
    assert terms == {"clean": 12.0, "adversarial 1": 4.0}


def test_a_step_of_zero_keeps_all_losses_equal() -> None:
    _, perturbations = attack(logistic, steps=4, step_size=0.0)
    assert [logistic(perturbation).item() for perturbation in perturbations] == [
        pytest.approx(math.log(2))
    ] * 4


@pytest.mark.parametrize("radius", [1e-3, 0.05, 0.15])
def test_no_perturbation_leaves_the_ball(radius: float) -> None:
    _, perturbations = attack(logistic, steps=5, radius=radius)
    assert max(norms(perturbations)) <= radius + 1e-6


def test_a_radius_of_zero_means_no_limit() -> None:
    _, perturbations = attack(linear, steps=5, radius=0.0)
    assert norms(perturbations) == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])


def test_the_loss_of_a_linear_model_never_falls_from_step_to_step() -> None:
    _, perturbations = attack(logistic, steps=5)
    losses = [logistic(perturbation).item() for perturbation in perturbations]
    assert losses == sorted(losses)


def test_every_sentence_has_a_norm_of_its_own() -> None:
    slopes = torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 300.0], [400.0, 0.0]]])
    moved = ascend(torch.zeros(2, 2, 2), slopes, step_size=0.1, radius=0.2)
    assert moved.flatten(1).norm(dim=1).tolist() == pytest.approx([0.1, 0.1])
    assert moved[1].flatten().tolist() == pytest.approx([0.0, 0.06, 0.08, 0.0])


def test_a_sentence_without_gradient_stays_where_it_is() -> None:
    moved = ascend(torch.zeros(1, 2, 2), torch.zeros(1, 2, 2), step_size=0.1, radius=0.2)
    assert moved.tolist() == [[[0.0, 0.0], [0.0, 0.0]]]


def test_one_step_is_plain_training() -> None:
    weight = torch.tensor([1.0, -2.0], requires_grad=True)
    attack(lambda perturbation: ((weight + perturbation) ** 2).sum(), steps=1)
    assert weight.grad is not None
    assert weight.grad.tolist() == [2.0, -4.0]


@pytest.mark.parametrize("steps", [1, 3])
def test_the_last_perturbation_leads_nowhere_and_needs_no_gradient(steps: int) -> None:
    needed: list[bool] = []

    def spied(perturbation: Tensor) -> Tensor:
        needed.append(perturbation.requires_grad)
        return linear(perturbation)

    attack(spied, steps=steps)
    assert needed == [True] * (steps - 1) + [False]


# ---- with an encoder -------------------------------------------------------------------------------


def encoder_and_batch() -> tuple[Encoder, Batch]:
    encoder = tiny_encoder(dropout=0.0)
    examples = [
        Example("rain", "weather"),
        Example("the sun is warm in paris", "weather"),
        Example("anna won", "person"),
    ]
    labels, positions = [0, 0, 1], [0, 1, 2]
    pad_id = int(encoder.tokenizer.pad_token_id)
    rows = encoder.tokenize(examples)
    return encoder, collate(rows, labels, positions, pad_id=pad_id, device=torch.device("cpu"))


class Classifier(nn.Module):
    """An encoder and a head with weights large enough to make gradients visible."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.batch = encoder_and_batch()
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            self.head = ClassifierHead(32, 32, has_hidden_layer=True, dropout=0.0)
            self.head.output.weight = nn.Parameter(torch.randn(2, 32))
        self.observer = Observer()
        self.processes = ALONE

    def occurring_rows(self) -> AbstractContextManager[None]:
        return nullcontext()

    def loss_at(self, perturbation: Tensor | None = None) -> Tensor:
        return cross_entropy(self.head(self.encoder.represent(self.batch, perturbation)), self.batch.labels)

    def zeros(self) -> Tensor:
        return torch.zeros(*self.batch.ids.shape, 32, dtype=self.head.output.weight.dtype)

    def gradients(self) -> dict[str, Tensor]:
        return {
            name: parameter.grad.clone()
            for name, parameter in self.named_parameters()
            if parameter.grad is not None
        }


def test_padding_is_never_perturbed() -> None:
    model = Classifier()
    _, perturbations = attack(model.loss_at, steps=3, shape=tuple(model.zeros().shape))
    for perturbation in perturbations:
        assert (perturbation[model.batch.mask == 0] == 0).all()


def test_special_tokens_are_perturbed_too() -> None:
    model = Classifier()
    _, perturbations = attack(model.loss_at, steps=2, shape=tuple(model.zeros().shape))
    assert (perturbations[1].norm(dim=2)[model.batch.mask == 1] > 0).all()


def test_every_real_sentence_is_moved_by_one_step() -> None:
    model = Classifier()
    _, perturbations = attack(model.loss_at, steps=2, shape=tuple(model.zeros().shape))
    assert perturbations[1].flatten(1).norm(dim=1).tolist() == pytest.approx([0.1, 0.1, 0.1])


def direct_freelb(model: Classifier, steps: int) -> None:
    """L_ce + L_adv as the papers write it: K + 1 passes, the perturbation's gradient taken separately."""
    model.loss_at().backward()
    perturbation = model.zeros()
    for _ in range(steps):
        perturbation = perturbation.detach().requires_grad_()
        loss = model.loss_at(perturbation)
        (slope,) = torch.autograd.grad(loss, perturbation, retain_graph=True)
        (loss / steps).backward()
        moved = []
        for sentence, uphill in zip(perturbation.detach(), slope, strict=True):
            there = sentence + STEP * uphill / uphill.norm()
            moved.append(there * RADIUS / there.norm() if there.norm() > RADIUS else there)
        perturbation = torch.stack(moved)


@pytest.mark.parametrize("steps", [2, 3])
def test_sharing_the_clean_pass_gives_the_gradient_of_the_plain_form(steps: int) -> None:
    shared, plain = Classifier().double(), Classifier().double()
    for terms in adversarial_losses(
        shared.loss_at, shared.zeros(), steps=steps, step_size=STEP, radius=RADIUS
    ):
        torch.stack(list(terms.values())).sum().backward()
    direct_freelb(plain, steps)
    ours, theirs = shared.gradients(), plain.gradients()
    assert ours.keys() == theirs.keys()
    assert max(gradient.abs().max().item() for gradient in theirs.values()) > 0.1
    for name, gradient in theirs.items():
        torch.testing.assert_close(ours[name], gradient, atol=1e-6, rtol=0)


def test_the_attack_itself_changes_the_gradient() -> None:
    attacked, clean = Classifier(), Classifier()
    attack(attacked.loss_at, steps=2, shape=tuple(attacked.zeros().shape), clean_weight=1.0)
    (2 * clean.loss_at()).backward()
    ours, plain = attacked.gradients(), clean.gradients()
    assert max((ours[name] - plain[name]).abs().max().item() for name in ours) > 1e-3


class Counting(Observer):
    def __init__(self) -> None:
        self.steps = 0

    def step_ends(self, terms: LossTerms) -> None:
        self.steps += 1


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_an_attack_costs_k_passes_and_one_optimizer_step(steps: int) -> None:
    model = Classifier()
    model.observer = counting = Counting()
    passes: list[object] = []
    model.encoder.register_forward_hook(lambda *_: passes.append(None))

    def losses(batch: Batch) -> Iterator[LossTerms]:
        return adversarial_losses(model.loss_at, model.zeros(), steps=steps, step_size=STEP, radius=RADIUS)

    settings = StageSettings(epochs=1, learning_rate=1e-3, head_learning_rate=1e-3)
    run_stage(model, Stage.REPLAY, [model.batch], losses, settings)
    assert (len(passes), counting.steps) == (steps, 1)
