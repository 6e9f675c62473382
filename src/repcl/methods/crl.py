"""CRL (Zhao et al., 2022): contrast with a bank of embeddings, then replay that keeps class similarities."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from repcl.data import Batch, Example, Task
from repcl.losses import divergence
from repcl.memory import class_means
from repcl.methods.base import Method
from repcl.methods.prototypical import class_prototypes
from repcl.methods.search_ranges import Dimension, Range
from repcl.methods.settings import ReplaySettings, TrainingSettings
from repcl.model import Merge, mean_row
from repcl.training import LossTerms, Stage, run_stage

FLOOR = 1e-5
"""Added to each exponential, as in the authors' code; it ends the pull on positives that are far away."""


class CRLSettings(TrainingSettings, ReplaySettings):
    """Settings of CRL; the defaults are those of the authors' code."""

    batch_size: int = Field(16, ge=1, description="texts per optimization step")
    learning_rate: float = Field(5e-6, gt=0, description="learning rate of the encoder")
    head_learning_rate: float = Field(5e-6, gt=0, description="learning rate of every other part")
    weight_decay: float = Field(0.0, ge=0, description="weight decay of AdamW; 0 makes it plain Adam")
    projection_size: int = Field(64, ge=1, description="size of the embeddings that are contrasted")
    temperature: float = Field(0.1, gt=0, description="τ of both contrastive losses")
    bank_sample: int = Field(
        500, ge=1, description="embeddings of the bank that each batch of new data is compared with"
    )
    distillation_weight: float = Field(1.0, ge=0, description="weight of memory knowledge distillation")
    distillation_sharpness: float = Field(10.0, ge=0, description="multiplies similarities of classes")

    search: ClassVar[Mapping[str, Dimension]] = {
        **TrainingSettings.search,
        "head_learning_rate": Range(5e-6, 1e-3, is_log=True),
        "temperature": Range(0.02, 0.5, is_log=True),
        "distillation_weight": Range(0.0, 2.0),
    }


