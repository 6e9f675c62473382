"""Every operation on files may be the last one: the folder opens at a whole revision all the same.

In the manner of SQLite: an action is run once to count its operations on files, then once per operation
and way to break, in a forked process. Afterwards the folder answers as before or as after the action,
the next action works and sweeps up, and files of others are as they were.
"""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repcl import ContinualClassifier
from repcl.classifier import ModelFolder
from repcl.classifier.store.files import CannotWrite
from repcl.errors import RepclError
from tests.classifier.conftest import toy
from tests.classifier.test_store import made_up, texts
from tests.crash import WAYS, Breakage, run_broken

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::repcl.classifier.ForgettingWarning"),
]

FOREIGN = {
    "notes.txt": "mine",
    "blobs/thesis.tex": "mine",
    f"blobs/{'0' * 64}.jsonl": "mine",
    "blobs/.part-mine": "mine",
    "revisions/notes.json": "mine",
    ".part-000000000000-thesis.tex": "mine",
}

# ---- the folder by itself: every point, every way, in seconds -----------------------------------


def learn(path: Path) -> None:
    folder = ModelFolder(path)
    with folder.lock("learning"):
        folder.commit(made_up("a", "b", "c", weights=b"three"), [], parent=2)


def refused(path: Path) -> None:
    """Learn what the guard advises against: a new revision, but the old one stays in use."""
    folder = ModelFolder(path)
    with folder.lock("learning"):
        folder.commit(made_up("a", "x", weights=b"three"), [], parent=2, make_current=False)


def rollback(path: Path) -> None:
    folder = ModelFolder(path)
    with folder.lock("rolling back"):
        folder.rollback(1)


def prune(path: Path) -> None:
    folder = ModelFolder(path)
    with folder.lock("purging"):
        folder.purge([1])


def remove_and_purge(path: Path) -> None:
    folder = ModelFolder(path)
    with folder.lock("removing a class"):
        folder.commit(made_up("b", weights=b"three"), [], parent=2)
        folder.purge([1, 2])


STORE_ACTIONS = [learn, refused, rollback, prune, remove_and_purge]


def two_revisions(path: Path) -> Path:
    folder = ModelFolder(path)
    for weights, classes in ((b"one", "a"), (b"two", "ab")):
        with folder.lock("testing"):
            folder.commit(made_up(*classes, weights=weights), [], parent=None)
    return path


def plant(path: Path) -> None:
    for name, text in FOREIGN.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)


def check_foreign(path: Path) -> None:
    assert {name: (path / name).read_text() for name in FOREIGN} == FOREIGN


def check_swept(path: Path) -> None:
    """No file of ours is left that no revision needs."""
    folder = ModelFolder(path)
    for number in folder.numbers():
        folder.check(number)
    needed = {blob.file for revision in folder.history() for blob in revision.contents.blobs()}
    own = {name.removeprefix("blobs/") for name in FOREIGN if name.startswith("blobs/")}
    assert {file.name for file in (path / "blobs").iterdir()} - own == needed
    assert {str(file.relative_to(path)) for file in path.rglob(".part-*")} <= set(FOREIGN)


def said(path: Path) -> list[str]:
    """What the folder answers."""
    found: list[str] = ModelFolder(path).open(texts)[1]
    return found


class Sweep:
    """All points of one action on copies of one folder."""

    def __init__(
        self, start: Path, room: Path, action: Callable[[Path], None], answer: Callable[[Path], Any]
    ) -> None:
        self.start, self.room, self.action, self.answer = start, room, action, answer
        self.before = answer(start)
        changed = self.copy()
        outcome, self.operations = run_broken(changed, lambda: action(changed), None)
        assert outcome == "done"
        self.after = answer(changed)
        self.outcomes: Counter[str] = Counter()

    def copy(self) -> Path:
        """A fresh folder, with files of others in it."""
        path = self.room / "model"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.start, path)
        plant(path)
        return path

    def try_point(self, breakage: Breakage) -> None:
        """Break one operation, then look."""
        path = self.copy()
        outcome, _ = run_broken(path, lambda: self.action(path), breakage, (CannotWrite,))
        assert outcome in ("done", "died") or outcome.startswith("said: "), f"{breakage}: {outcome}"
        answer = self.answer(path)
        assert answer in (self.before, self.after), f"{breakage}: neither old nor new"
        if outcome == "done":
            assert answer == self.after, f"{breakage}: said to be done, but it is not"
        check_foreign(path)
        with ModelFolder(path).lock("next"):
            ModelFolder(path).commit(made_up("next"), [], parent=None)
        assert said(path) == ["text of next"]
        check_swept(path)
        check_foreign(path)
        self.outcomes[outcome.partition(":")[0]] += 1

    def try_all(self, every: int = 1) -> int:
        """Break every operation, or one in so many, in every way; how many that were."""
        points = [Breakage(at, way) for way in WAYS for at in range(len(self.operations))][::every]
        for point in points:
            self.try_point(point)
        assert self.outcomes["died"] > 0
        return len(points)


def tell(capsys, what: str, points: int, outcomes: Counter[str]) -> None:
    """How many points were tried, for the one who asked for all of them."""
    with capsys.disabled():
        sys.stdout.write(f"\n{what}: {points} crash points {dict(outcomes)}\n")


@pytest.mark.parametrize("action", STORE_ACTIONS)
def test_some_points_at_which_a_change_of_the_folder_breaks(action, tmp_path):
    sweep = Sweep(two_revisions(tmp_path / "start"), tmp_path, action, said)
    sweep.try_all(every=11)


