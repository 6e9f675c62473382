"""`repcl discover` may end at any operation on files: the groups are there whole, or as they were."""

import io
import os
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from repcl import ContinualClassifier
from repcl.cli.guarded import run_guarded
from repcl.cli.main import app
from tests.crash import WAYS, Breakage, run_broken

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

TEXTS = ["rain and snow", "snow and wind", "the sun", "a boat in paris", "london city", "paris city"]
LABELED = "text,label\na,by hand\n"


class Ended(Exception):
    """The command ended with a sentence."""


@pytest.fixture(scope="module")
def room(tmp_path_factory, encoder_folder) -> Path:
    folder = tmp_path_factory.mktemp("discover")
    classifier = ContinualClassifier("ncm", encoder=str(encoder_folder), device="cpu", holdout_per_class=0)
    classifier.fit(["red apple", "fast car"] * 2, ["fruit", "vehicle"] * 2).save(folder / "model")
    (folder / "texts.txt").write_text("\n".join(TEXTS))
    return folder


def discover(folder: Path, *words: str) -> None:
    """The command as it is typed; whatever it does not foresee is an error here."""
    out, error = io.StringIO(), io.StringIO()
    typed = ["discover", f"{folder}/model", f"{folder}/texts.txt", "--threshold", "1", "--device", "cpu"]
    code = 0
    with redirect_stdout(out), redirect_stderr(error):
        try:
            run_guarded(app, [*typed, "--groups", "2", "--output", f"{folder}/work/groups.csv", *words])
        except SystemExit as end:
            code = int(end.code or 0)
    said = error.getvalue()
    assert "Traceback" not in said
    if code == 2:
        raise Ended(said)
    assert code == 0, said


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize(
    "is_whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some points", "all points"]
)
@pytest.mark.parametrize("is_replaced", [False, True], ids=["a new file", "with --force"])
def test_groups_are_there_whole_or_as_they_were_wherever_discover_breaks(room, is_replaced, is_whole, capsys):
    work, before = room / "work", contents(room / "model")
    words = ["--force"] if is_replaced else []

    def fresh() -> None:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        (work / "mine.csv").write_text("mine")
        (work / ".part-000000000000-groups.csv").write_text("mine")
        if is_replaced:
            (work / "groups.csv").write_text(LABELED)

    fresh()
    outcome, operations = run_broken(work, lambda: discover(room, *words), None)
    assert outcome == "done"
    assert operations == ["open", "write", "fsync", "replace"]
    new = (work / "groups.csv").read_text()
    assert len(new.splitlines()) == 1 + len(TEXTS)
    points = [Breakage(at, way) for way in WAYS for at in range(len(operations))]
    for point in points if is_whole else points[:: len(points) // 3]:
        fresh()
        outcome, _ = run_broken(work, lambda: discover(room, *words), point, (Ended,))
        assert outcome in ("done", "died") or outcome.startswith("said: Error: "), f"{point}: {outcome}"
        found = (work / "groups.csv").read_text() if (work / "groups.csv").exists() else None
        assert found in (new, LABELED if is_replaced else None), point
        assert outcome != "done" or found == new, point
        assert (work / "mine.csv").read_text() == "mine"
        assert (work / ".part-000000000000-groups.csv").read_text() == "mine"
        others = {path.name for path in work.iterdir()} - {"mine.csv", "groups.csv"}
        can_sweep = outcome != "died" and point.way != "broken from then on"
        assert len(others) in ((1,) if can_sweep else (1, 2)), point
        if found is None:
            assert run_broken(work, lambda: discover(room, *words), None)[0] == "done", point
            assert (work / "groups.csv").read_text() == new
    assert contents(room / "model") == before
    if is_whole:
        with capsys.disabled():
            sys.stdout.write(
                f"\ndiscover, {'--force' if is_replaced else 'new'}: {len(points)} crash points\n"
            )
