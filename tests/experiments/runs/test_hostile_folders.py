"""Folders of runs that somebody damaged, or laid out to lead elsewhere."""

import errno
import gzip
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from repcl.errors import InvalidData, ResultMismatch
from repcl.experiments import RunObserver, RunSpec, read_result
from repcl.experiments.reports.grouping import load_runs
from repcl.experiments.reports.write import write_report
from repcl.experiments.representations.analysis import _AS_JSON, read_analysis
from repcl.experiments.runs.pool import Failure, attempt
from repcl.experiments.runs.run import make_run
from repcl.experiments.runs.spec import RunOptions
from repcl.experiments.runs.store import LOCK, RunFolder, RunStore
from tests.conftest import tiny_encoder
from tests.experiments.made_up import write_grid
from tests.experiments.paper.test_information import analyzed
from tests.experiments.runs.test_run import Stop, StopAtTask, run, toy_stream

DEEP = "[" * 100_000
NOT_OURS = [
    "",
    "null",
    "[]",
    "3",
    '"text"',
    "{",
    DEEP,
    '{"a":' * 100_000,
    "\x00",
    '{"fingerprint": 5}',
    "\ud800",
]


def one_run(out: Path) -> RunFolder:
    write_grid(out, {"fea": 1.0}, rounds=1)
    return RunStore(out).folder("demo", "fea", 0)


def fingerprint(folder: RunFolder) -> str:
    return read_result(folder.path / "result.json").fingerprint


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "/a", "a\\b", "a\0b"])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    for benchmark, row in ((name, "fea"), ("demo", name)):
        with pytest.raises(InvalidData, match="cannot name a folder of results"):
            RunStore(tmp_path).folder(benchmark, row, 0)


@pytest.mark.parametrize("content", NOT_OURS, ids=range(len(NOT_OURS)))
def test_a_result_that_is_none_is_refused_in_one_sentence(tmp_path: Path, content: str) -> None:
    folder = one_run(tmp_path)
    (folder.path / "result.json").write_bytes(content.encode(errors="surrogatepass"))
    with pytest.raises(ResultMismatch, match="use --fresh to run it again"):
        RunStore(tmp_path).runs()


TOO_LARGE = ["1e308", '"1e308"', "9" * 500, '"' + "9" * 500 + '"']


def with_number(content: bytes, old: bytes, digits: str) -> bytes:
    assert old in content
    return content.replace(old, old.partition(b": ")[0] + b": " + digits.encode())


@pytest.mark.parametrize("digits", TOO_LARGE, ids=["fraction", "in quotes", "whole", "whole in quotes"])
@pytest.mark.parametrize(
    "entry", [b'"class_0_0": 10', b'"text_bytes": 4000', b'"all": 99.0', b'"threads": 1']
)
def test_a_number_of_a_result_that_is_too_large_is_refused(tmp_path: Path, entry: bytes, digits: str) -> None:
    path = one_run(tmp_path).path / "result.json"
    path.write_bytes(with_number(path.read_bytes(), entry, digits))
    with pytest.raises(ResultMismatch):
        RunStore(tmp_path).runs()


@pytest.mark.parametrize("digits", TOO_LARGE[:2], ids=["plain", "in quotes"])
def test_a_number_of_an_analysis_that_is_too_large_is_refused(tmp_path: Path, digits: str) -> None:
    content = _AS_JSON.dump_json(analyzed(1.0, 2.0)).replace(b":", b": ")
    (tmp_path / "analysis.json").write_bytes(with_number(content, b'"info_nce": 1.2', digits))
    with pytest.raises(ResultMismatch, match="is damaged"):
        read_analysis(tmp_path / "analysis.json")


@pytest.mark.parametrize("content", NOT_OURS[1:], ids=range(1, len(NOT_OURS)))
def test_predictions_that_are_none_are_refused_in_one_sentence(tmp_path: Path, content: str) -> None:
    folder = one_run(tmp_path)
    packed = gzip.compress(content.encode(errors="surrogatepass"))
    (folder.path / "predictions.jsonl.gz").write_bytes(packed)
    with pytest.raises(ResultMismatch, match=r"line 1: expected .*|number of test examples"):
        folder.earlier(fingerprint(folder))


