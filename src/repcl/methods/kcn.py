"""KCN (Cao et al., 2020): learn new data and prototypical exemplars together under two-level distillation."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import Tensor

from repcl.data import Batch, Task
from repcl.losses import feature_distillation, soft_cross_entropy
from repcl.methods.distilling import DistillingMethod, DistillingSettings, Teacher, by_classes
from repcl.methods.search_ranges import Dimension, Range
from repcl.model import ClassifierHead, GrowingLinear
from repcl.training import LossTerms, Stage, run_stage


class KCNSettings(DistillingSettings):
    """Settings of KCN."""

    head: Literal["feature_map", "linear", "hidden"] = Field(
        "feature_map",
        description="classifier: KDRK's, one linear layer as in KCN's own code, or FEA's with a hidden layer",
    )
    combination: Literal["joint", "paired"] = Field(
        "joint",
        description="joint: memory mixed with new data; paired: a batch of memory with each new batch",
    )
    prediction_weight: float = Field(0.8, ge=0, description="weight of prediction distillation, if joint")
    feature_weight: float = Field(0.7, ge=0, description="weight of feature distillation, if joint")
    selection: Literal["k-means", "nearest_to_mean", "herding"] = Field(
        "nearest_to_mean", description="how exemplars are chosen; KCN's are nearest to the class mean"
    )

    search: ClassVar[Mapping[str, Dimension]] = {
        **DistillingSettings.search,
        "temperature": Range(1.0, 5.0),
        "prediction_weight": Range(0.1, 2.0, is_log=True, unless={"combination": "paired"}),
        "feature_weight": Range(0.1, 2.0, is_log=True, unless={"combination": "paired"}),
    }


class KCN(DistillingMethod):
    """Joint training in which the model before it supervises features and predictions."""

    Settings: ClassVar[type[KCNSettings]] = KCNSettings
    settings: KCNSettings
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "linear": {"head": "linear", "virtual_none": False},
        "paired": {"combination": "paired", "replay_weights": "by_size", "selection": "k-means"},
        "kmeans": {"selection": "k-means"},
    }

    def build_head(self) -> ClassifierHead:
        """The classifier that the settings ask for."""
        settings, size = self.settings, self.encoder.representation_size
        if settings.head == "feature_map":
            return super().build_head()
        is_hidden = settings.head == "hidden"
        hidden = self.encoder.hidden_size
        head = ClassifierHead(size, hidden, has_hidden_layer=is_hidden, dropout=settings.head_dropout)
        if not is_hidden:
            head.output = GrowingLinear(size, has_bias=True)
        return head

    def learn_task(self, task: Task) -> None:
        """The first task is plain; later ones are learned together with the memory under distillation."""
        if self.tasks_learned == 0:
            self.learn_first(task)
        elif self.settings.combination == "joint":
            self._learn_jointly(task)
        else:
            self._learn_paired(task)
        self.remember(task)

    def _learn_jointly(self, task: Task) -> None:
        """L = L_ce + 0.8 L_pd + 0.7 L_fd on memory and new data alike."""
        settings = self.settings
        examples = [*self.memory, *task.train]
        teacher = self.teacher(examples)
        self.grow_head()

        def losses(batch: Batch) -> LossTerms:
            hard, prediction, feature = self.three_losses(batch, teacher)
            return {
                "ce": hard,
                "pd": settings.prediction_weight * prediction,
                "fd": settings.feature_weight * feature,
            }

        batches = self.batches(examples, settings.batch_size)
        run_stage(self, Stage.INITIAL_LEARNING, batches, losses, settings.stage(settings.initial_epochs))

    def _learn_paired(self, task: Task) -> None:
        """As KDRK's authors rebuilt it: new data and memory give (K (L_pd + L_fd) + N L_ce) / (K + N)."""
        of_new, of_memory = self.teacher(task.train), self.teacher(list(self.memory))
        self.grow_head()

        def loss(batch: Batch, teacher: Teacher) -> Tensor:
            hard, prediction, feature = self.three_losses(batch, teacher)
            old, new = teacher.slots.shape[1], len(task.classes)
            return by_classes(prediction + feature, hard, old=old, new=new)

        self.learn_in_pairs(task, lambda batch: loss(batch, of_new), lambda batch: loss(batch, of_memory))

    def three_losses(self, batch: Batch, teacher: Teacher) -> tuple[Tensor, Tensor, Tensor]:
        """Cross-entropy, prediction distillation over the old slots, feature distillation."""
        features = self.exemplar_features(batch)
        slots = self.slots(features)
        old_features, old_slots = teacher.of(batch)
        softness = self.settings.temperature
        prediction = soft_cross_entropy(
            slots[:, : old_slots.shape[1]], old_slots, temperature=softness, target_temperature=softness
        )
        return self.hard_loss(slots, batch.labels), prediction, feature_distillation(features, old_features)
