"""What methods with class prototypes share: features, prototypes, and which parts learn how fast."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from repcl.data import Batch, Batches, Task
from repcl.memory import class_means
from repcl.methods.base import Method
from repcl.methods.settings import ClassifierSettings, ReplaySettings
from repcl.model import ClassifierHead, Merge, mean_row
from repcl.training import LossTerms, ParameterGroup, Stage, run_stage

Losses = Callable[[Batch], LossTerms | Iterable[LossTerms]]


class PrototypeSettings(ClassifierSettings, ReplaySettings):
    """Settings of methods that compare features with prototypes."""

    head_learning_rate: float = Field(1e-3, gt=0, description="learning rate of the linear classifier")
    weight_decay: float = Field(0.0, ge=0, description="weight decay of AdamW; 0 makes it plain Adam")
    hidden_layer: bool = Field(
        True, description="take features from a hidden layer, for events, too; if not, from the encoder"
    )


class PrototypeMethod(Method):
    """A linear classifier on features, and prototypes: means of the features of each class's exemplars."""

    settings: PrototypeSettings
    clips_apart: ClassVar[bool] = False
    """Whether the gradients of encoder and classifier are clipped each by itself, not together."""
    class_rows: ClassVar[Mapping[str, Merge]] = {"prototypes": mean_row}
    prototypes: Tensor
    """Of the seen classes, in their order, as the last task left them; (classes, size)."""

    def build_parts(self) -> None:
        """Prototypes, of no class yet."""
        self.register_buffer("prototypes", self.head.output.weight.detach().clone())

    def new_head(self, settings: ClassifierSettings) -> ClassifierHead:
        """A classifier whose hidden layer depends on the settings, not on the input kind.

        It starts as PyTorch's linear layers do, in the code of each of these methods.
        """
        return ClassifierHead(
            self.encoder.representation_size,
            self.encoder.hidden_size,
            has_hidden_layer=self.settings.hidden_layer,
            dropout=settings.head_dropout,
            is_uniform=True,
        ).to(self.encoder.device)

    @property
    def initial_epochs(self) -> int:
        """Epochs on a new task."""
        return self.settings.initial_epochs

    @property
    def replay_epochs(self) -> int:
        """Epochs, or rounds, on the memory."""
        return self.settings.replay_epochs

    def learn_new(self, task: Task) -> None:
        """Initial learning: cross-entropy on the new examples alone."""
        new = self.batches(task.train, self.settings.batch_size)
        self.run(Stage.INITIAL_LEARNING, new, self.classify, self.initial_epochs)

    def exemplar_prototypes(self, names: Sequence[str]) -> Tensor:
        """Mean feature of the exemplars of each class, (classes, size), a constant."""
        return class_means(*self.features_in_memory(names), len(names))

    def features_in_memory(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Features of all exemplars of these classes in evaluation mode, and which class each is of."""
        exemplars = [example for name in names for example in self.memory.of(name)]
        indices = [index for index, name in enumerate(names) for _ in self.memory.of(name)]
        features = self.for_all(exemplars, self.exemplar_features).to(self.encoder.device)
        labels = torch.tensor(indices, dtype=torch.long, device=features.device)
        return features.reshape(len(exemplars), self.prototypes.shape[1]), labels

    def run(
        self,
        stage: Stage,
        batches: Batches | list[Batch],
        losses: Losses,
        epochs: int,
        *,
        also_train: Sequence[nn.Module] = (),
        also_groups: Sequence[ParameterGroup] = (),
    ) -> None:
        """A stage in which only the linear classifier, with `also_train`, has the head's learning rate.

        Args:
            stage: which one.
            batches: one epoch each time it is iterated.
            losses: from a batch to loss terms.
            epochs: passes over the batches.
            also_train: parts that belong to the classifier for this stage only.
            also_groups: parts that learn at a rate of their own.
        """
        settings = self.settings.stage(epochs)
        encoder = ParameterGroup(
            (self.encoder, self.head.hidden),
            settings.learning_rate,
            is_clipped_alone=self.clips_apart,
            decays_only_matrices=True,
        )
        classifier = ParameterGroup(
            (self.head.output, *also_train), settings.head_learning_rate, is_clipped_alone=self.clips_apart
        )
        run_stage(self, stage, batches, losses, settings, groups=[encoder, classifier, *also_groups])


def class_prototypes(method: Method, task: Task, *, before: Tensor) -> Tensor:
    """Mean feature of the exemplars of every seen class, (classes, size), in evaluation mode.

    A class without exemplars (a memory smaller than the number of classes) has the mean of its new examples
    instead, and one without those the prototype it had.

    Args:
        method: whose exemplars, features and classes they are.
        task: the task being learned.
        before: (older classes, size) the prototypes until now.
    """
    examples = [*method.memory, *(new for new in task.train if not method.memory.of(new.label))]
    index = {name: at for at, name in enumerate(method.classes)}
    labels = torch.tensor([index[example.label] for example in examples], device=before.device)
    features = method.for_all(examples, method.exemplar_features).to(before.device)
    prototypes = class_means(features, labels, len(method.classes))
    is_lost = torch.bincount(labels, minlength=len(method.classes))[: len(before)] == 0
    prototypes[: len(before)][is_lost] = before[is_lost]
    return prototypes
