"""`run_stage`: the only optimization loop of the project, with its parameter groups and its optimizer."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim.lr_scheduler import LambdaLR

from repcl.allocator import KeptMemory
from repcl.model import Processes, follow_decay
from repcl.training.observer import Observer, Stage
from repcl.training.tiny_numbers import tiny_numbers_are_zero

LossTerms = Mapping[str, Tensor]
Item = TypeVar("Item", contravariant=True)
Produced = TypeVar("Produced", covariant=True)


@dataclass(frozen=True)
class StageSettings:
    """How long a stage is trained, and how fast.

    Attributes:
        epochs: passes over the batches.
        learning_rate: of the encoder.
        head_learning_rate: of every other part.
        weight_decay: of AdamW; biases and the encoder's LayerNorms are not decayed.
        warmup_epochs: the rates rise linearly from 0 during these epochs, then stay constant.
        clip_norm: largest norm of the gradient.
        epsilon: AdamW's, which keeps its steps finite where gradients vanish.
        rate_decay: all rates are multiplied by it after every `decay_steps` steps.
        decay_steps: steps from one such multiplication to the next; none by default.
    """

    epochs: int
    learning_rate: float
    head_learning_rate: float
    weight_decay: float = 0.01
    warmup_epochs: float = 0.0
    clip_norm: float = 10.0
    epsilon: float = 1e-8
    rate_decay: float = 1.0
    decay_steps: float = math.inf


@dataclass(frozen=True)
class ParameterGroup:
    """Parts that learn at one rate.

    Attributes:
        parts: the modules; their frozen parameters are left out.
        learning_rate: of all of them.
        is_clipped_alone: whether the gradient of these parts is clipped by itself. All other groups are
            clipped together.
        decays_only_matrices: whether vectors (biases and the LayerNorm weights of a transformer) are not
            decayed. Otherwise everything but biases is.
        decays_everything: whether biases are decayed, too.
    """

    parts: tuple[nn.Module, ...]
    learning_rate: float
    is_clipped_alone: bool = False
    decays_only_matrices: bool = False
    decays_everything: bool = False

    def parameters(self) -> list[nn.Parameter]:
        """What learns, in the order of the parts."""
        return [
            parameter for part in self.parts for parameter in part.parameters() if parameter.requires_grad
        ]

    def decayed(self, wanted: bool) -> list[nn.Parameter]:
        """The parameters with weight decay, or those without."""
        return [
            parameter
            for part in self.parts
            for name, parameter in part.named_parameters()
            if parameter.requires_grad and self._is_decayed(name, parameter) == wanted
        ]

    def _is_decayed(self, name: str, parameter: nn.Parameter) -> bool:
        if self.decays_everything:
            return True
        return parameter.dim() > 1 if self.decays_only_matrices else not name.endswith("bias")


class Learner(Protocol):
    """What the loop has to know about a method."""

    observer: Observer

    @property
    def encoder(self) -> nn.Module:
        """The part that learns at the encoder's rate."""

    @property
    def processes(self) -> Processes:
        """The processes that learn together."""

    def occurring_rows(self) -> AbstractContextManager[None]:
        """Within it, only word embeddings that can occur take part in training."""

    def named_children(self) -> Iterator[tuple[str, nn.Module]]:
        """All trainable parts."""

    def train(self, mode: bool = True) -> nn.Module:
        """Switch dropout on or off."""


