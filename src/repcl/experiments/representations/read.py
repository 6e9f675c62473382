"""Reads the representations that a run saved, and says how to save those that are not there."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from repcl.analysis.snapshots import Numbers, Rows, Snapshot, Snapshots
from repcl.errors import ResultMismatch
from repcl.experiments.runs.result import Result
from repcl.experiments.runs.store import StoredRun


def read_snapshots(run: StoredRun) -> Snapshots | None:
    """The representations of a finished run; None if it saved none."""
    saved, result = run.result.representations, run.result
    if saved is None:
        return None
    folder = run.folder / saved.folder
    paths = {int(path.stem.removeprefix("after-")): path for path in folder.glob("after-*.safetensors")}
    if len(paths) != saved.files or 0 not in paths:
        found = ", ".join(paths[done].name for done in sorted(paths)) or "none"
        raise ResultMismatch(
            f"Expected the {saved.files} files in {folder} that the run saved, after-0.safetensors and later "
            f"ones, found {found}; {how_to_save(result)}"
        )
    moments = {done: _read(path, result) for done, path in paths.items()}
    start = moments[0]
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


def how_to_save(result: Result) -> str:
    """What to do so that a run is made again and saves its representations."""
    if result.command is None:
        return "to save them: run_experiment(..., save_representations=True, fresh=True)"
    return f"to save them, add --save-representations --fresh to: {result.command}"


def _snapshot(tensors: dict[str, NDArray[np.generic]]) -> Snapshot:
    unknown = np.full(len(tensors["test"]), -1)
    return Snapshot(
        test=_rows(tensors["test"]),
        probe=_rows(tensors["probe"]),
        within_task=_numbers(tensors.get("within_task", unknown)),
        losses=_rows(tensors.get("losses", np.zeros(0))),
    )


def _read(path: Path, result: Result) -> dict[str, NDArray[np.generic]]:
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise ResultMismatch(f"{path} is damaged ({error}); {how_to_save(result)}") from error


def _rows(tensor: NDArray[np.generic]) -> Rows:
    return tensor.astype(np.float32)


def _numbers(tensor: NDArray[np.generic]) -> Numbers:
    return tensor.astype(np.int64)
