"""The page on scale: its table is the command's, and the formula meets what was measured."""

import json
import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from repcl.cli import app

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/scale.md").read_text(encoding="utf-8")
COST = runpy.run_path(str(ROOT / "benchmarks/cost_table.py"))
Assumptions, cost = COST["Assumptions"], COST["cost"]


def seconds(run: str, *stages: str) -> float:
    """Processor time, or wall time of a run that is older than its being stored."""
    stored = json.loads((ROOT / "results" / run / "result.json").read_text(encoding="utf-8"))["seconds"]
    tasks = stored.get("processor_tasks") or stored["tasks"]
    return sum(task.get(stage, 0.0) for task in tasks for stage in stages)


def test_the_table_of_the_page_is_what_the_command_prints():
    assert COST["table"](COST["SIZES"], Assumptions()) in PAGE


def test_replay_is_counted_as_epochs_times_exemplars_of_all_seen_classes():
    given = Assumptions(
        classes_per_task=2, memory_per_class=3, replay_epochs=4, memory_total=12, train_rate=2.0
    )
    own = cost(5, 100, given)
    # tasks end at 2, 4 and 5 classes; the first has no replay; 12 in all leave 3 a class of 4 and 2 of 5
    assert own.replay == pytest.approx(4 * (3 * 4 + 3 * 5) / 2)
    assert own.bounded_replay == pytest.approx(4 * (3 * 4 + 2 * 5) / 2)


def test_replay_grows_with_the_square_of_the_classes_and_bounded_replay_does_not():
    small, large = (cost(classes, 10_000, Assumptions()) for classes in (500, 1_000))
    assert large.replay / small.replay == pytest.approx(4, rel=0.02)
    assert large.bounded_replay / small.bounded_replay == pytest.approx(2, rel=0.15)


def test_the_share_of_replay_in_fea_is_near_what_was_measured_on_hwu64():
    own, run = cost(50, 8156, Assumptions(classes_per_task=5)), "hwu64/fea/round-0"
    measured = seconds(run, "replay") / seconds(run, "initial learning", "memory update")
    assert own.replay / own.new_texts == pytest.approx(measured, rel=0.1)


def test_the_cost_of_instant_is_near_what_was_measured_on_clinc150():
    own = cost(150, 15_000, Assumptions(classes_per_task=15))
    measured = seconds("clinc150/instant/round-0", "embedding", "solving")
    assert own.instant == pytest.approx(measured, rel=0.1)


@pytest.mark.parametrize("command", re.findall(r"^    (repcl [^#\n]+)", PAGE, flags=re.MULTILINE))
def test_commands_of_the_page_parse(command):
    group = get_command(app)
    words = shlex.split(command)[1:]
    with group.make_context("repcl", words) as context:
        name, sub_command, rest = group.resolve_command(context, words)
        sub_command.make_context(name, list(rest), parent=context)
