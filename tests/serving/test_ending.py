"""How a service ends: told to, it finishes what it does; killed, the next one finds everything whole."""

import json
import random
import signal
import threading
import time

import numpy as np
import pytest

from repcl.classifier import ContinualClassifier, ModelFolder
from tests.serving.conftest import ROUNDING, examples
from tests.serving.running import Running

TEXTS = [one["text"] for one in examples("fruit", "weather", texts=3, start=80)]
LONGEST_JOB = 8.0


def test_a_service_that_is_told_to_end_finishes_what_it_does(model):
    service, found = Running(model), []
    asking = threading.Thread(target=lambda: found.append(service.ask("predict", {"texts": TEXTS * 160})))
    with ModelFolder(model).lock("testing"):  # so that a job is under way, and has written nothing
        job = service.ask("learn", {"examples": examples("place")})["id"]
        asking.start()
        while "repcl_texts_total 0" in service.page("metrics"):  # its first texts are not answered yet
            pass
        assert service.end(signal.SIGTERM) == 0
    asking.join()
    assert len(found[0]["predictions"]) == len(TEXTS) * 160
    (left,) = json.loads((model / "service" / "jobs.json").read_text())["record"]["jobs"]
    assert (left["job"]["id"], left["job"]["state"]) == (job, "canceled")
    assert ModelFolder(model).numbers() == [1]


def check(service: Running, model) -> int:
    """The service answers as the revision in use does, which is whole; its number."""
    found = service.ask("predict", {"texts": TEXTS})
    number = ModelFolder(model).current()
    assert found["revision"] == number
    expected = ContinualClassifier.load(model, device="cpu").predict_proba(TEXTS).max(axis=1)
    confidence = [one["confidence"] for one in found["predictions"]]
    np.testing.assert_allclose(confidence, expected, atol=ROUNDING)
    for one in ModelFolder(model).numbers():
        ModelFolder(model).check(one)
    return number


def kill_many(model, kills: int) -> dict[str, int]:
    """Kill a service that learns, again and again; in which states the jobs were found afterwards."""
    draw, states, killed, before = random.Random(0), {}, None, 1
    for turn in range(kills + 1):
        service = Running(model)
        number = check(service, model)
        jobs = {job["id"]: job["state"] for job in service.ask("jobs")["jobs"]}
        if killed is not None:
            state = jobs[killed]
            states[state] = states.get(state, 0) + 1
            assert state in ("lost", "done")
            assert number in ((before, before + 1) if state == "lost" else (before + 1,))
        assert "running" not in jobs.values()
        before = number
        if turn < kills:
            body = {"examples": examples("place", "person", texts=8, start=10 * turn)}
            killed = service.ask("learn", body)["id"]
            time.sleep(draw.uniform(0, LONGEST_JOB))
        service.end(signal.SIGKILL)
    return states


def test_a_service_that_is_killed_while_it_learns_leaves_a_whole_revision(model):
    assert sum(kill_many(model, 1).values()) == 1


@pytest.mark.slow
def test_fifty_kills_leave_a_whole_revision_each_time(model):
    states = kill_many(model, 50)
    assert sum(states.values()) == 50
    assert states["lost"] > 10


def test_what_a_killed_service_was_learning_is_not_written_after_it(model):
    service = Running(model)
    with ModelFolder(model).lock("testing"):
        job = service.ask("learn", {"examples": examples("place")})["id"]
        while (
            service.ask(f"jobs/{job}")["progress"] is None
        ):  # its process is there, and waits for the folder
            pass
        service.end(signal.SIGKILL)
        learner_ended = threading.Event()
        learner_ended.wait(1.0)
    again = Running(model)
    try:
        assert again.ask(f"jobs/{job}")["state"] == "lost"
        assert ModelFolder(model).numbers() == [1]
    finally:
        again.end(signal.SIGTERM)
