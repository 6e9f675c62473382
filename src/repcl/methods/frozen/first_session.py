"""First session (after Panos et al., 2023): train the encoder on the first task, freeze it, go on."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from repcl.data import InputKind, Task
from repcl.errors import InvalidSetting
from repcl.methods.base import Method
from repcl.methods.frozen.instant import Instant, InstantSettings
from repcl.methods.frozen.vote import Vote
from repcl.methods.search_ranges import Dimension
from repcl.methods.sequential import Sequential, SequentialSettings
from repcl.methods.settings import MethodSettings, TrainingSettings, make_settings, with_speed
from repcl.model import Embedder


class FirstSessionSettings(InstantSettings, TrainingSettings):
    """Settings of the instant learner, and of the training before it."""

    head_dropout: float = Field(
        0.5, ge=0, lt=1, description="dropout in front of the classifier that the first task is learned with"
    )

    search: ClassVar[Mapping[str, Dimension]] = {**TrainingSettings.search, **InstantSettings.search}

    @property
    def of_the_first_task(self) -> SequentialSettings:
        """How the encoder is trained."""
        values = self.model_dump(include=set(SequentialSettings.model_fields))
        return make_settings(SequentialSettings, values)


class FirstSession(Instant):
    """An encoder that has seen the kind of texts it is for, and after that never changes again."""

    Settings: ClassVar[type[FirstSessionSettings]] = FirstSessionSettings
    settings: FirstSessionSettings
    takes_back_exactly = False  # the encoder keeps traces of the first task
    takes_several_labels = False

    @classmethod
    def for_settings(cls, settings: MethodSettings) -> type[Method]:
        """This class, or the one that votes together with logistic regression."""
        return FirstSessionVote if isinstance(settings, InstantSettings) and settings.vote else cls

    @classmethod
    def parts_of(cls, values: Mapping[str, object]) -> tuple[str, ...]:  # noqa: ARG003 (always the same)
        """Fine-tuning, whose presets count."""
        return ("sequential",)

    @classmethod
    def resolved(cls, settings: MethodSettings, kind: InputKind) -> MethodSettings:
        """The settings with layers and speed decided."""
        chosen = super().resolved(settings, kind)
        return with_speed(chosen, kind) if isinstance(chosen, TrainingSettings) else chosen

    def build_parts(self) -> None:
        """Those of `instant`; the training gives each text one label."""
        if self.is_multilabel:
            raise InvalidSetting(
                "first_session gives each text one label, found multilabel = true: use instant."
            )
        super().build_parts()

    def learn_task(self, task: Task) -> None:
        """Train the encoder on the first task only; then embed, book in, solve."""
        if not self.tasks_learned:
            self.train_encoder(task)
        super().learn_task(task)

    def train_encoder(self, task: Task) -> None:
        """Fine-tuning of the layers that are read, with a classifier that nothing else is asked of."""
        self.encoder.requires_grad_(True)
        trainer = Sequential(self.encoder, self.settings.of_the_first_task, seed=self.seed)
        trainer.observer = self.observer
        trainer.learn(task)
        self.encoder.requires_grad_(False)
        self.embedder = Embedder(self.encoder)  # the one before may know texts by the old weights


class FirstSessionVote(FirstSession, Vote):
    """The same with the vote of a logistic regression."""

    Settings: ClassVar[type[FirstSessionSettings]] = FirstSessionSettings
    settings: FirstSessionSettings
