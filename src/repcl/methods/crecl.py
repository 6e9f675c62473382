"""CRECL (Hu et al., 2022): a classifier learns a task, then texts are matched with class prototypes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from repcl.data import Batch, Batches, Task
from repcl.losses import divergence
from repcl.methods.prototypical import PrototypeMethod, PrototypeSettings, class_prototypes
from repcl.methods.search_ranges import Dimension, Range
from repcl.training import LossTerms, Stage, run_stage


class CRECLSettings(PrototypeSettings):
    """Settings of CRECL; the defaults are those of the authors' code for TACRED."""

    initial_batch_size: int = Field(8, ge=1, description="texts per step in plain classification")
    initial_epochs: int = Field(5, ge=1, description="epochs of plain classification")
    consistency_epochs: int = Field(10, ge=1, description="epochs of classification under many dropouts")
    contrast_epochs: int = Field(10, ge=1, description="epochs of prototype contrast on the new task")
    contrast_learning_rate: float = Field(
        4e-5, gt=0, description="learning rate of every part in prototype contrast"
    )
    contrast_rate_decay: float = Field(
        0.9, gt=0, le=1, description="multiplies that learning rate after every `contrast_decay_steps`"
    )
    contrast_decay_steps: int = Field(
        800,
        ge=1,
        description="steps of the authors' batch size; of the paper's data only MAVEN has that many",
    )
    clip_norm: float = Field(1e6, gt=0, description="largest norm of the gradient; the authors do not clip")
    head_dropout: float = Field(0.2, ge=0, lt=1, description="dropout in front of the hidden layer")
    dropout_samples: int = Field(10, ge=1, description="M, dropout samples of each text")
    consistency_batch: int = Field(
        32, ge=1, description="the authors' batch size, which their consistency term sums over"
    )
    projection_size: int = Field(
        384, ge=1, description="size of the vectors that are matched with prototypes"
    )
    temperature: float = Field(0.08, gt=0, description="divides the cosines with the prototypes")

    search: ClassVar[Mapping[str, Dimension]] = {
        **PrototypeSettings.search,
        "contrast_learning_rate": Range(1e-5, 5e-4, is_log=True),
        "temperature": Range(0.02, 0.5, is_log=True),
    }


class CRECL(PrototypeMethod):
    """Classification network and prototypical contrastive network on one encoder; the latter predicts."""

    Settings: ClassVar[type[CRECLSettings]] = CRECLSettings
    settings: CRECLSettings

    def build_parts(self) -> None:
        """Prototypes, and the projection that matches texts with them."""
        super().build_parts()
        size, hidden = self.prototypes.shape[1], self.encoder.hidden_size
        self.projector = nn.Sequential(
            nn.Linear(size, hidden),
            nn.GELU(),
            nn.LayerNorm(hidden),
            nn.Linear(hidden, self.settings.projection_size),
        ).to(self.encoder.device)

    def learn_task(self, task: Task) -> None:
        """Two stages of classification, exemplars, prototype contrast on new data and on the memory."""
        settings = self.settings
        self.grow_head()
        small, full = (
            self.batches(task.train, size) for size in (settings.initial_batch_size, settings.batch_size)
        )
        self.run(Stage.INITIAL_LEARNING, small, self.classify, settings.initial_epochs)
        self.run(Stage.INITIAL_LEARNING, full, self.classify_consistently, settings.consistency_epochs)
        self.remember(task)
        self.prototypes = class_prototypes(self, task, before=self.prototypes)
        self._match(Stage.INITIAL_LEARNING, full, settings.contrast_epochs)
        memory = self.memory_batches(min(settings.batch_size, len(self.classes)))
        self._match(Stage.REPLAY, memory, settings.replay_epochs)
        self.prototypes = class_prototypes(self, task, before=self.prototypes)

    def exemplar_features(self, batch: Batch) -> Tensor:
        """Embeddings e, (batch, hidden): the hidden layer before its activation."""
        embeddings: Tensor = self.head.hidden[:2](self.encoder.represent(batch))
        return embeddings

    def class_scores(self, batch: Batch) -> Tensor:
        """Cosine with each prototype after projection, over the temperature; (batch, seen classes)."""
        texts, prototypes = self.project(self.exemplar_features(batch)), self.project(self.prototypes)
        return texts @ prototypes.T / self.settings.temperature

    def project(self, embeddings: Tensor) -> Tensor:
        """Unit vectors, (rows, projection size)."""
        return normalize(self.projector(embeddings), dim=1)

    def classify_consistently(self, batch: Batch) -> LossTerms:
        """L_ce + L_js over M dropout samples of each representation."""
        settings = self.settings
        samples, rows = settings.dropout_samples, len(batch)
        representations = self.encoder.represent(batch).repeat(samples, 1)
        logits = self.head(representations)
        # The authors' batch size keeps the weight of the sum what it was when batches are smaller or larger.
        weight = settings.consistency_batch / settings.batch_size
        return {
            "ce": cross_entropy(logits, batch.labels.repeat(samples)),
            "js": weight * dropout_consistency(logits.reshape(samples, rows, -1)),
        }

    def _match(self, stage: Stage, texts: Batches, epochs: int) -> None:
        """Contrast each text with the prototypes of all seen classes, which stay where they are."""
        own = self.settings
        settings = replace(
            own.stage(epochs),
            learning_rate=own.contrast_learning_rate,
            head_learning_rate=own.contrast_learning_rate,
            rate_decay=own.contrast_rate_decay,
            decay_steps=own.contrast_decay_steps * own.consistency_batch / own.batch_size,
        )
        run_stage(self, stage, FullBatches(texts), self.match, settings)

    def match(self, batch: Batch) -> LossTerms:
        """Cross-entropy of the similarities to all prototypes."""
        return {"prototypes": cross_entropy(self.class_scores(batch), batch.labels)}


class FullBatches:
    """Batches of exactly the nominal size: an incomplete one is filled with texts drawn at random."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.batches:
            missing = self.batches.batch_size - len(batch)
            yield self._filled(batch, missing) if missing else batch

    def _filled(self, batch: Batch, missing: int) -> Batch:
        texts, generator = len(self.batches.rows), self.batches.generator
        if missing <= texts:
            drawn = torch.randperm(texts, generator=generator)[:missing]
        else:
            drawn = torch.randint(texts, (missing,), generator=generator)
        return self.batches.take([*batch.positions.tolist(), *drawn.tolist()])


def dropout_consistency(logits: Tensor) -> Tensor:
    """Divergence of each dropout sample from the mean of the logits; mean over samples, sum over the batch.

    Args:
        logits: (samples, batch, classes).
    """
    return logits.shape[1] * divergence(logits.mean(dim=0), logits)
