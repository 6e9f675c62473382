"""Checks that the metrics in result files are those of the predictions stored beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

from repcl.errors import ResultMismatch
from repcl.evaluation import TestedExample, read_predictions, score_predictions
from repcl.experiments.result import RESULT, read_result

METRICS = (
    "accuracy_matrix",
    "accuracy_after_task",
    "final_accuracy",
    "forgetting_rate",
    "average_incremental_accuracy",
    "backward_transfer",
    "forgetting_rate_f1",
)


@dataclass(frozen=True)
class Verification:
    """How many results agree with their predictions, and how many have none stored."""

    checked: int
    without_predictions: int


def verify_results(folder: Path) -> Verification:
    """Recompute every metric of every result below a folder; one that differs is an error."""
    outcomes = [_verify(path) for path in sorted(folder.glob(f"*/*/round-*/{RESULT}"))]
    return Verification(outcomes.count(True), outcomes.count(False))


def _verify(path: Path) -> bool:
    """Whether there was something to compare with."""
    result = read_result(path)
    predictions = path.parent / Path(result.predictions).name
    if not predictions.is_file():
        return False
    tested = read_predictions(predictions)
    if len(tested) != result.data.test:
        _fail(path, "number of test examples", result.data.test, len(tested))
    for metric, computed in _recomputed(tested, len(result.class_order)).items():
        stored = getattr(result, metric)
        if not _agree(stored, computed):
            _fail(path, metric, stored, computed)
    return True


def _recomputed(tested: Sequence[TestedExample], tasks: int) -> dict[str, Any]:
    scores = score_predictions(tested, tasks)
    values = {metric: getattr(scores, metric) for metric in METRICS}
    return values | {"accuracy_matrix": scores.accuracy_matrix.as_lists()}


def _agree(stored: Any, computed: Any) -> bool:
    """Equal numbers, but for what another machine may round differently; lists place by place."""
    if isinstance(stored, list | tuple) and isinstance(computed, list | tuple):
        return len(stored) == len(computed) and all(map(_agree, stored, computed))
    if isinstance(stored, float) and isinstance(computed, float):
        return isclose(stored, computed, abs_tol=1e-9)
    return bool(stored == computed)


def _fail(path: Path, metric: str, stored: Any, computed: Any) -> None:
    raise ResultMismatch(
        f"{path} says {metric} = {_short(stored)}, its predictions give {_short(computed)}: "
        "one of the two files was changed; run it again with --fresh."
    )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
