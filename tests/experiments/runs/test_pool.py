"""The pool: the same numbers however many workers, failures apart, and `kill -9` at any moment."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from repcl.benchmarks import StreamSpec
from repcl.experiments.runs import spec as spec_module
from repcl.experiments.runs.observers import Ended, Event, StageBegins, StepEnds, TaskBegins, TaskEnds
from repcl.experiments.runs.pool import Failure, perform_all
from repcl.experiments.runs.result import Result
from repcl.experiments.runs.run import make_run
from repcl.experiments.runs.spec import ResolvedRun, RunOptions, RunSpec


def resolved(
    workshop: Path, out: Path, methods: tuple[str, ...] = ("fea", "sequential"), **changes: object
) -> list[ResolvedRun]:
    """Two rounds of each method on the data file of the workshop."""
    usual = {"encoder": str(workshop / "encoder"), "device": "cpu"}
    options = RunOptions(preset="smoke", out=out, **(usual | changes))
    streams = [StreamSpec(str(workshop / "tickets.csv"), round=round, tasks=4) for round in range(2)]
    return [RunSpec(method, stream, options).resolve() for stream in streams for method in methods]


def make_here(runs: list[ResolvedRun], workers: int = 1) -> list[Result | Failure]:
    return perform_all(runs, make_run, workers=workers, listener=ignore)


def ignore(index: int, event: Event) -> None:
    pass


def numbers(out: Path) -> dict[str, dict]:
    results = {}
    for path in sorted(out.glob("*/*/*/result.json")):
        content = json.loads(path.read_text())
        del content["seconds"], content["command"], content["finished"]
        results[str(path.relative_to(out))] = content
    return results


def test_two_workers_give_the_same_numbers_as_one(workshop, tmp_path):
    make_here(resolved(workshop, tmp_path / "one"))
    make_here(resolved(workshop, tmp_path / "two"), workers=2)
    assert len(numbers(tmp_path / "one")) == 4
    assert numbers(tmp_path / "one") == numbers(tmp_path / "two")


def test_a_failed_run_is_reported_while_the_others_continue(workshop, tmp_path):
    broken, whole = resolved(workshop, tmp_path, device="cuda:99")[0], resolved(workshop, tmp_path)[1]
    outcomes = make_here([broken, whole])
    assert isinstance(outcomes[0], Failure)
    assert outcomes[0].is_user_error
    assert "cuda:99" in outcomes[0].reason
    assert isinstance(outcomes[1], Result)


def test_events_tell_tasks_stages_steps_and_the_end(workshop, tmp_path):
    heard: list[type] = []
    perform_all(
        resolved(workshop, tmp_path)[:1],
        make_run,
        workers=1,
        listener=lambda _, event: heard.append(type(event)),
    )
    assert heard[:3] == [TaskBegins, StageBegins, StepEnds]
    assert heard.count(TaskEnds) == 4
    assert heard[-1] is Ended


def test_data_that_several_runs_learn_are_read_once(workshop, tmp_path):
    spec_module._load_once.cache_clear()
    make_here(resolved(workshop, tmp_path))
    assert spec_module._load_once.cache_info().misses == 2  # one for each round


def kill_and_resume(workshop: Path, out: Path, *, methods: tuple[str, ...], rounds: int, kills: int) -> None:
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


def test_a_killed_grid_resumes_to_the_same_numbers(workshop, tmp_path):
    kill_and_resume(workshop, tmp_path / "killed", methods=("fea", "sequential"), rounds=1, kills=1)
    make_here(resolved(workshop, tmp_path / "whole")[:2])
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")


@pytest.mark.slow
def test_a_grid_of_8_runs_killed_three_times_equals_an_undisturbed_one(workshop, tmp_path):
    methods = ("fea", "sequential", "repcl", "joint")
    kill_and_resume(workshop, tmp_path / "killed", methods=methods, rounds=2, kills=3)
    make_here(resolved(workshop, tmp_path / "whole", methods), workers=2)
    assert len(numbers(tmp_path / "whole")) == 8
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")
