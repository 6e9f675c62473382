"""Sequential fine-tuning without any memory: the lower bound."""

from collections.abc import Mapping
from typing import ClassVar

from repcl.data import Task
from repcl.methods.base import Method
from repcl.methods.search_ranges import Dimension, Range
from repcl.methods.settings import ClassifierSettings
from repcl.training import Stage, run_stage


class SequentialSettings(ClassifierSettings):
    """Settings of sequential fine-tuning."""

    search: ClassVar[Mapping[str, Dimension]] = {
        **ClassifierSettings.search,
        "head_dropout": Range(0.0, 0.5),
    }


class Sequential(Method):
    """Train on each task as it comes and hope."""

    Settings: ClassVar[type[SequentialSettings]] = SequentialSettings
    settings: SequentialSettings

    def learn_task(self, task: Task) -> None:
        """Train on the new task only."""
        self.grow_head()
        new = self.batches(task.train, self.settings.batch_size)
        stage = self.settings.stage(self.settings.initial_epochs)
        run_stage(self, Stage.INITIAL_LEARNING, new, self.classify, stage)
