"""`run_stage`: the only optimization loop of the project."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from repcl.model import average_gradients
from repcl.training.observer import Observer
from repcl.training.optimizer import build_optimizer, build_warmup
from repcl.training.settings import StageSettings

LossTerms = Mapping[str, Tensor]
Item = TypeVar("Item", contravariant=True)
Produced = TypeVar("Produced", covariant=True)


class Learner(Protocol):
    """What the loop has to know of a method."""

    observer: Observer

    @property
    def encoder(self) -> nn.Module:
        """The part that learns at the encoder's rate."""

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
    name: str,
    batches: Epochs[Item],
    losses: Callable[[Item], LossTerms | Iterable[LossTerms]],
    settings: StageSettings,
    *,
    also_train: Sequence[nn.Module] = (),
) -> None:
    """Train a learner for some epochs.

    `losses(batch)` returns named, already weighted terms, or yields several groups of them: backward runs
    on each group before the next is asked for, and one optimizer step follows the last.

    Args:
        learner: the method.
        name: of the stage, for progress and timing.
        batches: one epoch each time it is iterated.
        losses: from a batch to loss terms.
        settings: epochs, rates, decay, warm-up and clipping.
        also_train: parts that live for this stage only.
    """
    others = [part for _, part in learner.named_children() if part is not learner.encoder]
    optimizer = build_optimizer(learner.encoder, [*others, *also_train], settings)
    warmup = build_warmup(optimizer, settings.warmup_epochs * len(batches))
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    learner.train()
    learner.observer.stage_begins(name, epochs=settings.epochs, steps_per_epoch=len(batches))
    for _ in range(settings.epochs):
        for batch in batches:
            terms = _backward(losses(batch))
            average_gradients(parameters)
            clip_grad_norm_(parameters, settings.clip_norm)
            optimizer.step()
            warmup.step()
            optimizer.zero_grad()
            learner.observer.step_ends(terms)
    learner.train(False)
    learner.observer.stage_ends(name)


def _backward(produced: LossTerms | Iterable[LossTerms]) -> dict[str, Tensor]:
    """Accumulate gradients group by group; the terms come back detached."""
    groups = [produced] if isinstance(produced, Mapping) else produced
    seen: dict[str, Tensor] = {}
    for terms in groups:
        total = sum(terms.values())
        if isinstance(total, Tensor) and total.requires_grad:
            total.backward()  # type: ignore[no-untyped-call]
        seen.update({name: term.detach() for name, term in terms.items()})
    return seen
