"""One training of a duet gives the rows of its trained method and of both duets."""

import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from repcl.errors import InvalidSetting, ResultMismatch
from repcl.experiments import RunStore, run_experiment
from repcl.experiments.runs.companions import companions, made_apart
from repcl.experiments.runs.observers import Note, RunObserver
from repcl.experiments.runs.run import make_run
from repcl.experiments.runs.spec import ResolvedRun, RunOptions, RunSpec
from repcl.experiments.runs.store import Progress, RunFolder
from tests.conftest import tiny_encoder
from tests.experiments.runs.test_run import Stop, StopAtTask, toy_stream, without_times

CHEAP = {"initial_epochs": 1, "replay_epochs": 1, "warmup_epochs": 0}
FEATURES = {"features": 32, "maps": 2}
ROWS = ("repcl", "duet", "duet@statistics")


def run(method: str, out: Path, **options: object) -> None:
    settings = CHEAP | (FEATURES if method == "duet@statistics" else {}) | options.pop("settings", {})  # type: ignore[operator]
    run_experiment(method, toy_stream(), encoder=tiny_encoder(), settings=settings, out=out, **options)  # type: ignore[arg-type]


class AtTask(RunObserver):
    """Does something when a task begins."""

    def __init__(self, task: int, action: Callable[[], None]) -> None:
        self.task, self.action = task, action

    def task_begins(self, number: int, tasks: int) -> None:
        if number == self.task:
            self.action()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("shared")
    run("duet@statistics", out, with_parts=True)
    return out


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("apart")
    for row in ROWS:
        run(row, out)
    return out


@pytest.mark.parametrize("row", ["repcl", "duet@statistics"])
def test_a_row_from_a_shared_training_equals_that_of_a_run_of_its_own(
    row: str, shared: Path, apart: Path
) -> None:
    ours, theirs = (folder / "toy" / row / "round-1" for folder in (shared, apart))
    assert (ours / "predictions.jsonl.gz").read_bytes() == (theirs / "predictions.jsonl.gz").read_bytes()
    assert without_times(ours / "result.json") == without_times(theirs / "result.json")


def test_the_strict_duet_brings_the_duet_of_the_other_track(tmp_path: Path, apart: Path) -> None:
    run("duet", tmp_path, with_parts=True)
    assert sorted(path.name for path in (tmp_path / "toy").iterdir()) == sorted(ROWS)
    for row in ("repcl", "duet"):
        ours, theirs = (folder / "toy" / row / "round-1" for folder in (tmp_path, apart))
        assert without_times(ours / "result.json") == without_times(theirs / "result.json")


def test_a_shared_training_that_was_stopped_goes_on_with_all_its_rows(tmp_path: Path, shared: Path) -> None:
    with pytest.raises(Stop):
        run("duet@statistics", tmp_path, with_parts=True, observer=StopAtTask(2, "initial learning"))
    run("duet@statistics", tmp_path, with_parts=True)
    for row in ("repcl", "duet@statistics"):
        ours, theirs = (folder / "toy" / row / "round-1" for folder in (tmp_path, shared))
        assert without_times(ours / "result.json") == without_times(theirs / "result.json")


def test_a_training_that_began_without_parts_is_refused_with_them(tmp_path: Path) -> None:
    with pytest.raises(Stop):
        run("duet", tmp_path, observer=StopAtTask(1, "initial learning"))
    with pytest.raises(ResultMismatch, match="made without --with-parts, so that repcl, duet@statistics"):
        run("duet", tmp_path, with_parts=True)


def test_a_finished_run_without_parts_is_refused_with_them(apart: Path, tmp_path: Path) -> None:
    shutil.copytree(apart / "toy/duet", tmp_path / "toy/duet")
    with pytest.raises(ResultMismatch, match="made without --with-parts, so that repcl, duet@statistics"):
        run("duet", tmp_path, with_parts=True)


def test_a_finished_run_whose_parts_were_made_apart_is_taken_with_them(apart: Path) -> None:
    run("duet@statistics", apart, with_parts=True, observer=StopAtTask(0, "initial learning"))


