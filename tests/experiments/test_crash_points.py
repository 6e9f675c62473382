"""Runs and reports may end at any operation on files: what is there is whole, and the same command resumes.

As for model folders (`tests/classifier/test_crash_points.py`): an action is run once to count its operations,
then once per operation and way to break, in a forked process.
"""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save
from torch import Tensor

from repcl.errors import RepclError
from repcl.experiments import RunSpec, read_result
from repcl.experiments.reports import figures
from repcl.experiments.reports.grouping import load_runs
from repcl.experiments.reports.write import OURS, write_report
from repcl.experiments.representations import capture
from repcl.experiments.runs.pool import Failure, attempt
from repcl.experiments.runs.run import make_run
from repcl.experiments.runs.spec import RunOptions
from repcl.experiments.runs.store import StoredRun
from repcl.methods import state
from tests.conftest import tiny_encoder
from tests.crash import WAYS, Breakage, run_broken
from tests.experiments.made_up import write_grid
from tests.experiments.runs.test_run import toy_stream, without_times

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

RUN = "toy/ncm/round-1"
OF_OTHERS = [
    "notes.txt",
    ".part-000000000000-thesis.tex",
    f"{RUN}/notes.txt",
    f"{RUN}/analysis-mine.svg",
    f"{RUN}/.part-mine",
    f"{RUN}/checkpoint-notes/progress.json",
    f"{RUN}/checkpoint-7/thesis.tex",
    f"{RUN}/representations/notes.txt",
    f"{RUN}/representations/after-me.safetensors",
    f"{RUN}/tracking/notes.txt",
    "tables/mine.md",
    "figures/mine.svg",
]


class Said(RepclError):
    """What the command would have ended with."""


def plant(folder: Path) -> None:
    for name in OF_OTHERS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")


def check_foreign(folder: Path) -> None:
    assert {name: (folder / name).read_text() for name in OF_OTHERS} == dict.fromkeys(OF_OTHERS, "mine")


