"""`result.json`: what is damaged is named, what was written before is read."""

import json
from pathlib import Path
from typing import Any

import pytest

from repcl.errors import ResultMismatch
from repcl.experiments import read_result
from repcl.experiments.result import write_result
from tests.experiments.made_up import class_names, invent_predictions, write_run

NAN = float("nan")
COMMITTED = sorted(Path(__file__).parents[2].glob("results/**/round-*/result.json"))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"seconds": {}}, "seconds.tasks"),
        ({"seconds": {"tasks": [{"replay": "long"}], "all": 1.0}}, "seconds.tasks.0.replay"),
        ({"seconds": {"tasks": [], "all": NAN}}, "seconds.all"),
        ({"accuracy_matrix": [[1.0], [1.0, 1.0]]}, "accuracy_matrix"),
        ({"accuracy_matrix": [[1.0, None]]}, "accuracy_matrix"),
        ({"accuracy_matrix": [[1.0, None], [NAN, 1.0]]}, "accuracy_matrix.1.0"),
        ({"accuracy_after_task": []}, "accuracy_after_task"),
        ({"accuracy_after_task": [1.0, NAN]}, "accuracy_after_task.1"),
        ({"final_accuracy": float("inf")}, "final_accuracy"),
        ({"class_order": []}, "class_order"),
    ],
)
def test_a_damaged_place_is_named(tmp_path: Path, change: dict[str, Any], place: str) -> None:
    classes = class_names(2, 1)
    write_run(tmp_path, "fea", invent_predictions(classes, round=0, keeps=1.0), classes=classes)
    path = tmp_path / "demo/fea/round-0/result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ResultMismatch, match=rf"is damaged at {place} \(.*use --fresh to run it again"):
        read_result(path)


def test_committed_results_are_written_as_they_were(tmp_path: Path) -> None:
    assert COMMITTED
    for path in COMMITTED:
        write_result(read_result(path), tmp_path)
        before, after = (json.loads(file.read_text()) for file in (path, tmp_path / "result.json"))
        # entries that came later have a default; all others stand there as they did
        assert json.dumps({key: after[key] for key in before}) == json.dumps(before)
