"""What a stopped run needs to go on: the method after its last finished task, and what was measured."""

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from repcl.errors import ResultMismatch
from repcl.experiments.result import Keep
from repcl.methods import Method, load_method, save_method
from repcl.model import Encoder
from repcl.model.processes import processes

PROGRESS = "progress.json"


@dataclass
class Progress:
    """Measurements of the tasks finished so far.

    Attributes:
        fingerprint: of the run they belong to.
        predictions: after each task, the predicted class of every test example seen so far.
        seconds: of each task, by stage.
        keep: what the run keeps for analysis, from its first task on.
        steps: of optimization, made so far.
    """

    fingerprint: str
    predictions: list[list[str | None]] = field(default_factory=list)
    seconds: list[dict[str, float]] = field(default_factory=list)
    keep: Keep = "none"
    steps: int = 0


def save_checkpoint(folder: Path, method: Method, name: str, progress: Progress) -> None:
    """Write a checkpoint beside the old one, switch to it by one rename, then drop the old one."""
    done = len(progress.predictions)
    part, final = folder / f"checkpoint-{done}.part", folder / f"checkpoint-{done}"
    shutil.rmtree(part, ignore_errors=True)
    save_method(method, name, part)
    (part / PROGRESS).write_text(json.dumps(asdict(progress), ensure_ascii=False), encoding="utf-8")
    os.rename(part, final)
    for old in _checkpoints(folder):
        if old != final:
            shutil.rmtree(old)


def load_checkpoint(
    folder: Path, encoder: str | Encoder, device: torch.device | str | None
) -> tuple[Method, Progress] | None:
    """The newest checkpoint of a run, if there is one."""
    newest = _newest(folder)
    if newest is None:
        return None
    method = load_method(newest, encoder=encoder, device=device, processes=processes())
    return method, _read_progress(newest)


def checkpoint_progress(folder: Path) -> Progress | None:
    """What the newest checkpoint says about its run."""
    newest = _newest(folder)
    return _read_progress(newest) if newest is not None else None


def remove_checkpoints(folder: Path) -> None:
    """Drop all checkpoints of a run, half-written ones too."""
    for path in folder.glob("checkpoint-*"):
        shutil.rmtree(path)


def _checkpoints(folder: Path) -> list[Path]:
    return [path for path in folder.glob("checkpoint-*") if path.suffix != ".part"]


def _newest(folder: Path) -> Path | None:
    return max(_checkpoints(folder), key=_number, default=None)


def _read_progress(checkpoint: Path) -> Progress:
    try:
        return Progress(**json.loads((checkpoint / PROGRESS).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ResultMismatch(f"{checkpoint} is damaged; use --fresh to run it again.") from error


def _number(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])