def own_files(folder: Path) -> set[str]:
    """All files but those of others."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    return found - set(OF_OTHERS)


class Sweep:
    """All points of one action on copies of one folder."""

    def __init__(
        self,
        room: Path,
        start: Callable[[Path], None],
        action: Callable[[Path], None],
        check: Callable[[Path], None],
        answer: Callable[[Path], Any],
    ) -> None:
        self.room, self.start, self.action, self.check, self.answer = room, start, action, check, answer
        folder = self.fresh()
        outcome, self.operations = run_broken(folder, lambda: action(folder), None)
        assert outcome == "done"
        self.wanted, self.files = answer(folder), own_files(folder)
        self.outcomes: Counter[str] = Counter()

    def fresh(self) -> Path:
        """A folder as it is before the action, with files of others in it."""
        folder = self.room / "out"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self.start(folder)
        plant(folder)
        return folder

    def try_point(self, breakage: Breakage) -> None:
        """Break one operation, look, and give the same command again."""
        folder = self.fresh()
        outcome, _ = run_broken(folder, lambda: self.action(folder), breakage, (RepclError, OSError))
        assert outcome in ("done", "died") or outcome.startswith("said: "), f"{breakage}: {outcome}"
        check_foreign(folder)
        self.check(folder)
        again, _ = run_broken(folder, lambda: self.action(folder), None)
        assert again == "done", f"{breakage}: {again}"
        assert self.answer(folder) == self.wanted, f"{breakage}: another answer"
        check_foreign(folder)
        left = {name for name in own_files(folder) - self.files if not self.may_stay(name)}
        assert own_files(folder) >= self.files, f"{breakage}: files are missing"
        assert left == set(), f"{breakage}: files are left"
        self.outcomes[outcome.partition(":")[0]] += 1

    def may_stay(self, name: str) -> bool:
        """Whether a file is one that was never finished, and that nobody can sweep up for want of a lock."""
        return name.startswith(("tables/.part-", "figures/.part-", ".part-"))

    def try_all(self, every: int) -> int:
        """Break every operation, or one in so many, in every way; how many that were."""
        points = [Breakage(at, way) for way in WAYS for at in range(len(self.operations))][::every]
        for point in points:
            self.try_point(point)
        assert self.outcomes["died"] > 0
        return len(points)


SOME_OR_ALL = pytest.mark.parametrize(
    "is_whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some points", "all points"]
)


def sweep_through(sweep: Sweep, every: int, is_whole: bool, what: str, capsys: Any) -> None:
    points = sweep.try_all(1 if is_whole else every)
    if is_whole:
        with capsys.disabled():
            sys.stdout.write(f"\n{what}: {points} crash points {dict(sweep.outcomes)}\n")


# ---- runs ---------------------------------------------------------------------------------------


def write_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """As safetensors does it, but through Python, where it is seen."""
    with Path(path).open("wb") as file:
        file.write(save(tensors))


@pytest.fixture
def seen(monkeypatch) -> None:
    monkeypatch.setattr(capture, "save_file", write_tensors)
    monkeypatch.setattr(state, "save_file", write_tensors)


def bench(folder: Path, *, fresh: bool = False) -> None:
    """What `repcl bench` does for one run."""
    options = RunOptions(encoder=tiny_encoder(), out=folder, save_representations=True, fresh=fresh)
    outcome = attempt(RunSpec("ncm", toy_stream(), options).resolve(), make_run, lambda _: None)
    if isinstance(outcome, Failure):
        raise (Said if outcome.is_user_error else AssertionError)(outcome.reason + outcome.details)


def bench_fresh(folder: Path) -> None:
    bench(folder, fresh=True)


def nothing(folder: Path) -> None:
    pass


def finished(folder: Path) -> None:
    bench(folder)


def half_way(folder: Path) -> None:
    """A run that died when its second checkpoint was there."""
    operations = run_broken(folder, lambda: bench(folder), None)[1]
    at = [place for place, name in enumerate(operations) if name == "rename"][1]  # part -> checkpoint-2
    shutil.rmtree(folder)
    folder.mkdir()
    assert run_broken(folder, lambda: bench(folder), Breakage(at + 1, "dies"))[0] == "died"
    assert (folder / RUN / "checkpoint-2/progress.json").exists()


def check_run(folder: Path) -> None:
    """Whatever has its final name is whole."""
    path = folder / RUN
    if (path / "result.json").exists():
        run = StoredRun(path, read_result(path / "result.json"))
        run.verify(run.predictions())
    for file in path.glob("checkpoint-[123]/progress.json"):
        assert len(json.loads(file.read_text())["predictions"]) == int(file.parent.name[-1])
        load_file(file.parent / "weights.safetensors")
    for file in path.glob("representations/after-[0-9]*.safetensors"):
        load_file(file)


def run_answer(folder: Path) -> tuple[Any, ...]:
    """The result without its times, the predictions and the representations."""
    path = folder / RUN
    saved = {file.name: file.read_bytes() for file in path.glob("representations/after-[0-9]*.safetensors")}
    return without_times(path / "result.json"), (path / "predictions.jsonl.gz").read_bytes(), saved


@SOME_OR_ALL
@pytest.mark.parametrize(
    ("start", "action", "every"),
    [(nothing, bench, 97), (half_way, bench, 97), (half_way, bench_fresh, 131), (finished, bench_fresh, 131)],
    ids=["new", "half way", "half way, --fresh", "finished, --fresh"],
)
def test_a_run_that_breaks_anywhere_is_made_by_the_same_command(
    seen, tmp_path, start, action, every, is_whole, capsys
):
    start_of = tmp_path / "start"
    start_of.mkdir()
    start(start_of)
    sweep = Sweep(
        tmp_path,
        lambda folder: shutil.copytree(start_of, folder, dirs_exist_ok=True),
        action,
        check_run,
        run_answer,
    )
    sweep_through(sweep, every, is_whole, f"bench, {start.__name__}, {action.__name__}", capsys)


def test_the_sweep_of_runs_sees_a_checkpoint_that_is_not_brought_to_the_disk(seen, tmp_path, monkeypatch):
    """What the sweep would say about a store that is careless."""
    monkeypatch.setattr("repcl.experiments.runs.store.settle", lambda path: None)
    sweep = Sweep(tmp_path, nothing, bench, check_run, run_answer)
    at = sweep.operations.index("rename") + 1
    with pytest.raises(ValueError, match="Expecting value"):
        sweep.try_point(Breakage(at, "power cut"))


# ---- reports ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn() -> Any:
    """Figures are drawn once, for drawing takes a second and is not what is looked at here."""
    known: dict[str, figures.Drawing] = {}
    render = figures._render

    def remembered(figure: Any, name: str, description: str, *names: Any) -> figures.Drawing:
        if name not in known:
            known[name] = render(figure, name, description, *names)
        return known[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "_render", remembered)
        yield


def two_methods(folder: Path) -> None:
    write_grid(folder, {"fea": 1.0, "crl": 0.5}, rounds=1)


def older_report(folder: Path) -> None:
    """A report about one method more, whose tables and figures are no longer wanted."""
    write_grid(folder, {"fea": 1.0, "crl": 0.5, "emar": 0.7}, rounds=1)
    write_report(folder, load_runs(folder))
    shutil.rmtree(folder / "demo/emar")


def report(folder: Path) -> None:
    write_report(folder, load_runs(folder))


def check_report(folder: Path) -> None:
    """Whatever has its final name is whole."""
    page = folder / "report.html"
    if page.exists():
        assert OURS in page.read_bytes()
        assert page.read_bytes().endswith(b"</html>\n")
    for file in own_files(folder):
        if file.startswith(("tables/", "figures/")) and "/.part-" not in file:
            assert (folder / file).stat().st_size > 0, file
            assert not file.endswith(".svg") or (folder / file).read_text().endswith("</svg>\n"), file


def report_answer(folder: Path) -> dict[str, bytes]:
    """The report, byte by byte."""
    wanted = ("report.html", "tables/", "figures/")
    names = [name for name in own_files(folder) if name.startswith(wanted) and "/.part-" not in name]
    return {name: (folder / name).read_bytes() for name in names}


@SOME_OR_ALL
@pytest.mark.parametrize("start", [two_methods, older_report], ids=["new", "older"])
def test_a_report_that_breaks_anywhere_is_written_by_the_same_command(
    drawn, tmp_path, start, is_whole, capsys
):
    start_of = tmp_path / "start"
    start_of.mkdir()
    start(start_of)
    report(shutil.copytree(start_of, tmp_path / "drawn"))  # what is drawn here, forked processes remember
    sweep = Sweep(
        tmp_path,
        lambda folder: shutil.copytree(start_of, folder, dirs_exist_ok=True),
        report,
        check_report,
        report_answer,
    )
    sweep_through(sweep, 397, is_whole, f"report, {start.__name__}", capsys)
