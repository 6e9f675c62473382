"""The analysis of finished runs: everything that can be asked of what they kept, as it stands in a file."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError

from repcl.analysis import (
    SHOTS,
    Confusion,
    EstimatorSettings,
    Movement,
    MutualInformation,
    ProbeMatrix,
    Snapshots,
    Spectrum,
    centroid_movements,
    class_information,
    fano_bound,
    forward_transfer,
    input_information,
    masked_backward_transfer,
    pair_information,
    probe_matrix,
    spectrum,
    steps_to_halve,
    taken_for_newer,
)
from repcl.errors import ResultMismatch
from repcl.evaluation import TestedExample, class_forgetting, read_predictions
from repcl.experiments.kept import keep_again, read_snapshots
from repcl.experiments.result import RESULT, Result, read_result, write_whole
from repcl.experiments.threads import torch_threads

FORMAT = 2  # 1 had pairs of a text with itself in I(Z1;Z1+)
ANALYSIS = "analysis.json"
AUTHORS_ANALYSIS = "analysis-authors.json"  # for comparison only: no report reads it


@dataclass(frozen=True)
class Representations:
    """What the kept representations of a run say.

    Attributes:
        inputs: I(X1;Z1) on the first task's test texts after that task; at the end for `joint`.
        classes: I(Z;Y) on all test texts at the end.
        same_class: I(Z1;Z1+) on the first task's test texts.
        fano: the least I(Z;Y) that the final accuracy implies.
        untouched: spectrum of the first task's test texts in the untouched encoder.
        first: their spectrum after the first task.
        last: their spectrum at the end.
        movements: how far old classes moved while each task was learned.
        probes: by number of shots, accuracy of probes on tasks not learned yet.
        forward_transfer: by number of shots, what learning did for the next task's probe.
        masked_backward_transfer: what it did to old tasks, when a text's task is given.
        steps_to_halve: steps until each task's training loss was half of its first value.
    """

    inputs: MutualInformation
    classes: MutualInformation
    same_class: MutualInformation
    fano: float | None
    untouched: Spectrum
    first: Spectrum
    last: Spectrum
    movements: Sequence[Movement]
    probes: Mapping[int, ProbeMatrix]
    forward_transfer: Mapping[int, float | None]
    masked_backward_transfer: float | None
    steps_to_halve: Sequence[int | None]


@dataclass(frozen=True)
class RunAnalysis:
    """Answers about one run.

    Attributes:
        fingerprint: of the run.
        settings: how mutual information was estimated.
        confusions: which old classes are taken for which newer ones in the end.
        forgetting: points that each class lost since its best moment, as fractions.
        representations: None where the run did not keep them.
    """

    fingerprint: str
    settings: EstimatorSettings
    confusions: Sequence[Confusion]
    forgetting: Mapping[str, float]
    representations: Representations | None
    format: int = field(default=FORMAT)


_AS_JSON: TypeAdapter[RunAnalysis] = TypeAdapter(RunAnalysis)


def analyze_run(
    folder: Path, settings: EstimatorSettings, *, fresh: bool = False, file: str = ANALYSIS
) -> RunAnalysis:
    """Analyze a run and write the file beside its result; an analysis already there is read."""
    result = read_result(folder / RESULT)
    earlier = None if fresh else read_analysis(folder, file)
    if earlier is not None and _is_current(earlier, result, settings):
        return earlier
    tested = _read_tested(folder, result)
    snapshots = read_snapshots(folder, result)
    class_tasks = {name: task for task, names in reversed([*enumerate(result.class_order)]) for name in names}
    with torch_threads(1):
        found = RunAnalysis(
            result.fingerprint,
            settings,
            confusions=taken_for_newer(tested, class_tasks),
            forgetting=class_forgetting(tested),
            representations=_ask(snapshots, folder, result, tested, settings)
            if snapshots is not None
            else None,
        )
    write_whole(folder / file, json.dumps(_AS_JSON.dump_python(found, mode="json"), indent=1) + "\n")
    return found


def read_analysis(folder: Path, file: str = ANALYSIS) -> RunAnalysis | None:
    """The analysis of a run, if it was made by this version."""
    path = folder / file
    if not path.is_file():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return _AS_JSON.validate_python(content) if content["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        raise ResultMismatch(f"{path} is damaged; delete it and analyze the run again.") from error


def remove_analysis(folder: Path) -> None:
    """Drop what an analysis of an earlier run wrote, figures too."""
    for pattern in (ANALYSIS, "analysis-*.json", "analysis-*.svg", "analysis-*.png"):
        for path in folder.glob(pattern):
            path.unlink()


def _is_current(earlier: RunAnalysis, result: Result, settings: EstimatorSettings) -> bool:
    """Whether nothing has changed since: the run, the estimator, and whether there are representations."""
    is_whole = (earlier.representations is not None) == (result.keep == "representations")
    return is_whole and (earlier.fingerprint, earlier.settings) == (result.fingerprint, settings)


def _read_tested(folder: Path, result: Result) -> list[TestedExample]:
    path = folder / Path(result.predictions).name
    if not path.is_file():
        raise ResultMismatch(
            f"{path} is missing, and a run is not analyzed without its predictions; "
            f"to make it again: {keep_again(result)}"
        )
    return read_predictions(path)


def _ask(
    snapshots: Snapshots,
    folder: Path,
    result: Result,
    tested: Sequence[TestedExample],
    settings: EstimatorSettings,
) -> Representations:
    first, last = snapshots.first, snapshots.last
    if first is None or last is None:
        raise ResultMismatch(
            f"{folder} does not hold representations after the first and the last task; "
            f"to keep them again: {keep_again(result)}"
        )
    of_first = snapshots.test_tasks == 0
    labels = torch.from_numpy(snapshots.test_labels)
    start = torch.from_numpy(first.test[of_first])
    classes = len(result.class_order[0])
    probes = {shots: probe_matrix(snapshots, shots=shots) for shots in SHOTS}
    accuracy = result.final_accuracy
    return Representations(
        inputs=input_information(torch.from_numpy(snapshots.inputs[of_first]), start, settings),
        classes=class_information(torch.from_numpy(last.test), labels, settings),
        same_class=pair_information(start, labels[of_first], settings),
        fano=None
        if accuracy is None
        else fano_bound(accuracy, [*Counter(one.label for one in tested).values()]),
        untouched=spectrum(snapshots.after[0].test[of_first], classes),
        first=spectrum(first.test[of_first], classes),
        last=spectrum(last.test[of_first], classes),
        movements=centroid_movements(snapshots),
        probes=probes,
        forward_transfer={shots: forward_transfer(matrix) for shots, matrix in probes.items()},
        masked_backward_transfer=masked_backward_transfer(snapshots),
        steps_to_halve=[
            steps_to_halve(snapshots.after[done].losses) if done in snapshots.after else None
            for done in range(1, snapshots.tasks + 1)
        ],
    )
