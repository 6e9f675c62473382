"""TensorBoard and Weights & Biases: losses and accuracies are passed to accelerate's trackers."""

import importlib.util
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from repcl.errors import InvalidSetting, MissingPackage, UnknownName
from repcl.experiments.runs.observers import RunObserver
from repcl.experiments.runs.store import TENSORBOARD, WANDB, WANDB_RUN
from repcl.files import write_whole
from repcl.training import Stage

TRACKERS = (TENSORBOARD, WANDB)
PROJECT = "repcl"


class Tracker(Protocol):
    """What is used of accelerate's trackers."""

    def start(self) -> None:
        """Begin to write."""

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Note the settings of the run."""

    def log(self, values: dict[str, float], step: int | None) -> None:
        """Note numbers at a step."""

    def finish(self) -> None:
        """Write the rest."""


class Tracking(RunObserver):
    """Tells trackers the loss terms of each step and the accuracy after each task."""

    def __init__(self, trackers: Sequence[Tracker], steps: int) -> None:
        self.trackers, self.steps = trackers, steps
        self._stage = ""

    def task_ends(self, number: int, accuracy: float | None) -> None:
        """Log the accuracy on all classes seen so far."""
        reached = {} if accuracy is None else {"accuracy": accuracy}
        self._log({**reached, "tasks_learned": number + 1})

    def stage_begins(self, stage: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:  # noqa: ARG002
        """Note the name of the stage."""
        self._stage = str(stage).replace(" ", "_")

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        """Log the loss terms."""
        self._log({f"{self._stage}/{name.replace(' ', '_')}": float(term) for name, term in terms.items()})
        self.steps += 1

    def _log(self, values: dict[str, float]) -> None:
        for tracker in self.trackers:
            tracker.log(values, step=self.steps)


def check_trackers(names: Sequence[str], folder: Path | None) -> None:
    """Refuse trackers that do not exist, are not installed or have nowhere to write."""
    for name in names:
        if name not in TRACKERS:
            raise UnknownName("tracker", name, TRACKERS)
        for package in ("accelerate", name):
            if importlib.util.find_spec(package) is None:
                raise MissingPackage(
                    f"Reporting to {name} needs the package {package}: pip install 'repcl[trackers]'."
                )
    if names and folder is None:
        raise InvalidSetting("Trackers need a folder for their files: give `out` together with `report_to`.")


@contextmanager
def tracked(
    names: Sequence[str], folder: Path, title: str, configuration: Mapping[str, Any], steps: int
) -> Iterator[list[RunObserver]]:
    """The observer that tells trackers, which are closed in the end; nobody without names.

    Args:
        names: of trackers.
        folder: where they write.
        title: of the run.
        configuration: everything that decides the run.
        steps: made before the run was stopped.
    """
    if not names:
        yield []
        return
    folder.mkdir(parents=True, exist_ok=True)
    trackers = [_tracker(name, title, folder, steps) for name in dict.fromkeys(names)]
    for tracker in trackers:
        tracker.start()
        if steps == 0:
            tracker.store_init_configuration({name: _plain(value) for name, value in configuration.items()})
    try:
        yield [Tracking(trackers, steps)]
    finally:
        for tracker in trackers:
            tracker.finish()


def _tracker(name: str, title: str, folder: Path, steps: int) -> Tracker:
    from accelerate.tracking import TensorBoardTracker, WandBTracker

    if name == TENSORBOARD:
        # A task that was stopped is learned again: its first attempt is hidden.
        board: Tracker = TensorBoardTracker(TENSORBOARD, folder, purge_step=steps)
        return board
    identity = folder / WANDB_RUN
    if not identity.exists():
        write_whole(identity, uuid.uuid4().hex)
    run: Tracker = WandBTracker(
        PROJECT,
        name=title,
        id=identity.read_text(encoding="utf-8"),
        resume="allow",
        dir=str(folder),
        settings={"silent": True, "console": "off"},  # the terminal belongs to the progress of all runs
    )
    return run


def _plain(value: Any) -> bool | int | float | str:
    """A value as trackers take it."""
    return value if isinstance(value, bool | int | float | str) else str(value)
