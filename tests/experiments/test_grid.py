"""The grid: the same numbers however many workers, failures apart, and `kill -9` at any moment."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from repcl.experiments.events import Event
from repcl.experiments.failure import Failure
from repcl.experiments.grid import run_grid
from repcl.experiments.result import Result
from repcl.experiments.run_request import RunRequest


def requests(workshop: Path, out: Path, methods: tuple[str, ...] = ("fea", "sequential")) -> list[RunRequest]:
    options = {"encoder": str(workshop / "encoder"), "preset": "smoke", "out": out, "device": "cpu"}
    stream = {"name": str(workshop / "tickets.csv"), "tasks": 4}
    return [
        RunRequest(method, {**stream, "round": round}, options) for round in range(2) for method in methods
    ]


def ignore(number: int, event: Event) -> None:
    pass


def numbers(out: Path) -> dict[str, dict]:
    results = {}
    for path in sorted(out.glob("*/*/*/result.json")):
        content = json.loads(path.read_text())
        del content["seconds"], content["command"]
        results[str(path.relative_to(out))] = content
    return results


def test_two_workers_give_the_same_numbers_as_one(workshop, tmp_path):
    run_grid(requests(workshop, tmp_path / "one"), workers=1, listener=ignore)
    run_grid(requests(workshop, tmp_path / "two"), workers=2, listener=ignore)
    assert len(numbers(tmp_path / "one")) == 4
    assert numbers(tmp_path / "one") == numbers(tmp_path / "two")


def test_a_failed_run_is_reported_while_the_others_go_on(workshop, tmp_path):
    asked = requests(workshop, tmp_path)
    broken = RunRequest("fea", {**asked[0].stream, "tasks": 99}, asked[0].options)
    outcomes = run_grid([broken, asked[1]], workers=1, listener=ignore)
    assert isinstance(outcomes[0], Failure)
    assert "99" in outcomes[0].reason
    assert isinstance(outcomes[1], Result)


def test_events_tell_tasks_stages_steps_and_the_end(workshop, tmp_path):
    heard: list[str] = []
    run_grid(requests(workshop, tmp_path)[:1], workers=1, listener=lambda _, event: heard.append(event.kind))
    assert heard[:3] == ["task", "stage", "step"]
    assert heard.count("accuracy") == 4
    assert heard[-1] == "done"


def kill_and_go_on(workshop: Path, out: Path, *, methods: tuple[str, ...], rounds: int, kills: int) -> None:
    """Start the command, kill it with all its workers at a random line of its output, and start it again."""
    command = [sys.executable, "-m", "repcl", "bench", "--benchmark", str(workshop / "tickets.csv")]
    command += [
        "--encoder",
        str(workshop / "encoder"),
        "--preset",
        "smoke",
        "--tasks",
        "4",
        "--device",
        "cpu",
    ]
    command += [word for method in methods for word in ("--method", method)]
    command += ["--rounds", str(rounds), "--workers", "2", "--out", str(out)]
    draw = random.Random(0)
    for attempt in range(kills + 1):
        last_line = draw.randint(1, 6) if attempt < kills else None
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        ) as process:
            for number, _ in enumerate(process.stdout, start=1):
                if number == last_line:
                    os.killpg(process.pid, signal.SIGKILL)


def test_a_killed_grid_goes_on_to_the_same_numbers(workshop, tmp_path):
    kill_and_go_on(workshop, tmp_path / "killed", methods=("fea", "sequential"), rounds=1, kills=1)
    run_grid(requests(workshop, tmp_path / "whole")[:2], workers=1, listener=ignore)
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")


@pytest.mark.slow
def test_a_grid_of_8_runs_killed_three_times_equals_an_undisturbed_one(workshop, tmp_path):
    methods = ("fea", "sequential", "repcl", "joint")
    kill_and_go_on(workshop, tmp_path / "killed", methods=methods, rounds=2, kills=3)
    run_grid(requests(workshop, tmp_path / "whole", methods), workers=2, listener=ignore)
    assert len(numbers(tmp_path / "whole")) == 8
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")
