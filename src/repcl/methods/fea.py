"""FEA (Wang et al., 2022): learn the new task alone, then tune on a balanced memory."""

from typing import ClassVar

from repcl.data import Task
from repcl.methods.base import Method
from repcl.methods.settings import ClassifierSettings, MemorySettings
from repcl.training import run_stage


class FEASettings(ClassifierSettings, MemorySettings):
    """Settings of FEA."""


class FEA(Method):
    """Fast adaption on new data, balanced tuning on memory: the two-stage backbone of RepCL."""

    Settings: ClassVar[type[FEASettings]] = FEASettings
    settings: FEASettings
    paper = "Wang et al., 2022"

    def learn_task(self, task: Task) -> None:
        """Fast adaption, exemplars of the new classes, balanced tuning from the second task on."""
        settings = self.settings
        self.grow_head()
        new = self.batches(task.train, settings.batch_size)
        run_stage(self, "initial learning", new, self.classify, settings.stage(settings.initial_epochs))
        self.remember(task)
        if self.tasks_learned > 0:
            memory = self.batches(list(self.memory), settings.batch_size)
            run_stage(self, "replay", memory, self.classify, settings.stage(settings.replay_epochs))
