"""Commands under a launcher: what it asks for is done or refused in a sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from repcl.cli.launch import check_number, runs_at_a_time, wanted_chunks, wanted_precision
from repcl.errors import InvalidSetting
from repcl.model import Processes, best_device
from tests.conftest import save_encoder, tiny_encoder, toy_example


def test_mixed_precision_is_accelerates_setting():
    assert wanted_precision({}) == "no"
    assert wanted_precision({"ACCELERATE_MIXED_PRECISION": "bf16"}) == "bf16"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"ACCELERATE_MIXED_PRECISION": "fp16"}, "found fp16.*use bf16"),
        ({"ACCELERATE_MIXED_PRECISION": "fp8"}, "found fp8.*use bf16"),
        ({"ACCELERATE_USE_FSDP": "true"}, "without FSDP"),
        ({"ACCELERATE_USE_DEEPSPEED": "true"}, "without DeepSpeed"),
        ({"ACCELERATE_DYNAMO_BACKEND": "INDUCTOR"}, "--dynamo_backend no"),
    ],
)
def test_what_would_give_wrong_numbers_or_none_is_refused(asked, words):
    with pytest.raises(InvalidSetting, match=words):
        wanted_precision(asked)


def test_accumulation_steps_are_accelerates_setting():
    assert wanted_chunks({"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "4"}) == 4
    with pytest.raises(InvalidSetting, match="found '0'"):
        wanted_chunks({"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "0"})


@pytest.mark.parametrize(
    ("found", "environment", "words"),
    [
        (1, {"WORLD_SIZE": "2"}, "Expected 2 processes that reach each other, found 1"),
        (1, {"ACCELERATE_USE_CPU": "True", "MASTER_ADDR": "127.0.0.1"}, "--multi_gpu --num_processes N"),
    ],
)
def test_a_process_that_finds_itself_alone_does_not_make_the_run(found, environment, words):
    with pytest.raises(InvalidSetting, match=words):
        check_number(found, environment)


def test_launched_processes_make_one_run_at_a_time():
    here = Processes(number=2, device=best_device())
    assert runs_at_a_time(here, workers=None, device=None) == 1
    with pytest.raises(InvalidSetting, match="found --workers 2"):
        runs_at_a_time(here, workers=2, device=None)
    with pytest.raises(InvalidSetting, match="found --ray auto"):
        runs_at_a_time(here, workers=None, device=None, ray="auto")
    with pytest.raises(InvalidSetting, match="found --device xpu"):
        runs_at_a_time(here, workers=None, device="xpu")


def test_a_process_alone_makes_one_run_per_core():
    assert runs_at_a_time(Processes(), workers=None, device=None) == os.cpu_count()
    assert runs_at_a_time(Processes(), workers=3, device=None) == 3


def launch(folder: Path, *words: object, **environment: str) -> subprocess.CompletedProcess:
    """`accelerate launch` of two processes on processors, as a user types it."""
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", 2]
    command += ["--num_machines", 1, "--dynamo_backend", "no", "--main_process_port", 0]
    return subprocess.run(
        [str(word) for word in (*command, *words)],
        env={**os.environ, "ACCELERATE_USE_CPU": "true", **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.fixture(scope="module")
def workshop(tmp_path_factory) -> Path:
    """A folder with a tiny encoder and a user's data file."""
    folder = tmp_path_factory.mktemp("launch")
    encoder = tiny_encoder()
    save_encoder(encoder, folder / "encoder")
    rows = [toy_example("sentence", topic, n) for topic in ("fruit", "vehicle") for n in range(8)]
    lines = [f"{row.text} {number},{row.label}" for number, row in enumerate(rows)]
    (folder / "tickets.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return folder


BENCH = ("bench", "--benchmark", "tickets.csv", "--encoder", "encoder", "--preset", "smoke", "--tasks", 2)


@pytest.mark.slow
def test_two_launched_processes_make_one_run_and_print_it_once(workshop):
    words = ("--mixed_precision", "bf16", "--module", "repcl", *BENCH, "--method", "repcl", "--out", "both")
    done = launch(workshop, *words, ACCELERATE_GRADIENT_ACCUMULATION_STEPS="2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("task 2 of 2 learned") == 1
    result = json.loads((workshop / "both/tickets/repcl/round-0/result.json").read_text())
    assert (result["processes"], result["precision"]) == (2, "bf16")


FAILS_ON_ONE = """
from pathlib import Path

from repcl.benchmarks import StreamSpec
from repcl.cli.launch import launched
from repcl.experiments.runs.observers import StepEnds
from repcl.experiments.runs.pool import perform_all
from repcl.experiments.runs.run import make_run
from repcl.experiments.runs.spec import RunOptions, RunSpec

with launched() as processes:
    def hear(index, event):
        if processes.rank == 1 and isinstance(event, StepEnds):
            raise RuntimeError("this process is broken")

    options = RunOptions(encoder="encoder", preset="smoke", out=Path("broken"), processes=processes)
    run = RunSpec("fea", StreamSpec("tickets.csv", tasks=2), options).resolve()
    perform_all([run], make_run, workers=1, listener=hear)
"""


@pytest.mark.slow
def test_an_error_in_one_process_ends_them_all(workshop):
    (workshop / "fails.py").write_text(FAILS_ON_ONE)
    done = launch(workshop, "--mixed_precision", "no", "fails.py")
    assert done.returncode != 0
    assert "this process is broken" in done.stderr


@pytest.mark.slow
def test_other_commands_are_refused_under_a_launcher(workshop):
    done = launch(workshop, "--mixed_precision", "no", "--module", "repcl", "list", "methods")
    assert done.returncode != 0
    assert "start `repcl list` without it" in done.stderr
