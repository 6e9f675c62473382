"""Joint training on all data of all tasks from the pretrained encoder: the upper bound."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from repcl.data import Task
from repcl.methods.base import Method
from repcl.methods.search_ranges import Dimension, Range
from repcl.methods.settings import ClassifierSettings
from repcl.training import Stage, run_stage


class JointSettings(ClassifierSettings):
    """Settings of joint training."""

    every_task: bool = Field(False, description="retrain after every task, not only at the end of the stream")

    search: ClassVar[Mapping[str, Dimension]] = {
        **ClassifierSettings.search,
        "head_dropout": Range(0.0, 0.5),
    }


class Joint(Method):
    """Keep everything and train on all of it, from the pretrained weights, when the stream has ended."""

    Settings: ClassVar[type[JointSettings]] = JointSettings
    keeps_everything = True
    settings: JointSettings

    def learn_task(self, task: Task) -> None:
        """Store the task; at the end of the stream train on all that was stored."""
        for name in task.classes:
            fresh = (example for example in task.train if example.label == name)
            self.memory.keep(name, dict.fromkeys([*self.memory.of(name), *fresh]))
        if self.more_follow and not self.settings.every_task:
            return
        if self.is_trained:
            self.encoder.start_over()
            self.head = self.new_head(self.settings)
        self.grow_head()
        everything = self.batches(list(self.memory), self.settings.batch_size)
        stage = self.settings.stage(self.settings.initial_epochs)
        run_stage(self, Stage.INITIAL_LEARNING, everything, self.classify, stage)

    @property
    def is_trained(self) -> bool:
        """Whether the head has been trained at all; it has no rows before."""
        return len(self.head.output.weight) > 0

    @property
    def can_predict(self) -> bool:
        """Only when all classes seen were trained on."""
        return len(self.head.output.weight) >= len(self.classes) > 0