def test_a_part_of_other_settings_is_refused_before_the_training(tmp_path: Path) -> None:
    run("repcl", tmp_path, settings={"batch_size": 4})
    with pytest.raises(ResultMismatch, match="holds a run with other settings"):
        run("duet", tmp_path, with_parts=True, observer=StopAtTask(0, "initial learning"))


@pytest.fixture(scope="module")
def beside_other_settings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A duet with its parts, and what was told, where one of them is made with other settings meanwhile."""
    out, told = tmp_path_factory.mktemp("conflict"), list[str]()
    options = RunOptions(encoder=tiny_encoder(), settings=CHEAP, out=out, with_parts=True)
    make_run(
        RunSpec("duet", toy_stream(), options).resolve(),
        lambda event: told.append(event.text) if isinstance(event, Note) else None,
        observer=AtTask(2, lambda: run("repcl", out, settings={"batch_size": 4})),
    )
    return out, told


@pytest.mark.parametrize("row", ["duet", "duet@statistics"])
def test_a_part_of_other_settings_that_came_meanwhile_costs_no_other_row(
    row: str, beside_other_settings: tuple[Path, list[str]]
) -> None:
    assert (beside_other_settings[0] / "toy" / row / "round-1/result.json").exists()


def test_a_part_that_is_not_written_is_told(beside_other_settings: tuple[Path, list[str]]) -> None:
    (told,) = beside_other_settings[1]
    assert told.startswith("repcl is not written: ")


def test_a_refused_run_goes_on_without_parts(tmp_path: Path) -> None:
    with pytest.raises(Stop):
        run("duet", tmp_path, observer=StopAtTask(1, "initial learning"))
    with pytest.raises(ResultMismatch):
        run("duet", tmp_path, with_parts=True)
    run("duet", tmp_path)
    assert [stored.result.row for stored in RunStore(tmp_path).runs()] == ["duet"]


def test_to_start_over_with_parts_forgets_their_rows_of_other_settings(tmp_path: Path) -> None:
    run("repcl", tmp_path, settings={"batch_size": 4})
    (tmp_path / "toy/repcl/round-1/analysis.json").write_text("{}")
    run("duet", tmp_path, with_parts=True, fresh=True)
    assert not (tmp_path / "toy/repcl/round-1/analysis.json").exists()


def test_a_row_that_its_own_run_finished_meanwhile_stays(tmp_path: Path) -> None:
    result, made = tmp_path / "toy/repcl/round-1/result.json", []

    def make_alone() -> None:
        run("repcl", tmp_path)
        made.append(result.read_bytes())

    run("duet", tmp_path, with_parts=True, observer=AtTask(2, make_alone))
    assert result.read_bytes() == made[0]


def run_beside(out: Path, with_our_lock: Callable[[RunFolder], None]) -> None:
    """Make a duet beside a process that makes the other duet, waits for our lock, and ends unfinished."""
    ours, theirs = (RunStore(out).folder("toy", row, 1) for row in ("duet", "duet@statistics"))
    is_held, has_begun = Event(), Event()

    def make_the_other() -> None:
        with theirs.lock(waiting=pytest.fail):
            is_held.set()
            has_begun.wait()
            with ours.lock(waiting=lambda _: None):
                with_our_lock(ours)

    def make_ours() -> None:
        is_held.wait()
        run("duet", out, with_parts=True, observer=AtTask(1, has_begun.set))

    both = [Thread(target=make, daemon=True) for make in (make_the_other, make_ours)]
    for one in both:
        one.start()
    for one in both:
        one.join(timeout=60)


@pytest.fixture(scope="module")
def beside_another(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("beside")

    def note_progress(ours: RunFolder) -> None:
        progress = ours.progress()
        (out / "kept").write_text(str(len(progress.predictions) if progress else 0))

    run_beside(out, note_progress)
    return out


@pytest.mark.parametrize("row", ROWS)
def test_two_runs_that_bring_each_other_along_both_end_and_no_row_is_lost(
    row: str, beside_another: Path
) -> None:
    assert (beside_another / "toy" / row / "round-1/result.json").exists()


def test_a_run_that_waits_for_others_has_kept_all_its_tasks(beside_another: Path) -> None:
    assert (beside_another / "kept").read_text() == str(len(toy_stream().tasks))


def test_a_run_that_another_process_finished_meanwhile_stays(apart: Path, tmp_path: Path) -> None:
    result = tmp_path / "toy/duet/round-1/result.json"

    def finish_ours(_: RunFolder) -> None:
        made = (apart / "toy/duet/round-1/result.json").read_text()
        result.write_text(made.replace('"command": null', '"command": "theirs"'))

    run_beside(tmp_path, finish_ours)
    assert '"command": "theirs"' in result.read_text()


def resolved(row: str, out: Path, **options: Any) -> ResolvedRun:
    return RunSpec(row, toy_stream(), RunOptions(encoder=tiny_encoder(), out=out, **options)).resolve()


@pytest.mark.parametrize(
    ("rows", "apart"),
    [
        (["repcl", "duet", "fea"], ["duet", "fea"]),
        (["duet", "duet@statistics"], ["duet"]),
        (["duet@statistics", "duet", "repcl"], ["duet@statistics"]),
        (["repcl", "duet@memory-5"], ["repcl", "duet@memory-5"]),
    ],
    ids=lambda rows: " ".join(rows),
)
def test_a_run_that_another_one_brings_along_is_not_made_by_itself(
    rows: list[str], apart: list[str], tmp_path: Path
) -> None:
    runs = [resolved(row, tmp_path, with_parts=True) for row in rows]
    assert [run.plan.row for run in made_apart(runs)] == apart


def test_without_parts_every_run_is_made_by_itself(tmp_path: Path) -> None:
    runs = [resolved(row, tmp_path) for row in ROWS]
    assert made_apart(runs) == runs


def test_a_run_with_other_settings_than_the_part_of_its_name_is_refused(tmp_path: Path) -> None:
    runs = [
        resolved("repcl", tmp_path, settings={"batch_size": 4}),
        resolved("duet", tmp_path, with_parts=True),
    ]
    with pytest.raises(InvalidSetting, match="toy repcl round 1 to have the settings that it has as a part"):
        made_apart(runs)


def test_a_row_bears_the_settings_that_it_was_trained_with_in_the_duet(tmp_path: Path) -> None:
    preset = tmp_path / "mine.toml"
    preset.write_text('extends = "cpu"\n[methods.duet]\nlearning_rate = 0.001\n')
    options = RunOptions(encoder=tiny_encoder(), preset=str(preset), with_parts=True)
    rates = [
        other.run.plan.settings["learning_rate"]
        for other in companions(RunSpec("duet", toy_stream(), options).resolve())
    ]
    assert rates == [0.001, 0.001]


def test_embeddings_that_were_read_are_told_of_a_row_with_a_frozen_part(tmp_path: Path) -> None:
    resolved = RunSpec("duet", toy_stream(), RunOptions(encoder=tiny_encoder(), with_parts=True)).resolve()
    shared = Progress("of the run", embeddings_read=7, others={"repcl": [], "duet@statistics": []})
    read = {other.row: other.progress(shared).embeddings_read for other in companions(resolved)}
    assert read == {"repcl": 0, "duet@statistics": 7}


def test_time_of_the_frozen_part_is_not_counted_for_the_trained_method(shared: Path) -> None:
    by_row = {stored.result.row: stored.result.seconds.tasks[0] for stored in RunStore(shared).runs()}
    assert "solving" in by_row["duet@statistics"]
    assert "solving" not in by_row["repcl"]


def test_a_run_of_a_row_that_is_there_already_is_not_made_again(shared: Path) -> None:
    run("repcl", shared, observer=StopAtTask(0, "initial learning"))


def test_rows_beside_a_run_have_processor_time_too_so_that_costs_can_be_compared(shared: Path) -> None:
    spent = {run.result.row: run.result.seconds.processor_all for run in RunStore(shared).runs()}
    assert spent["repcl"] is not None
    assert spent["duet@statistics"] is not None
    assert 0 < spent["repcl"] < spent["duet@statistics"]