@pytest.mark.parametrize("content", NOT_OURS, ids=range(len(NOT_OURS)))
def test_progress_that_is_none_is_refused_in_one_sentence(tmp_path: Path, content: str) -> None:
    checkpoint = tmp_path / "demo/fea/round-0/checkpoint-1"
    checkpoint.mkdir(parents=True)
    (checkpoint / "progress.json").write_bytes(content.encode(errors="surrogatepass"))
    with pytest.raises(ResultMismatch, match="is damaged; use --fresh to run it again"):
        RunStore(tmp_path).folder("demo", "fea", 0).progress()


def test_a_result_that_was_edited_is_not_taken_for_finished(tmp_path: Path) -> None:
    folder = one_run(tmp_path)
    path = folder.path / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"final_accuracy": 0.123}))
    with pytest.raises(ResultMismatch, match=r"final_accuracy = 0.123, its predictions give"):
        folder.earlier(fingerprint(folder))


def test_folders_that_are_no_checkpoints_are_left_alone(tmp_path: Path) -> None:
    folder = one_run(tmp_path)
    names = ["checkpoint-x", "checkpoint-", "checkpoint-1234567", "my-checkpoint-1"]
    for name in names:
        (folder.path / name).mkdir()
    assert folder.progress() is None
    folder.start_over()
    assert sorted(path.name for path in folder.path.iterdir() if path.is_dir()) == sorted(names)


def test_a_checkpoint_that_is_a_link_is_neither_read_nor_followed(tmp_path: Path) -> None:
    folder, precious = one_run(tmp_path / "out"), tmp_path / "precious"
    precious.mkdir()
    (precious / "progress.json").write_text("{}")
    (folder.path / "checkpoint-3").symlink_to(precious)
    assert folder.progress() is None
    folder.start_over()
    assert (precious / "progress.json").read_text() == "{}"


def forget(link: Path, target: Path) -> None:
    if link.is_file():
        link.unlink()
    link.symlink_to(target)


@pytest.mark.parametrize("name", ["representations", "tracking", "result.json", LOCK])
def test_a_link_inside_a_run_is_refused_and_its_target_stays(tmp_path: Path, name: str) -> None:
    folder, diary = one_run(tmp_path / "out"), tmp_path / "diary.txt"
    diary.write_text("dear diary")
    forget(folder.path / name, diary)
    with pytest.raises(ResultMismatch, match="Expected no link"), folder.lock(waiting=pytest.fail):
        pass
    assert diary.read_text() == "dear diary"


def test_a_second_process_waits_until_the_run_is_made(tmp_path: Path) -> None:
    folder, told, entered = one_run(tmp_path), [], threading.Event()
    asked = threading.Event()

    def waiting(text: str) -> None:
        told.append(text)
        asked.set()

    def second() -> None:
        with folder.lock(waiting=waiting):
            entered.set()

    with folder.lock(waiting=pytest.fail):
        other = threading.Thread(target=second)
        other.start()
        assert asked.wait(60)
        assert not entered.is_set()
    other.join(60)
    assert entered.is_set()
    assert told == [f"Waiting for another process that makes the run in {folder.path}."]


def test_no_lock_is_left_in_a_finished_run(tmp_path: Path) -> None:
    folder = one_run(tmp_path)
    with folder.lock(waiting=pytest.fail):
        assert (folder.path / LOCK).exists()
    assert not (folder.path / LOCK).exists()


def own_page(folder: Path) -> None:
    (folder / "report.html").write_text("<h1>my own page</h1>")


def linked(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder.parent / "elsewhere").mkdir()
        (folder / name).symlink_to(folder.parent / "elsewhere")

    return make


@pytest.mark.parametrize(
    "prepare", [own_page, linked("tables"), linked("figures"), linked("report.html")], ids=range(4)
)
def test_a_report_is_not_written_over_or_through_what_is_not_its_own(
    tmp_path: Path, prepare: Callable[[Path], None]
) -> None:
    out = tmp_path / "out"
    one_run(out)
    prepare(out)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.html") if path.is_file()}
    with pytest.raises(ResultMismatch, match=r"is not a report of repcl|Expected no link"):
        write_report(out, load_runs(out))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.html") if path.is_file()} == before
    assert list((tmp_path / "elsewhere").glob("*") if (tmp_path / "elsewhere").exists() else []) == []


