"""FEA (Wang et al., 2022): learn the new task alone, then tune on a balanced memory."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import nn
from torch.nn.functional import cross_entropy

from repcl.data import Batch, Task
from repcl.losses import info_nce
from repcl.methods.base import Method
from repcl.methods.retention import RetentionSettings, retention
from repcl.methods.search_ranges import Dimension, Range
from repcl.methods.settings import ClassifierSettings, ReplaySettings
from repcl.model.heads import plain_linear
from repcl.training import LossTerms, Stage, default_groups, run_stage


class FEASettings(ClassifierSettings, ReplaySettings, RetentionSettings):
    """Settings of FEA."""

    infomax_weight: float = Field(
        0.0, ge=0, description="weight of SimCSE's loss on two dropout views of each new text; 0: none"
    )
    infomax_temperature: float = Field(0.05, gt=0, description="τ of SimCSE's loss")

    search: ClassVar[Mapping[str, Dimension]] = {
        **ClassifierSettings.search,
        "head_dropout": Range(0.0, 0.5),
    }


class FEA(Method):
    """Fast adaption on new data, balanced tuning on memory: the two-stage backbone of RepCL."""

    Settings: ClassVar[type[FEASettings]] = FEASettings
    settings: FEASettings
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "infomax": {"infomax_weight": 0.05},
        "retain": {"retain": 0.1},
    }

    def learn_task(self, task: Task) -> None:
        """Fast adaption, exemplars of the new classes, balanced tuning from the second task on."""
        settings = self.settings
        self.grow_head()
        new = self.batches(task.train, settings.batch_size)
        losses, parts = self._new_losses(task)
        stage = settings.stage(settings.initial_epochs)
        groups = default_groups(self, stage, also=parts)
        run_stage(self, Stage.INITIAL_LEARNING, new, losses, stage, groups=groups)
        self.remember(task)
        if self.tasks_learned > 0:
            memory = self.memory_batches(settings.batch_size)
            run_stage(self, Stage.REPLAY, memory, self.classify, settings.stage(settings.replay_epochs))

    def _new_losses(self, task: Task) -> tuple[Callable[[Batch], LossTerms], list[nn.Module]]:
        """Cross-entropy and, where set, InfoMax and the pull to the untouched encoder; a head for InfoMax."""
        settings, size = self.settings, self.encoder.representation_size
        retain = retention(self, task.train, settings.retain)
        view: nn.Module | None = None
        if settings.infomax_weight:
            view = nn.Sequential(plain_linear(size, size), nn.Tanh()).to(self.encoder.device)

        def losses(batch: Batch) -> LossTerms:
            representation = self.encoder.represent(batch)
            terms = {"ce": cross_entropy(self.head(representation), batch.labels)}
            if view is not None:
                views = view(representation), view(self.encoder.represent(batch))  # other dropout
                own = torch.arange(len(batch), device=representation.device)
                contrast = info_nce(*views, temperature=settings.infomax_temperature, own_key=own)
                terms["infomax"] = settings.infomax_weight * contrast
            if retain is not None:
                terms["retain"] = retain(batch, representation)
            return terms

        return losses, [view] if view is not None else []
