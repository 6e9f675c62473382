"""What EMAR and RP-CRE, the hosts of ACA, share: features, their class prototypes, and how parts learn."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from repcl.data import Batch, Batches, Task
from repcl.memory import class_means
from repcl.methods.base import Method
from repcl.methods.settings import ClassifierSettings, MemorySettings
from repcl.model import ClassifierHead, Encoder, average_gradients
from repcl.training import LossTerms, Observer, run_stage

Losses = Callable[[Batch], LossTerms | Iterable[LossTerms]]


class PrototypeSettings(ClassifierSettings, MemorySettings):
    """Settings of methods that compare features with prototypes."""

    head_learning_rate: float = Field(1e-3, gt=0, description="of the linear classifier")
    weight_decay: float = Field(0.0, ge=0, description="of AdamW; 0 makes it plain Adam")
    hidden_layer: bool = Field(
        True, description="features come from a hidden layer, for events too; if not, from the encoder"
    )


class PrototypeMethod(Method):
    """A linear classifier on features, and prototypes: means of the features of each class's exemplars."""

    settings: PrototypeSettings
    extra_memory = "class prototypes"
    prototypes: Tensor
    """Of the seen classes, in their order, as the last task left them; (classes, size)."""

    def __init__(
        self, encoder: Encoder, settings: PrototypeSettings, *, seed: int = 0, expected_classes: int = 0
    ) -> None:
        super().__init__(encoder, settings, seed=seed, expected_classes=expected_classes)
        self.register_buffer("prototypes", self.head.output.weight.detach().clone())

    def new_head(self, settings: ClassifierSettings) -> ClassifierHead:
        """A classifier whose hidden layer depends on the settings, not on the input kind."""
        return ClassifierHead(
            self.encoder.representation_size,
            self.encoder.hidden_size,
            has_hidden_layer=self.settings.hidden_layer,
            dropout=settings.head_dropout,
        ).to(self.encoder.device)

    def learn_new(self, task: Task, *, clip_apart: bool = False) -> None:
        """Initial learning: cross-entropy on the new examples alone."""
        new = self.batches(task.train, self.settings.batch_size)
        epochs = self.settings.initial_epochs
        self.run("initial learning", new, self.classify, epochs, clip_apart=clip_apart)

    def exemplar_prototypes(self, names: Sequence[str]) -> Tensor:
        """Mean feature of the exemplars of each class, (classes, size), a constant."""
        return class_means(*self.features_in_memory(names), len(names))

    def features_in_memory(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Features of all exemplars of these classes in evaluation mode, and which class each is of."""
        exemplars = [example for name in names for example in self.memory.of(name)]
        places = [place for place, name in enumerate(names) for _ in self.memory.of(name)]
        features = self.for_all(exemplars, self.exemplar_features).to(self.encoder.device)
        labels = torch.tensor(places, dtype=torch.long, device=features.device)
        return features.reshape(len(exemplars), self.prototypes.shape[1]), labels

    def run(
        self,
        name: str,
        batches: Batches | list[Batch],
        losses: Losses,
        epochs: int,
        *,
        also_train: Sequence[nn.Module] = (),
        clip_apart: bool = False,
    ) -> None:
        """A stage in which only the linear classifier, with `also_train`, has the head's learning rate.

        Args:
            name: of the stage.
            batches: one epoch each time it is iterated.
            losses: from a batch to loss terms.
            epochs: passes over the batches.
            also_train: parts that belong to the classifier for this stage only.
            clip_apart: clip the gradients of encoder and classifier each by itself, not together.
        """
        parts, stage = _Parts(self), self.settings.stage(epochs)
        if clip_apart:
            groups = [parts.encoder, nn.ModuleList([parts.output, *also_train])]
            losses = _clipped(losses, groups, stage.clip_norm)
            stage = replace(stage, clip_norm=math.inf)
        run_stage(parts, name, batches, losses, stage, also_train=also_train)


class _Parts:
    """A method as the loop sees it: the head's hidden layer learns as slowly as the encoder."""

    def __init__(self, method: Method) -> None:
        self.observer: Observer = method.observer
        self.encoder: nn.Module = nn.ModuleList([method.encoder, method.head.hidden])
        self.output = method.head.output
        self.method = method

    def named_children(self) -> Iterator[tuple[str, nn.Module]]:
        """The linear classifier, which learns at the head's rate."""
        yield "output", self.output

    def train(self, mode: bool = True) -> nn.Module:
        """Switch dropout on or off."""
        return self.method.train(mode)


def _clipped(losses: Losses, groups: Sequence[nn.Module], norm: float) -> Losses:
    """The same losses; once their gradients are there, those of each group are clipped."""

    def produce(batch: Batch) -> Iterator[LossTerms]:
        terms = losses(batch)
        yield from [terms] if isinstance(terms, Mapping) else terms
        for group in groups:
            average_gradients(group.parameters())  # the norm of what one process holds would mean nothing
            clip_grad_norm_(group.parameters(), norm)

    return produce
