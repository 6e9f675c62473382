"""Reads what a run kept for its analysis."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from repcl.analysis.snapshots import Numbers, Rows, Snapshot, Snapshots
from repcl.errors import ResultMismatch
from repcl.experiments.result import Result


def read_snapshots(folder: Path, result: Result) -> Snapshots | None:
    """The representations of a finished run; None if it kept none."""
    if result.kept is None or result.keep != "representations":
        return None
    place = folder / result.kept.folder
    moments = {
        int(path.stem.removeprefix("after-")): _read(path) for path in place.glob("after-*.safetensors")
    }
    start = moments.get(0)
    if start is None:
        raise ResultMismatch(f"{place} does not hold what {folder} kept; use --fresh to run it again.")
    return Snapshots(
        classes=tuple(dict.fromkeys(name for task in result.class_order for name in task)),
        tasks=len(result.class_order),
        inputs=_rows(start.get("inputs", start["test"])),
        test_labels=_numbers(start["test_labels"]),
        test_tasks=_numbers(start["test_tasks"]),
        probe_labels=_numbers(start["probe_labels"]),
        probe_tasks=_numbers(start["probe_tasks"]),
        after={done: _snapshot(tensors) for done, tensors in sorted(moments.items())},
    )


def _snapshot(tensors: dict[str, NDArray[np.generic]]) -> Snapshot:
    unknown = np.full(len(tensors["test"]), -1)
    return Snapshot(
        test=_rows(tensors["test"]),
        probe=_rows(tensors["probe"]),
        within_task=_numbers(tensors.get("within_task", unknown)),
        losses=_rows(tensors.get("losses", np.zeros(0))),
    )


def _read(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise ResultMismatch(f"{path} is damaged ({error}); use --fresh to run it again.") from error


def _rows(tensor: NDArray[np.generic]) -> Rows:
    return tensor.astype(np.float32)


def _numbers(tensor: NDArray[np.generic]) -> Numbers:
    return tensor.astype(np.int64)
