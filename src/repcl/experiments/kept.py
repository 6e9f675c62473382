"""Reads what a run kept for its analysis, and says how to keep what is not there."""

import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from repcl.analysis.snapshots import Numbers, Rows, Snapshot, Snapshots
from repcl.errors import ResultMismatch
from repcl.experiments.result import Result

PASSED_ON = ("--preset", "--encoder", "--data-dir", "--device", "--out")


def read_snapshots(folder: Path, result: Result) -> Snapshots | None:
    """The representations of a finished run; None if it kept none."""
    if result.kept is None or result.keep != "representations":
        return None
    place, again = folder / result.kept.folder, keep_again(result)
    paths = {int(path.stem.removeprefix("after-")): path for path in place.glob("after-*.safetensors")}
    if len(paths) != result.kept.files or 0 not in paths:
        found = ", ".join(paths[done].name for done in sorted(paths)) or "none"
        raise ResultMismatch(
            f"Expected the {result.kept.files} files in {place} that the run kept, after-0.safetensors and "
            f"later ones, found {found}; to keep them again: {again}"
        )
    moments = {done: _read(path, again) for done, path in paths.items()}
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


def keep_again(result: Result) -> str:
    """What to type so that a run is made again and keeps its representations."""
    match shlex.split(result.command or ""):
        case ["repcl", "bench", *options]:
            words = _without_keep(_separated(options))
        case ["repcl", "reproduce", *options]:
            words = _as_bench(result, _separated(options))
        case _:
            return "run_experiment(..., keep='representations', fresh=True)"
    return shlex.join(["repcl", "bench", *words, "--keep", "representations", "--fresh"])


def _separated(options: Sequence[str]) -> list[str]:
    """`--out=runs` as two words."""
    return [part for word in options for part in (word.split("=", 1) if word.startswith("--") else [word])]


def _without_keep(options: Sequence[str]) -> list[str]:
    return [
        word
        for before, word in pairwise(["", *options])
        if before != "--keep" and word not in ("--keep", "--fresh")
    ]


def _as_bench(result: Result, options: Sequence[str]) -> list[str]:
    """One run of `repcl reproduce`, which cannot be told what to keep, as options of `repcl bench`."""
    given = [*pairwise(options)]
    data = [value for name, value in given if name == "--benchmark" and Path(value).stem == result.benchmark]
    benchmark = data[0] if data else result.benchmark
    chosen = ["--benchmark", benchmark, "--method", result.row, "--round", str(result.round)]
    return chosen + [word for name, value in given if name in PASSED_ON for word in (name, value)]


def _snapshot(tensors: dict[str, NDArray[np.generic]]) -> Snapshot:
    unknown = np.full(len(tensors["test"]), -1)
    return Snapshot(
        test=_rows(tensors["test"]),
        probe=_rows(tensors["probe"]),
        within_task=_numbers(tensors.get("within_task", unknown)),
        losses=_rows(tensors.get("losses", np.zeros(0))),
    )


def _read(path: Path, again: str) -> dict[str, NDArray[np.generic]]:
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise ResultMismatch(f"{path} is damaged ({error}); to keep it again: {again}") from error


def _rows(tensor: NDArray[np.generic]) -> Rows:
    return tensor.astype(np.float32)


def _numbers(tensor: NDArray[np.generic]) -> Numbers:
    return tensor.astype(np.int64)
