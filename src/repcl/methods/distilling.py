"""What KCN and KDRK share: the model with its virtual class None, the teacher's answers, replay in pairs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from repcl.data import Batch, Batches, Example, Task
from repcl.memory import nearest_to_centers, nearest_to_mean
from repcl.memory.selection import Features
from repcl.methods.base import Method
from repcl.methods.settings import MemorySettings, TrainingSettings
from repcl.model import ClassifierHead
from repcl.training import LossTerms, Stage, run_stage


class DistillingSettings(TrainingSettings, MemorySettings):
    """Settings of methods that learn in one stage, held to the answers of the model before it."""

    feature_size: int = Field(512, ge=1, description="width of the feature map φ")
    head_dropout: float = Field(0.2, ge=0, lt=1, description="dropout inside the classifier")
    virtual_none: bool = Field(True, description="train with an extra class None whose score is always 0")
    temperature: float = Field(2.0, gt=0, description="T, softens the teacher's answers")
    replay_weights: Literal["by_size", "balanced"] = Field(
        "by_size",
        description="when paired, exemplars count as much as the whole memory, or as much as the new batch",
    )
    selection: Literal["k-means", "nearest_to_mean", "herding"] = Field(
        "k-means", description="how exemplars are chosen"
    )


def herding(features: Features, count: int) -> list[int]:
    """Rows chosen one by one so that the mean of the chosen stays nearest to the mean of all."""
    mean, total = features.mean(axis=0), np.zeros(features.shape[1])
    chosen: list[int] = []
    while len(chosen) < min(count, len(features)):
        distances = np.linalg.norm(mean - (total + features) / (len(chosen) + 1), axis=1)
        distances[chosen] = np.inf
        chosen.append(int(distances.argmin()))
        total = total + features[chosen[-1]]
    return chosen


SELECTIONS: dict[str, Callable[[Features, int], list[int]]] = {
    "k-means": nearest_to_centers,
    "nearest_to_mean": nearest_to_mean,
    "herding": herding,
}


@dataclass(frozen=True)
class Teacher:
    """What the model said of a list of examples before it learned the task.

    The teacher is in evaluation mode and its inputs do not change, so to ask it once is exact.
    """

    features: Tensor  # (examples, size)
    slots: Tensor  # (examples, old slots)

    def of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Features and scores of the batch."""
        return self.features[batch.positions], self.slots[batch.positions]


class Pairs:
    """Every batch of new data with a batch of exemplars, which are shuffled again when all were used."""

    def __init__(self, new: Batches, memory: Batches) -> None:
        self.new = new
        self.exemplars: Iterator[Batch | None] = (
            chain.from_iterable(repeat(memory)) if len(memory) else repeat(None)
        )

    def __len__(self) -> int:
        return len(self.new)

    def __iter__(self) -> Iterator[tuple[Batch, Batch | None]]:
        return ((batch, next(self.exemplars)) for batch in self.new)


def by_classes(distilled: Tensor, hard: Tensor, *, old: int, new: int) -> Tensor:
    """Distillation counts by the classes known before, cross-entropy by the classes taught now."""
    return (old * distilled + new * hard) / (old + new)


class FeatureMapHead(ClassifierHead):
    """The classifier of KCN and KDRK: a feature map of two ReLU layers, growing output."""

    def __init__(self, size: int, hidden: int, *, dropout: float) -> None:
        super().__init__(hidden, hidden, has_hidden_layer=False, dropout=0.0, is_uniform=True)
        self.hidden = nn.Sequential(
            nn.Linear(size, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, hidden), nn.ReLU()
        )


class DistillingMethod(Method):
    """A feature map, a classifier without bias, and the answers of the model before the task."""

    settings: DistillingSettings

    def build_parts(self) -> None:
        """The classifier."""
        self.head = self.build_head().to(self.encoder.device)

    def build_head(self) -> ClassifierHead:
        """The feature map φ and the classifier."""
        size, settings = self.encoder.representation_size, self.settings
        return FeatureMapHead(size, settings.feature_size, dropout=settings.head_dropout)

    def slots(self, features: Tensor) -> Tensor:
        """Scores of all classes from features, (batch, slots), behind the constant 0 of the virtual None."""
        scores: Tensor = self.head.output(features)
        if not self.settings.virtual_none:
            return scores
        return torch.cat([scores.new_zeros(len(scores), 1), scores], dim=1)

    def hard_loss(self, slots: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy with the labels; no example is labeled None."""
        return cross_entropy(slots, labels + int(self.settings.virtual_none))

    def classify(self, batch: Batch) -> LossTerms:
        """Plain cross-entropy over all slots, which is all that the first task needs."""
        return {"ce": self.hard_loss(self.slots(self.exemplar_features(batch)), batch.labels)}

    @torch.no_grad()
    def teacher(self, examples: Sequence[Example]) -> Teacher:
        """What the model says now, before it learns."""
        size = self.head.output.weight.shape[1]
        features = self.for_all(examples, self.exemplar_features).reshape(len(examples), size)
        features = features.to(self.encoder.device)
        return Teacher(features, self.slots(features))

    def learn_first(self, task: Task) -> None:
        """The first task is plain: KCN and KDRK are the same after it."""
        settings = self.settings
        self.grow_head()
        batches = self.batches(task.train, settings.batch_size)
        run_stage(
            self, Stage.INITIAL_LEARNING, batches, self.classify, settings.stage(settings.initial_epochs)
        )

    def learn_in_pairs(
        self, task: Task, on_new: Callable[[Batch], Tensor], on_memory: Callable[[Batch], Tensor]
    ) -> None:
        """One stage in which every batch of new data is followed by one of exemplars."""
        settings = self.settings
        new = self.batches(task.train, settings.batch_size)
        memory = self.batches(list(self.memory), settings.batch_size)

        def losses(pair: tuple[Batch, Batch | None]) -> Iterator[LossTerms]:
            batch, exemplars = pair
            share = self._share_of_new(len(batch)) if exemplars is not None else 1.0
            yield {"new": share * on_new(batch)}
            if exemplars is not None:
                yield {"replay": (1.0 - share) * on_memory(exemplars)}

        stage = settings.stage(settings.initial_epochs)
        run_stage(self, Stage.INITIAL_LEARNING, Pairs(new, memory), losses, stage)

    def choose(self, features: Features, count: int) -> list[int]:
        """Which examples of a class to keep, as the settings ask for."""
        return SELECTIONS[self.settings.selection](features, count)

    def _share_of_new(self, batch_size: int) -> float:
        if self.settings.replay_weights == "balanced":
            return 0.5
        return batch_size / (batch_size + len(self.memory))
