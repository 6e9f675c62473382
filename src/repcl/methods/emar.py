"""EMAR (Han et al., 2020): replay that alternates with a return to prototypes from before the replay."""

from functools import partial
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from repcl.data import Batch, Task
from repcl.memory import class_means
from repcl.methods.prototypical import PrototypeMethod, PrototypeSettings
from repcl.training import LossTerms, Stage


class EMARSettings(PrototypeSettings):
    """Settings of EMAR."""

    initial_epochs: int = Field(2, ge=1, description="epochs on a new task")
    replay_epochs: int = Field(
        2, ge=1, description="rounds of one epoch of activation and one of reconsolidation"
    )


class EMAR(PrototypeMethod):
    """Episodic memory activation and reconsolidation, with BERT as in ACA's repository."""

    Settings: ClassVar[type[EMARSettings]] = EMARSettings
    settings: EMARSettings

    def learn_task(self, task: Task) -> None:
        """Initial learning and exemplars; then rounds of activation and reconsolidation."""
        settings = self.settings
        self.grow_head()
        self.learn_new(task)
        self.remember(task)
        memory = self.memory_batches(settings.batch_size)
        for _ in range(self.replay_epochs):
            # One activation old when they are used: that is what holds the features in place.
            anchors = self.exemplar_prototypes(self.classes)
            self.activate(task)
            self.run(Stage.RECONSOLIDATION, memory, partial(self.reconsolidate, anchors), 1)
        rows = self.head.output.weight.detach()[: len(self.classes)]
        self.prototypes = unit_prototypes(*self.features_in_memory(self.classes), rows)

    def activate(self, task: Task) -> None:
        """Replay memory and new examples, so that exemplars of the new classes occur twice."""
        everything = self.batches([*self.drawn_memory(), *task.train], self.settings.batch_size)
        self.run(Stage.ACTIVATION, everything, self.classify, 1)

    def reconsolidate(self, anchors: Tensor, batch: Batch) -> LossTerms:
        """Classify exemplars by their similarity to fixed prototypes."""
        return {"prototypes": prototype_loss(self.exemplar_features(batch), anchors, batch.labels)}

    def class_scores(self, batch: Batch) -> Tensor:
        """Similarity to the prototype of each seen class; the prediction is that of the cosine."""
        return self.exemplar_features(batch) @ self.prototypes.T


def prototype_loss(features: Tensor, prototypes: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of plain dot products with prototypes, which take no gradient.

    Args:
        features: (batch, size).
        prototypes: (classes, size).
        labels: (batch,) rows of `prototypes`.
    """
    # Dot products are in the hundreds (z is layer-normalized): too coarse for half precision.
    with torch.autocast(features.device.type, enabled=False):
        return cross_entropy(features.float() @ prototypes.detach().float().T, labels)


def unit_prototypes(features: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """Directions of each class's mean unit feature, its classifier row counted as one more feature.

    Args:
        features: (exemplars, size).
        labels: (exemplars,) the class of each exemplar.
        rows: (classes, size) of the classifier.
    """
    members = normalize(torch.cat([features, rows]), dim=1)
    classes = torch.cat([labels, torch.arange(len(rows), device=labels.device)])
    return normalize(class_means(members, classes, len(rows)), dim=1)