class CRL(Method):
    """Consistent representation learning: no classifier, the nearest class mean predicts."""

    Settings: ClassVar[type[CRLSettings]] = CRLSettings
    settings: CRLSettings
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {"no-kd": {"distillation_weight": 0.0}}
    class_rows: ClassVar[Mapping[str, Merge]] = {"prototypes": mean_row}
    prototypes: Tensor
    """Of the seen classes, in their order, as the last task left them; (classes, hidden)."""

    def build_parts(self) -> None:
        """An embedding, a projection for the losses, and prototypes of no class yet."""
        hidden, device = self.encoder.hidden_size, self.encoder.device
        self.embedding = nn.Linear(self.encoder.representation_size, hidden).to(device)
        self.projection = nn.Sequential(
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, self.settings.projection_size)
        ).to(device)
        self.register_buffer("prototypes", torch.empty(0, hidden, device=device))

    def learn_task(self, task: Task) -> None:
        """Initial learning; from the second task on consistent replay; then exemplars and prototypes."""
        earlier = {name: self.memory.of(name) for name in task.classes}
        self._learn_new(task)
        if self.tasks_learned > 0:
            self.remember(task)
            self._replay()
            # The first choice was provisional: the encoder has moved, so exemplars are chosen once more.
            for name, exemplars in earlier.items():
                self.memory.keep(name, exemplars)
        self.remember(task)
        self.prototypes = class_prototypes(self, task, before=self.prototypes)

    def exemplar_features(self, batch: Batch) -> Tensor:
        """Embeddings h, (batch, hidden): what exemplars, prototypes and predictions come from."""
        embeddings: Tensor = self.embedding(self.encoder.represent(batch))
        return embeddings

    def contrasted(self, batch: Batch) -> Tensor:
        """Unit vectors z, (batch, projection size): what the losses compare."""
        return normalize(self.projection(self.exemplar_features(batch)), dim=1)

    def class_scores(self, batch: Batch) -> Tensor:
        """Minus the squared distance to the prototype of each seen class."""
        return -squared_distances(self.exemplar_features(batch), self.prototypes)

    def _bank(self, examples: Sequence[Example]) -> Tensor:
        """One embedding of each example, in evaluation mode."""
        return self.for_all(examples, self.contrasted).to(self.encoder.device)

    def _learn_new(self, task: Task) -> None:
        """Contrast new data with a sample of the bank, which remembers each text's latest embedding."""
        settings = self.settings
        batches = self.batches(task.train, settings.batch_size)
        labels = torch.tensor(batches.labels, device=self.encoder.device)
        bank = self._bank(task.train)

        def losses(batch: Batch) -> Iterator[LossTerms]:
            embeddings = self.contrasted(batch)
            drawn = torch.randperm(len(bank), generator=self.generator)[: settings.bank_sample].to(
                bank.device
            )
            loss = bank_contrast(
                embeddings, batch.labels, bank[drawn], labels[drawn], temperature=settings.temperature
            )
            yield {"con": loss}
            bank[batch.positions] = embeddings.detach()

        run_stage(self, Stage.INITIAL_LEARNING, batches, losses, settings.stage(settings.initial_epochs))

    def _replay(self) -> None:
        """Contrastive replay, while old classes keep the similarities that their prototypes had."""
        settings, old_classes = self.settings, len(self.prototypes)
        memory = list(self.memory)
        batches = self.memory_batches(settings.batch_size)
        labels = torch.tensor(batches.labels, device=self.encoder.device)
        bank = self._bank(memory)
        teacher = class_similarities(self.prototypes)

        def losses(batch: Batch) -> Iterator[LossTerms]:
            embeddings, is_old = self.contrasted(batch), batch.labels < old_classes
            students = similarity_to_classes(embeddings[is_old], bank, labels, old_classes)
            sharpness = settings.distillation_sharpness
            kept = divergence(sharpness * students, sharpness * teacher[batch.labels[is_old]])
            loss = bank_contrast(embeddings, batch.labels, bank, labels, temperature=settings.temperature)
            yield {"con": loss, "kd": settings.distillation_weight * kept}
            bank[batch.positions] = embeddings.detach()

        run_stage(self, Stage.REPLAY, batches, losses, settings.stage(settings.replay_epochs))


def bank_contrast(
    anchors: Tensor, labels: Tensor, bank: Tensor, bank_labels: Tensor, *, temperature: float
) -> Tensor:
    """Contrast of unit anchors with all rows of a bank, an anchor's own row included.

    Anchors without a positive do not count.

    Args:
        anchors: (batch, dim), unit length.
        labels: (batch,).
        bank: (rows, dim), unit length, a constant.
        bank_labels: (rows,).
        temperature: divides the similarities.
    """
    logits = anchors @ bank.T / temperature
    exponentials = (logits - logits.detach().amax(dim=1, keepdim=True)).exp() + FLOOR
    losses = exponentials.sum(dim=1, keepdim=True).log() - exponentials.log()
    is_positive = labels[:, None] == bank_labels
    positives = is_positive.sum(dim=1)
    per_anchor = losses.masked_fill(~is_positive, 0.0).sum(dim=1) / positives.clamp(min=1)
    return per_anchor.sum() / (positives > 0).sum().clamp(min=1)


def class_similarities(prototypes: Tensor) -> Tensor:
    """Cosines of all prototypes with each other, (classes, classes)."""
    directions = normalize(prototypes, dim=1)
    return directions @ directions.T


def similarity_to_classes(embeddings: Tensor, bank: Tensor, bank_labels: Tensor, classes: int) -> Tensor:
    """Cosines of unit embeddings with the mean direction of each of the first classes, (batch, classes)."""
    is_old = bank_labels < classes
    directions = normalize(class_means(bank[is_old], bank_labels[is_old], classes), dim=1)
    return embeddings @ directions.T


def squared_distances(embeddings: Tensor, prototypes: Tensor) -> Tensor:
    """Squared Euclidean distances, (batch, classes)."""
    return torch.cdist(embeddings, prototypes, compute_mode="donot_use_mm_for_euclid_dist").square()
