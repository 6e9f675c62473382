"""`kill -9` at any moment: the folder opens, at a whole revision, and answers as that revision did."""

import os
import random
import signal
import time
import traceback
from pathlib import Path

import numpy as np
import pytest

from repcl import ContinualClassifier
from repcl.classifier import ModelFolder
from tests.classifier.conftest import toy

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
ASKED = toy("fruit", "weather", texts=3, start=80)[0]


def fork_child(path: Path, seed: int) -> int:
    """A forked process that changes the folder until it is killed; a fork spares it seconds of imports."""
    from tests.classifier.kill_child import live

    child = os.fork()
    if child == 0:
        try:
            live(path, seed)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


def check(path: Path, known: dict[int, np.ndarray]) -> None:
    """The folder opens; revisions seen before answer as before; new ones are remembered."""
    folder = ModelFolder(path)
    current = folder.current()
    for number in folder.numbers():
        folder.check(number)
    answers = ContinualClassifier.load(path, device="cpu").predict_proba(ASKED)
    np.testing.assert_array_equal(known.setdefault(current, answers), answers)
    assert current in folder.numbers()


def kill_many(make, path: Path, kills: int) -> set[int]:
    draw = random.Random(0)
    classifier = make("sequential", holdout_per_class=1).fit(*toy("fruit", "vehicle", texts=6))
    classifier.save(path)
    known: dict[int, np.ndarray] = {}
    check(path, known)
    for number in range(kills):
        child = fork_child(path, seed=number)
        time.sleep(draw.uniform(0.0, 1.0))
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the child ended by itself"
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        check(path, known)
    return set(known)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_ten_kills_leave_a_whole_revision_each_time(make, tmp_path):
    kill_many(make, tmp_path / "model", 10)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_two_hundred_kills_leave_a_whole_revision_each_time(make, tmp_path):
    assert len(kill_many(make, tmp_path / "model", 200)) > 10


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_after_a_kill_the_next_process_learns_on_and_sweeps_up(make, tmp_path):
    path = tmp_path / "model"
    make("sequential").fit(*toy("fruit", "vehicle", texts=6)).save(path)
    child = fork_child(path, seed=1)
    time.sleep(0.5)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    classifier = ContinualClassifier.load(path, device="cpu")
    number = classifier.rename_class(classifier.classes_[0], "after").save(path)
    assert ModelFolder(path).current() == number
    assert not list(path.rglob(".part-*"))
    needed = {blob.file for one in ModelFolder(path).history() for blob in one.contents.blobs()}
    assert {file.name for file in (path / "blobs").iterdir()} == needed


def learn_and_end(path: Path, topic: str) -> int:
    """A forked process that teaches the folder one class, as `repcl learn` does."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            folder = ModelFolder(path)
            with folder.lock(f"learning {topic}", wait=120):
                classifier = ContinualClassifier.load(path, device="cpu").partial_fit(*toy(topic, texts=4))
                classifier.commit(folder)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_three_processes_that_learn_at_once_wait_for_each_other_and_nothing_is_lost(make, tmp_path):
    path = tmp_path / "model"
    make("sequential").fit(*toy("fruit", "vehicle", texts=6)).save(path)
    children = [learn_and_end(path, topic) for topic in ("weather", "place", "person")]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert set(ContinualClassifier.load(path).classes_) == {"fruit", "vehicle", "weather", "place", "person"}
    assert [revision.parent for revision in ModelFolder(path).history()] == [None, 1, 2, 3]
