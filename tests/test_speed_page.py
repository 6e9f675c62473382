"""The measurement of speed: its wiring on a tiny encoder, its intervals, and the page that is made of it."""

import json
import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.classifier.conftest import save_tiny_encoder

ROOT = Path(__file__).parent.parent
# the tiny tokenizer cuts words of the demo into many pieces
pytestmark = pytest.mark.filterwarnings("ignore:.* texts have over")
PAGE = runpy.run_path(str(ROOT / "docs/make_speed.py"))


@pytest.fixture
def speed(monkeypatch) -> ModuleType:
    """The script, imported as it is when it is run."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "1")
    import speed

    return speed


@pytest.fixture
def measured(speed) -> ModuleType:
    from speed_parts import measured

    return measured


def rows_of(speed, tmp_path, part) -> dict[str, float]:
    encoder = save_tiny_encoder(tmp_path / "encoder")
    speed.main(["--quick", "--encoder", str(encoder), "--out", str(tmp_path / "out"), "--only", part])
    stored = json.loads((tmp_path / "out" / f"{part}.json").read_text(encoding="utf-8"))
    assert stored["command"] == f"python benchmarks/speed.py --only {part}"
    return {row["what"]: row["value"] for row in stored["rows"]}


def test_the_page_is_what_the_stored_measurements_give() -> None:
    template = (ROOT / "docs/speed.template.md").read_text(encoding="utf-8")
    page = (ROOT / "docs/speed.md").read_text(encoding="utf-8")
    assert page == PAGE["render_page"](template, ROOT / "results/speed")


def test_a_table_says_which_aims_were_reached(tmp_path) -> None:
    rows = [
        {"what": "a / b", "value": 0.5, "low": 0.4, "high": 0.6, "aim": 0.5},
        {"what": "peak", "value": 1234.0, "low": 1234.0, "high": 1234.0, "aim": None},
        {"what": "c", "value": 2.0, "low": 1.0, "high": 3.0, "aim": 1.5},
    ]
    part = {"command": "run", "unit": "ratio", "processor": "P", "date": "2026-01-02", "rows": rows}
    (tmp_path / "steps.json").write_text(json.dumps(part), encoding="utf-8")
    found = PAGE["render_page"]("{{ steps }} {{ growth }}", tmp_path)
    assert "| a / b | 0.50 | 0.40 to 0.60 | 0.50 | reached |" in found
    assert "| peak | 1,234 |  |  |  |" in found
    assert "| c | 2.00 | 1.00 to 3.00 | 1.50 | missed |" in found
    assert found.endswith("*Not measured yet.*")


def test_a_ratio_is_that_of_sums_and_its_interval_holds_the_spread(measured) -> None:
    row = measured.ratio("x", {"a": [1.0, 3.0], "b": [2.0]}, [1.0, 2.0], 1.5)
    assert row.value == pytest.approx(6 / 3)
    assert row.low == pytest.approx(4 / 4)  # 1 + 1 + 2 over 2 + 2
    assert row.high == pytest.approx(8 / 2)


def test_equal_times_leave_no_spread(measured) -> None:
    row = measured.ratio_of_medians("x", [2.0, 2.0, 2.0], [1.0, 1.0], None)
    assert (row.value, row.low, row.high) == (2.0, 2.0, 2.0)


def test_turns_are_taken_one_after_another_and_an_error_comes_out(speed) -> None:
    from speed_parts.turns import in_turns

    order = []

    def contender(name: str, slices: int, ends) -> None:
        for number in range(slices):
            order.append(f"{name}{number}")
            ends("step")

    found = in_turns({"a": lambda ends: contender("a", 3, ends), "b": lambda ends: contender("b", 2, ends)})
    assert order == ["a0", "b0", "a1", "b1", "a2"]
    assert [one.stage for one in found["a"]] == ["step", "step", "step", "end"]

    def fails(ends) -> None:
        raise ValueError("as wanted")

    with pytest.raises(ValueError, match="as wanted"):
        in_turns({"a": fails})


def test_steps_of_all_contenders_are_compared(speed, tmp_path) -> None:
    rows = rows_of(speed, tmp_path, "steps")
    for pair in ("fea / plain fea", "repcl / plain repcl", "repcl fast / repcl"):
        for stage in ("initial learning", "replay", "whole run"):
            assert rows[f"{pair}: {stage}"] > 0
    assert rows["fea / its matrix products at the best rate"] > 0


def test_answers_of_exports_are_compared_with_torch(speed, tmp_path) -> None:
    rows = rows_of(speed, tmp_path, "answers")
    assert rows["one text: int8 / bare encoder"] > 0
    for method in ("instant", "fea"):
        assert rows[f"{method}: fp32, other answers than torch, %"] == 0


def test_commands_are_those_that_a_user_types(speed, tmp_path, monkeypatch) -> None:
    from speed_parts import commands

    seen = []

    def run(command: list[str]) -> float:
        seen.append(command)
        return 2.0 if command[-1] == "import torch" else 1.0

    monkeypatch.setattr(commands, "cpu_seconds", run)
    rows = rows_of(speed, tmp_path, "commands")
    assert set(rows.values()) == {0.5}
    words = {word for command in seen for word in command}
    assert {"predict", "learn", "--help", sys.executable} < words