def test_a_run_holds_its_lock_while_it_learns(tmp_path: Path) -> None:
    held = []

    class Look(RunObserver):
        def task_begins(self, number: int, tasks: int) -> None:
            with pytest.raises(Timeout):
                FileLock(tmp_path / "toy/fea/round-1" / LOCK).acquire(timeout=0)
            held.append(number)

    run("fea", tmp_path, observer=Look())
    assert held == [0, 1, 2]


def stopped(out: Path) -> Path:
    """The measurements of a run that was stopped after its second task."""
    with pytest.raises(Stop):
        run("fea", out, observer=StopAtTask(2, "initial learning"), save_representations=True)
    return out / "toy/fea/round-1/checkpoint-2/progress.json"


@pytest.mark.parametrize(
    "change",
    [
        {"predictions": [["fruit"]]},
        {"predictions": [["fruit"] * 6, ["fruit"] * 8]},
        {"predictions": [["fruit"] * 6, ["no such class"] * 9]},
        {"predictions": [["fruit"] * 6, ["fruit"] * 9, ["fruit"] * 15, []]},
        {"seconds": []},
        {"seconds": [{"replay": float("nan")}, {}]},
    ],
    ids=range(6),
)
def test_measurements_that_are_not_of_the_run_are_refused_before_they_are_its_result(tmp_path, change):
    path = stopped(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ResultMismatch, match="use --fresh to run it again"):
        run("fea", tmp_path, save_representations=True)


def test_a_stopped_run_whose_representations_are_gone_is_refused(tmp_path):
    stopped(tmp_path)
    shutil.rmtree(tmp_path / "toy/fea/round-1/representations")
    with pytest.raises(ResultMismatch, match="Expected the representations that the run has saved"):
        run("fea", tmp_path, save_representations=True)


def test_a_file_of_a_user_in_place_of_the_lock_is_neither_emptied_nor_removed(tmp_path):
    folder = one_run(tmp_path)
    (folder.path / LOCK).write_text("mine")
    with pytest.raises(ResultMismatch, match="Expected an empty file at"), folder.lock(waiting=pytest.fail):
        pass
    assert (folder.path / LOCK).read_text() == "mine"


def test_to_start_over_leaves_what_the_run_did_not_write(tmp_path):
    folder = one_run(tmp_path)
    mine = ["analysis-mine.svg", "representations/notes.txt", "tracking/notes.txt", "checkpoint-3/thesis.tex"]
    ours = ["analysis-spectrum.svg", "analysis-authors.json", "representations/after-3.safetensors"]
    mine += ["tracking/tensorboard/notes.txt", "tracking/tensorboard/1700000000.5/x.csv", "tracking/wandb/x"]
    mine += ["tracking/tensorboard/sweep/events.out.tfevents.1.mine"]
    ours += ["tracking/wandb-run.txt", "checkpoint-4/progress.json"]
    ours += [
        f"tracking/tensorboard/{one}" for one in ("events.out.tfevents.1.a.2", "1700000000.5/hparams.yml")
    ]
    for name in (*mine, *ours):
        (folder.path / name).parent.mkdir(exist_ok=True, parents=True)
        (folder.path / name).write_text("{}")
    folder.start_over()
    assert [(folder.path / name).read_text() for name in mine] == ["{}"] * len(mine)
    assert not any((folder.path / name).exists() for name in ours)


def test_a_disk_that_is_full_is_said_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(RunFolder, "save_checkpoint", full)
    options = RunOptions(encoder=tiny_encoder(), out=tmp_path)
    failure = attempt(RunSpec("ncm", toy_stream(), options).resolve(), make_run, lambda _: None)
    assert isinstance(failure, Failure)
    assert failure.is_user_error
    assert failure.reason == (
        "weights could not be written, for the disk is full: make room, then run the command again."
    )


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "weights")
