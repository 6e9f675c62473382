"""Settings of methods: frozen, checked once, the only knobs, and the source of `--set` options."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from repcl.data import InputKind
from repcl.errors import InvalidSetting, UnknownName, shortened
from repcl.methods.search_ranges import Dimension, Range
from repcl.model.precision import gains_from_bfloat16
from repcl.training import StageSettings

LARGEST_NUMBER = 2**32
"""Of any setting that counts something; what memory takes is checked beside this."""


class MethodSettings(BaseModel):
    """What every method's settings are: frozen and closed to unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _is_countable(cls, value: Any) -> Any:
        """Refuse numbers that no machine can count to, before a library fails to take them."""
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            raise PydanticCustomError("number", f"input should be at most {LARGEST_NUMBER:,}")
        return value

    @property
    def other_draw(self) -> int:
        """Which of several runs on the same data this is; they differ in all random draws."""
        return 0

    search: ClassVar[Mapping[str, Dimension]] = {}
    """What `repcl tune` searches, and between which values.

    Epochs, batch and memory sizes are left out: they decide what a run costs.
    """


class TrainingSettings(MethodSettings):
    """Settings of methods that train the encoder; the defaults are the paper's."""

    batch_size: int = Field(32, ge=1, description="texts per optimization step")
    initial_epochs: int = Field(10, ge=1, description="epochs on a new task")
    learning_rate: float = Field(1e-5, gt=0, description="learning rate of the encoder")
    head_learning_rate: float = Field(1e-3, gt=0, description="learning rate of every other part")
    weight_decay: float = Field(0.01, ge=0, description="weight decay of AdamW")
    warmup_epochs: float = Field(0.0, ge=0, description="epochs in which the learning rates rise from zero")
    clip_norm: float = Field(10.0, gt=0, description="largest norm of the gradient")
    speed: Literal["exact", "fast"] = Field(
        "exact",
        description="fast trains a different, cheaper model: it fills in settings below that are left open",
    )
    precision: Literal["full", "bf16"] | None = Field(
        None, description="number format of the encoder; fast: bf16 if it is faster on this processor"
    )
    frozen_layers: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="share of the encoder's layers, from the bottom up, that never learn; fast: half",
    )

    fast: ClassVar[Mapping[str, Any]] = {"frozen_layers": 0.5}
    exact: ClassVar[Mapping[str, Any]] = {"precision": "full", "frozen_layers": 0.0}
    """What settings that are left open mean with either speed."""

    search: ClassVar[Mapping[str, Dimension]] = {
        "learning_rate": Range(1e-5, 2e-4, is_log=True),
        "head_learning_rate": Range(1e-4, 5e-3, is_log=True),
    }

    def stage(self, epochs: int) -> StageSettings:
        """A stage of so many epochs with these rates."""
        return StageSettings(
            epochs=epochs,
            learning_rate=self.learning_rate,
            head_learning_rate=self.head_learning_rate,
            weight_decay=self.weight_decay,
            warmup_epochs=self.warmup_epochs,
            clip_norm=self.clip_norm,
        )


class ClassifierSettings(TrainingSettings):
    """Settings of methods that predict with a trained classifier head."""

    head_dropout: float = Field(0.5, ge=0, lt=1, description="dropout in front of the classifier")
    reserved: bool = Field(
        False, description="softmax over all classes of the stream from the start, not just those seen so far"
    )


class MemorySettings(MethodSettings):
    """Settings of methods that keep a memory."""

    memory_per_class: int = Field(10, ge=1, description="exemplars to keep per class")
    memory_total: int | None = Field(None, ge=1, description="exemplars to keep in total")


class ReplaySettings(MemorySettings):
    """Settings of methods that replay their memory in a stage of its own."""

    replay_epochs: int = Field(10, ge=1, description="epochs on the memory after each task")
    replay_budget: int | None = Field(
        None,
        ge=1,
        description="exemplars replayed per epoch, drawn anew each time, equally many per class, so that the "
        "cost of replay stops growing; left open, all",
    )


Settings = TypeVar("Settings", bound=MethodSettings)
Training = TypeVar("Training", bound=TrainingSettings)


def with_speed(settings: Training, kind: InputKind) -> Training:
    """The settings with everything decided that `speed` decides, for this input kind and processor."""
    chosen = dict(settings.exact)
    if settings.speed == "fast":
        chosen |= settings.fast
        if kind == "relation":
            chosen["frozen_layers"] = 0.0  # markers are new words: they have to learn
        if settings.precision is None and gains_from_bfloat16():
            chosen["precision"] = "bf16"
    left_open = {name: value for name, value in chosen.items() if getattr(settings, name) is None}
    return settings.model_copy(update=left_open)


def make_settings(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Checked settings; errors name the setting, the value and what was expected."""
    for name in values:
        if name not in kind.model_fields:
            raise UnknownName("setting", name, kind.model_fields)
    try:
        return kind(**values)
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:  # they contradict each other
            reason = first["msg"].removeprefix("Value error, ")
            raise InvalidSetting(f"These settings cannot be used together: {reason}.") from error
        raise InvalidSetting(
            f"Setting {first['loc'][0]} = {shortened(first['input'])} cannot be used: {first['msg'].lower()}."
        ) from error
