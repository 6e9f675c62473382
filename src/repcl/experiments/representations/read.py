"""Reads the representations that a run saved, and says how to save those that are not there."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from repcl.analysis.snapshots import Numbers, Rows, Snapshot, Snapshots
from repcl.errors import ResultMismatch
from repcl.experiments.runs.result import Result
from repcl.experiments.runs.store import REPRESENTATIONS, SAVED, StoredRun
from repcl.files import is_plain

Tensors = dict[str, NDArray[np.generic]]


def read_snapshots(run: StoredRun) -> Snapshots | None:
    """The representations of a finished run; None if it saved none."""
    saved, result = run.result.representations, run.result
    if saved is None:
        return None
    folder = run.folder / REPRESENTATIONS
    found_here = [path for path in folder.glob("after-*") if SAVED.fullmatch(path.name) and is_plain(path)]
    paths = {int(path.stem.removeprefix("after-")): path for path in found_here}
    if len(paths) != saved.files or 0 not in paths:
        found = ", ".join(paths[done].name for done in sorted(paths)) or "none"
        raise ResultMismatch(
            f"Expected the {saved.files} files in {folder} that the run saved, after-0.safetensors and later "
            f"ones, found {found}; {how_to_save(result)}"
        )
    moments = {done: _read(path, result) for done, path in paths.items()}
    start = moments[0]
    classes = tuple(dict.fromkeys(name for task in result.class_order for name in task))
    for done, tensors in moments.items():
        if not _is_whole(tensors, start, len(classes), len(result.class_order)):
            raise ResultMismatch(f"{paths[done]} is not what a run saves; {how_to_save(result)}")
    return Snapshots(
        classes=classes,
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


def _is_whole(tensors: Tensors, start: Tensors, classes: int, tasks: int) -> bool:
    """Whether the tensors of a moment belong to the texts, classes and tasks of the run."""
    for kind in ("test", "probe"):
        labels, of_task = start.get(f"{kind}_labels"), start.get(f"{kind}_tasks")
        rows, first = tensors.get(kind), start.get(kind)
        if rows is None or first is None or labels is None or of_task is None:
            return False
        if rows.ndim != 2 or rows.shape != first.shape:
            return False
        if not _are_below(labels, classes, len(rows)) or not _are_below(of_task, tasks, len(rows)):
            return False
    texts = len(start["test"])
    inputs, best = start.get("inputs", start["test"]), tensors.get("within_task", np.full(texts, -1))
    return (
        inputs.ndim == 2
        and len(inputs) == texts
        and _are_below(best, classes, texts, lowest=-1)
        and tensors.get("losses", np.zeros(0)).ndim == 1
    )


def _are_below(numbers: NDArray[np.generic], limit: int, length: int, lowest: int = 0) -> bool:
    """Whether there are so many whole numbers from 0, or lower, up to a limit."""
    if numbers.shape != (length,) or not np.issubdtype(numbers.dtype, np.integer):
        return False
    return not length or bool(_numbers(numbers).min() >= lowest and _numbers(numbers).max() < limit)


def _snapshot(tensors: Tensors) -> Snapshot:
    unknown = np.full(len(tensors["test"]), -1)
    return Snapshot(
        test=_rows(tensors["test"]),
        probe=_rows(tensors["probe"]),
        within_task=_numbers(tensors.get("within_task", unknown)),
        losses=_rows(tensors.get("losses", np.zeros(0))),
    )


def _read(path: Path, result: Result) -> Tensors:
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise ResultMismatch(f"{path} is damaged ({error}); {how_to_save(result)}") from error


def _rows(tensor: NDArray[np.generic]) -> Rows:
    return tensor.astype(np.float32)


def _numbers(tensor: NDArray[np.generic]) -> Numbers:
    return tensor.astype(np.int64)