@pytest.mark.slow
@pytest.mark.parametrize("action", STORE_ACTIONS)
def test_all_points_at_which_a_change_of_the_folder_breaks(action, tmp_path, capsys):
    sweep = Sweep(two_revisions(tmp_path / "start"), tmp_path, action, said)
    points = sweep.try_all()
    tell(capsys, action.__name__, points, sweep.outcomes)


def make_new(path: Path) -> None:
    folder = ModelFolder(path)
    with folder.lock("learning"):
        folder.commit(made_up("a", weights=b"one"), [], parent=None)


@pytest.mark.parametrize(
    "every", [5, pytest.param(1, marks=pytest.mark.slow)], ids=["some points", "all points"]
)
def test_a_new_folder_that_breaks_is_made_by_the_next_process(tmp_path, every, capsys):
    path = tmp_path / "model"
    operations = run_broken(path, lambda: make_new(path), None)[1]
    points = [Breakage(at, way) for way in WAYS for at in range(len(operations))][::every]
    for breakage in points:
        shutil.rmtree(path)
        outcome, _ = run_broken(path, lambda: make_new(path), breakage, (CannotWrite,))
        assert outcome in ("done", "died") or outcome.startswith("said: "), f"{breakage}: {outcome}"
        if ModelFolder(path).exists:
            assert said(path) == ["text of a"], breakage
        make_new(path)
        assert said(path) == ["text of a"], breakage
        needed = {blob.file for one in ModelFolder(path).history() for blob in one.contents.blobs()}
        assert {file.name for file in (path / "blobs").iterdir()} == needed, breakage
        assert not list(path.rglob(".part-*")), breakage
    if every == 1:
        tell(capsys, "make a new folder", len(points), Counter())


@pytest.mark.parametrize("action", [rollback, prune])
def test_on_a_full_disk_the_folder_can_be_rolled_back_and_pruned(action, tmp_path):
    sweep = Sweep(two_revisions(tmp_path / "start"), tmp_path, action, said)
    for at in range(len(sweep.operations)):
        sweep.try_point(Breakage(at, "full from then on"))
    assert set(sweep.outcomes) == {"done"}


# ---- a classifier: its answers are the old ones or the new ones ---------------------------------

ASKED = toy("fruit", "vehicle", "weather", texts=2, start=70)[0]


def changed(change: Callable[[ContinualClassifier], object]) -> Callable[[Path], None]:
    """As the commands do it: under the lock, load, change, commit."""

    def action(path: Path) -> None:
        folder = ModelFolder(path)
        with folder.lock("changing"):
            classifier = ContinualClassifier.load(path, device="cpu")
            change(classifier)
            classifier.commit(folder)

    return action


CLASSIFIER_ACTIONS: dict[str, Callable[[Path], None]] = {
    "learn": changed(lambda one: one.partial_fit(*toy("weather", texts=4))),
    "rename": changed(lambda one: one.rename_class("fruit", "food")),
    "merge": changed(lambda one: one.merge_classes(["fruit", "vehicle"], "things")),
    "remove": changed(lambda one: one.remove_class("fruit")),
    "rollback": rollback,
    "prune": prune,
}


def predicted(path: Path) -> tuple[tuple[str, ...], bytes]:
    """Classes and probabilities, to the bit."""
    classifier = ContinualClassifier.load(path, device="cpu")
    return tuple(classifier.classes_.tolist()), np.asarray(classifier.predict_proba(ASKED)).tobytes()


@pytest.fixture(scope="module")
def taught(make, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("crash") / "model"
    classifier = make("ncm", holdout_per_class=1).fit(*toy("fruit", "vehicle", "place", texts=6))
    classifier.save(path)
    classifier.partial_fit(*toy("person", texts=6)).save(path)
    return path


@pytest.mark.parametrize("name", CLASSIFIER_ACTIONS)
@pytest.mark.parametrize(
    "every", [97, pytest.param(1, marks=pytest.mark.slow)], ids=["some points", "all points"]
)
def test_a_classifier_whose_change_breaks_answers_as_before_or_as_after(
    taught, tmp_path, name, every, capsys
):
    sweep = Sweep(taught, tmp_path, CLASSIFIER_ACTIONS[name], predicted)
    points = sweep.try_all(every)
    if every == 1:
        tell(capsys, f"classifier: {name}", points, sweep.outcomes)


# ---- the layer itself ---------------------------------------------------------------------------


def test_the_layer_sees_files_that_are_written_by_pathlib_and_by_open(tmp_path):
    def action() -> None:
        (tmp_path / "x").write_text("text")
        with (tmp_path / "y").open("ab") as file:
            file.write(b"text")
        (tmp_path / "x").rename(tmp_path / "z")

    assert run_broken(tmp_path, action, None) == ("done", ["open", "write", "open", "write", "rename"])
    assert (tmp_path / "z").read_text() == "text"


def test_the_layer_leaves_half_a_file_or_an_unsynced_one_empty(tmp_path):
    def action() -> None:
        (tmp_path / "x").write_text("text")
        (tmp_path / "y").mkdir()

    assert run_broken(tmp_path, action, Breakage(1, "dies half way"))[0] == "died"
    assert (tmp_path / "x").read_text() == "te"
    assert run_broken(tmp_path, action, Breakage(2, "power cut"))[0] == "died"
    assert (tmp_path / "x").read_text() == ""


def test_the_layer_catches_a_file_that_is_not_written_whole(tmp_path):
    """What the sweeps would say about a folder that is careless."""

    def careless(path: Path) -> None:
        learn(path)
        (path / "current.json").write_text((path / "current.json").read_text())

    sweep = Sweep(two_revisions(tmp_path / "start"), tmp_path, careless, said)
    with pytest.raises(RepclError, match=r"current\.json"):
        sweep.try_point(Breakage(len(sweep.operations) - 1, "dies"))
