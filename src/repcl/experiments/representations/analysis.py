"""The analysis of finished runs: everything that can be asked of what they saved, as it stands in a file."""

import json
import os
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
from repcl.evaluation import TestedExample, class_forgetting
from repcl.experiments.representations.read import how_to_save, read_snapshots
from repcl.experiments.runs.observers import Tell
from repcl.experiments.runs.pool import torch_threads
from repcl.experiments.runs.result import LARGEST_RESULT, Result
from repcl.experiments.runs.store import ANALYSIS, StoredRun
from repcl.files import parse_json, read_plain, write_whole
from repcl.presets import PRESETS, load_preset

FORMAT = 2  # 1 had pairs of a text with itself in I(Z1;Z1+)
AUTHORS_ANALYSIS = "analysis-authors.json"  # for comparison only: no report reads it


@dataclass(frozen=True)
class Representations:
    """What the saved representations of a run say.

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
        representations: None where the run did not save them.
    """

    fingerprint: str
    settings: EstimatorSettings
    confusions: Sequence[Confusion]
    forgetting: Mapping[str, float]
    representations: Representations | None
    format: int = field(default=FORMAT)


_AS_JSON: TypeAdapter[RunAnalysis] = TypeAdapter(RunAnalysis)


@dataclass(frozen=True)
class AnalysisSpec:
    """One run to be analyzed, and the file in its folder that the answers go to."""

    run: StoredRun
    settings: EstimatorSettings
    fresh: bool = False
    file: str = ANALYSIS

    @property
    def title(self) -> str:
        """How the analysis is called in overviews."""
        return f"analysis of {self.run.folder}"

    @property
    def error_log(self) -> Path:
        """Where its traceback is kept if it fails."""
        return self.run.folder / "analysis.error.txt"

    @property
    def is_shared(self) -> bool:
        """One process makes an analysis."""
        return False


def perform_analysis(spec: AnalysisSpec, _: Tell) -> RunAnalysis:
    """Analyze a run as a job of a pool."""
    return analyze_run(spec.run, spec.settings, fresh=spec.fresh, file=spec.file)


def analyze_run(
    run: StoredRun, settings: EstimatorSettings, *, fresh: bool = False, file: str = ANALYSIS
) -> RunAnalysis:
    """Analyze a run and write the file beside its result; an analysis already there is read."""
    result, path = run.result, run.folder / file
    earlier = None if fresh else read_analysis(path)
    if earlier is not None and _is_current(earlier, result, settings):
        return earlier
    if not run.has_predictions:
        raise ResultMismatch(
            f"{run.predictions_file} is missing, and a run is not analyzed without its predictions; "
            f"make it again, and {how_to_save(result)}"
        )
    tested, snapshots = run.predictions(), read_snapshots(run)
    class_tasks = {name: task for task, names in reversed([*enumerate(result.class_order)]) for name in names}
    with torch_threads(1):
        found = RunAnalysis(
            result.fingerprint,
            settings,
            confusions=taken_for_newer(tested, class_tasks),
            forgetting=class_forgetting(tested),
            representations=None if snapshots is None else _ask(snapshots, run, tested, settings),
        )
    write_whole(path, _to_json(found))
    return found


def _to_json(analysis: RunAnalysis) -> str:
    return json.dumps(_AS_JSON.dump_python(analysis, mode="json"), indent=1) + "\n"


def read_analysis(path: Path) -> RunAnalysis | None:
    """The analysis in a file, if it was made by this version."""
    if not os.path.lexists(path):
        return None
    try:
        content: dict[str, Any] = parse_json(read_plain(path, LARGEST_RESULT))
        if content["format"] != FORMAT:
            return None
        found = _AS_JSON.validate_python(content)
        parse_json(_to_json(found))  # numbers in quotes, too, may only be so large
        if found.representations is not None and not _is_whole(found.representations):
            raise ValueError("lists of unequal lengths")
        return found
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        raise ResultMismatch(f"{path} is damaged; delete it and analyze the run again.") from error


def _is_whole(known: Representations) -> bool:
    """Whether tables and figures find in the lists what they look for."""
    estimates = (known.inputs, known.classes, known.same_class)
    spectra = (known.untouched, known.first, known.last)
    sizes = {len(matrix) for matrix in known.probes.values()}
    sizes |= {len(row) for matrix in known.probes.values() for row in matrix}
    return (
        all(len(one.steps) == len(one.curve) == len(one.fitted_curve) for one in estimates)
        and all(one.value is None or one.steps for one in estimates)
        and all(0 < len(one.raw) == len(one.unit) == len(one.shares) for one in spectra)
        and len(sizes) <= 1
        and set(known.probes) == set(known.forward_transfer)
    )


def estimator_of(result: Result) -> EstimatorSettings:
    """The estimator of the preset that a run was made with; a user's own file may be gone."""
    is_there = result.preset in PRESETS or Path(result.preset).is_file()
    return load_preset(result.preset).estimator if is_there else EstimatorSettings()


def _is_current(earlier: RunAnalysis, result: Result, settings: EstimatorSettings) -> bool:
    """Whether nothing has changed since: the run, the estimator, and whether there are representations."""
    is_whole = (earlier.representations is None) == (result.representations is None)
    return is_whole and (earlier.fingerprint, earlier.settings) == (result.fingerprint, settings)


def _ask(
    snapshots: Snapshots, run: StoredRun, tested: Sequence[TestedExample], settings: EstimatorSettings
) -> Representations:
    first, last, result = snapshots.first, snapshots.last, run.result
    if first is None or last is None:
        raise ResultMismatch(
            f"{run.folder} does not hold representations after the first and the last task; "
            f"{how_to_save(result)}"
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