class Epochs(Protocol[Produced]):
    """Anything that gives one epoch of batches each time it is iterated."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Produced]: ...


def run_stage(
    learner: Learner,
    stage: Stage,
    batches: Epochs[Item],
    losses: Callable[[Item], LossTerms | Iterable[LossTerms]],
    settings: StageSettings,
    *,
    groups: Sequence[ParameterGroup] | None = None,
) -> None:
    """Train a learner for some epochs.

    `losses(batch)` returns named, already weighted terms, or yields several sets of them: backward runs
    on each set before the next is asked for, and one optimizer step follows the last.

    Args:
        learner: the method.
        stage: which stage this is, for progress and timing.
        batches: one epoch each time it is iterated.
        losses: from a batch to loss terms.
        settings: epochs, rates, decay, warm-up and clipping.
        groups: what learns, at which rate, and what is clipped by itself; `default_groups` unless given.
    """
    kept = KeptMemory()
    learner.train()
    learner.observer.stage_begins(stage, epochs=settings.epochs, steps_per_epoch=len(batches))
    with learner.occurring_rows(), tiny_numbers_are_zero():
        chosen = default_groups(learner, settings) if groups is None else groups
        optimizer = build_optimizer(chosen, settings)
        follow_decay(learner.encoder, optimizer)
        schedule = build_schedule(optimizer, settings, settings.warmup_epochs * len(batches))
        clipped_together = _clipped_together(optimizer, chosen)
        parameters = [parameter for parameters in clipped_together for parameter in parameters]
        for _ in range(settings.epochs):
            for batch in batches:
                terms = _backward(losses(batch))
                # before clipping: the norm of the part that one process holds would mean nothing
                learner.processes.average_gradients(parameters)
                for together in clipped_together:
                    _clip(together, settings.clip_norm)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                kept.step_ends()
                learner.observer.step_ends(terms)
    learner.train(False)
    learner.observer.stage_ends(stage)


def default_groups(
    learner: Learner, settings: StageSettings, *, also: Sequence[nn.Module] = ()
) -> list[ParameterGroup]:
    """The encoder at its rate, and every other part at the head's rate.

    Args:
        learner: the method.
        settings: the two rates.
        also: parts that live for one stage only; they learn with the other parts.
    """
    others = [part for _, part in learner.named_children() if part is not learner.encoder]
    return [
        # as in the authors' code, LayerNorm weights of the encoder are not decayed and those of heads are
        ParameterGroup((learner.encoder,), settings.learning_rate, decays_only_matrices=True),
        ParameterGroup((*others, *also), settings.head_learning_rate),
    ]


def build_optimizer(groups: Sequence[ParameterGroup], settings: StageSettings) -> torch.optim.AdamW:
    """AdamW over the groups, each with and without decay, fused: six times cheaper on a CPU."""
    wanted = [
        {
            "params": group.decayed(is_decayed),
            "lr": group.learning_rate,
            "weight_decay": settings.weight_decay if is_decayed else 0.0,
        }
        for is_decayed in (True, False)
        for group in groups
    ]
    return torch.optim.AdamW([group for group in wanted if group["params"]], eps=settings.epsilon, fused=True)


def build_schedule(
    optimizer: torch.optim.Optimizer, settings: StageSettings, warmup_steps: float = 0.0
) -> LambdaLR:
    """Rates rise from 0 at step 0 to their full value at `warmup_steps`, then stay or decay by steps."""

    def factor(step: int) -> float:
        risen = step / max(1.0, warmup_steps) if step < warmup_steps else 1.0
        return risen * math.pow(settings.rate_decay, step // settings.decay_steps)

    return LambdaLR(optimizer, factor)


def _clipped_together(
    optimizer: torch.optim.Optimizer, groups: Sequence[ParameterGroup]
) -> list[list[nn.Parameter]]:
    """The parameters of each group that is clipped alone, and those of all other groups as one list."""
    alone = [group.parameters() for group in groups if group.is_clipped_alone]
    is_alone = {id(parameter) for parameters in alone for parameter in parameters}
    others = [
        parameter
        for group in optimizer.param_groups
        for parameter in group["params"]
        if id(parameter) not in is_alone
    ]
    return [*alone, others] if others else alone


def _clip(parameters: Sequence[nn.Parameter], largest: float) -> None:
    """Scale gradients down to the largest norm; those below are not written again."""
    norm = get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
    if not norm <= largest:
        clip_grads_with_norm_(parameters, largest, norm)


def _backward(produced: LossTerms | Iterable[LossTerms]) -> dict[str, Tensor]:
    """Accumulate gradients set by set; the terms come back detached."""
    sets = [produced] if isinstance(produced, Mapping) else produced
    seen: dict[str, Tensor] = {}
    for terms in sets:
        total = sum(terms.values())
        if isinstance(total, Tensor) and total.requires_grad:
            total.backward()  # type: ignore[no-untyped-call]
        seen.update({name: term.detach() for name, term in terms.items()})
    return seen
