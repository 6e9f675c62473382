"""Who is timed while it learns: the methods of the package, and the plain ones beside them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plain_methods import PlainFEA, PlainRepCL
from torch import Tensor

from repcl.data import TaskStream
from repcl.methods import Method, build_method
from repcl.methods.build import method_class
from repcl.methods.settings import make_settings
from repcl.model import ENCODERS
from repcl.presets import load_preset
from repcl.training import Observer, Stage
from speed_parts.turns import Contender, SliceEnds

PLAIN: Mapping[str, type[PlainFEA]] = {"fea": PlainFEA, "repcl": PlainRepCL}
NAMES = ("plain fea", "fea", "plain repcl", "repcl", "repcl fast")


class SliceObserver(Observer):
    """Ends a slice with every step, and where a stage begins or ends."""

    def __init__(self, ends: SliceEnds) -> None:
        self.ends = ends
        self.now = Stage.INITIAL_LEARNING

    def stage_begins(self, stage: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:  # noqa: ARG002
        self.ends("other")
        self.now = stage

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:  # noqa: ARG002
        self.ends(str(self.now))

    def stage_ends(self, stage: Stage) -> None:
        self.ends(str(stage) if stage is Stage.MEMORY_UPDATE else "other")


def contender(name: str, stream: TaskStream, encoder: str, changes: Mapping[str, Any]) -> Contender:
    """A contender of `NAMES` that learns a stream; making it ready is not timed."""
    words = name.split()
    method = next(word for word in words if word in PLAIN)
    settings = settings_of(method, stream, changes | ({"speed": "fast"} if "fast" in words else {}))
    if "plain" in words:
        return _plain(PLAIN[method], stream, encoder, make_settings(method_class(method).Settings, settings))
    return _own(built(method, encoder, settings), stream)


def settings_of(method: str, stream: TaskStream, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What preset `cpu` says, with changes."""
    return load_preset("cpu").settings_for(method, stream.name, stream.kind) | dict(changes)


def built(method: str, encoder: str, settings: Mapping[str, Any]) -> Method:
    return build_method(method, "sentence", encoder=encoder, settings=settings, device="cpu")


def _own(method: Method, stream: TaskStream) -> Contender:
    def learn(ends: SliceEnds) -> None:
        method.observer = SliceObserver(ends)
        for task in stream.tasks:
            method.learn(task)

    return learn


def _plain(kind: type[PlainFEA], stream: TaskStream, encoder: str, settings: Any) -> Contender:
    number_of = {name: number for number, name in enumerate(_classes(stream.tasks))}
    method = kind(encoder_folder(encoder), len(number_of), settings, lambda _: None)

    def learn(ends: SliceEnds) -> None:
        method.ends = ends
        for task in stream.tasks:
            method.learn([(example.text, number_of[example.label]) for example in task.train])

    return learn


def encoder_folder(encoder: str) -> Path:
    """Where the weights are."""
    return ENCODERS[encoder].locate() if encoder in ENCODERS else Path(encoder)


def _classes(tasks: Sequence[Any]) -> list[str]:
    return [name for task in tasks for name in task.classes]
