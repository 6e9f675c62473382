"""Sequential fine-tuning without any memory: the lower bound."""

from typing import ClassVar

from repcl.data import Task
from repcl.methods.base import Method
from repcl.methods.settings import ClassifierSettings
from repcl.training import run_stage


class SequentialSettings(ClassifierSettings):
    """Settings of sequential fine-tuning."""


class Sequential(Method):
    """Train on each task as it comes and hope."""

    Settings: ClassVar[type[SequentialSettings]] = SequentialSettings
    settings: SequentialSettings
    paper = "lower bound"

    def learn_task(self, task: Task) -> None:
        """Train on the new task only."""
        self.grow_head()
        new = self.batches(task.train, self.settings.batch_size)
        run_stage(
            self, "initial learning", new, self.classify, self.settings.stage(self.settings.initial_epochs)
        )
