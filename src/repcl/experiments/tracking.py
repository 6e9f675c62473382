"""TensorBoard and Weights & Biases: losses and accuracies go on to accelerate's trackers."""

import importlib.util
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from repcl.errors import InvalidSetting, MissingPackage, UnknownName
from repcl.experiments.observer import RunObserver
from repcl.experiments.plan import RunPlan
from repcl.model.processes import processes
from repcl.training import Stage

TRACKERS = ("tensorboard", "wandb")
FOLDER = "tracking"
PROJECT = "repcl"
WANDB_RUN = "wandb-run.txt"  # so that a run that goes on is the same run there


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
    """Tells trackers the loss terms of each step and the accuracy after each task; passes everything on."""

    def __init__(self, next_observer: RunObserver, trackers: Sequence[Tracker], steps: int) -> None:
        self.next, self.trackers, self.steps = next_observer, trackers, steps
        self._stage = ""

    def task_begins(self, number: int, tasks: int) -> None:
        """Pass it on."""
        self.next.task_begins(number, tasks)

    def task_ends(self, number: int, accuracy: float | None) -> None:
        """Log the accuracy on all classes seen so far."""
        reached = {} if accuracy is None else {"accuracy": accuracy}
        self._log({**reached, "tasks_learned": number + 1})
        self.next.task_ends(number, accuracy)

    def stage_begins(self, name: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        """Note the name of the stage."""
        self._stage = name.replace(" ", "_")
        self.next.stage_begins(name, epochs=epochs, steps_per_epoch=steps_per_epoch)

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        """Log the loss terms."""
        self._log({f"{self._stage}/{name.replace(' ', '_')}": float(term) for name, term in terms.items()})
        self.steps += 1
        self.next.step_ends(terms)

    def stage_ends(self, name: Stage) -> None:
        """Pass it on."""
        self.next.stage_ends(name)

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
    names: Sequence[str], observer: RunObserver, plan: RunPlan, folder: Path | None, data: str, steps: int
) -> Iterator[RunObserver]:
    """An observer that also tells trackers, which are closed in the end; of several processes, the first's.

    Args:
        names: of trackers.
        observer: hears everything too.
        plan: the settings of the run.
        folder: of the run.
        data: name of the benchmark.
        steps: made before the run was stopped.
    """
    if not names or folder is None or not processes().is_first:
        yield observer
        return
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    title = f"{data} {plan.row} round {plan.round}"
    trackers = [_tracker(name, title, place, steps) for name in dict.fromkeys(names)]
    for tracker in trackers:
        tracker.start()
        if steps == 0:
            tracker.store_init_configuration(_configuration(plan, data))
    try:
        yield Tracking(observer, trackers, steps)
    finally:
        for tracker in trackers:
            tracker.finish()


def remove_tracking(folder: Path) -> None:
    """Drop what an earlier run reported."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)


def _tracker(name: str, title: str, place: Path, steps: int) -> Tracker:
    from accelerate.tracking import TensorBoardTracker, WandBTracker

    if name == "tensorboard":
        # A task that was stopped is learned again: its first attempt is hidden.
        board: Tracker = TensorBoardTracker("tensorboard", place, purge_step=steps)
        return board
    identity = place / WANDB_RUN
    if not identity.exists():
        identity.write_text(uuid.uuid4().hex, encoding="utf-8")
    run: Tracker = WandBTracker(
        PROJECT,
        name=title,
        id=identity.read_text(encoding="utf-8"),
        resume="allow",
        dir=str(place),
        settings={"silent": True, "console": "off"},  # the terminal belongs to the progress of the grid
    )
    return run


def _configuration(plan: RunPlan, data: str) -> dict[str, Any]:
    """Everything that decides the run; trackers take plain values only."""
    values = {
        "benchmark": data,
        "method": plan.method,
        "variant": plan.variant,
        "encoder": plan.encoder,
        "preset": plan.preset,
        "round": plan.round,
        **plan.settings,
    }
    return {
        name: value if isinstance(value, bool | int | float | str) else str(value)
        for name, value in values.items()
    }
