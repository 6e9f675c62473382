"""Runs on a Ray cluster: equal to local ones, whatever happens to workers; what does not fit is refused."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from repcl.errors import ClusterUnavailable, InvalidSetting, RepclError
from repcl.experiments.runs import ray as ray_runs
from repcl.experiments.runs import ray_cluster as connection
from repcl.experiments.runs.observers import Ended, Event, Note, StageBegins, TaskBegins, TaskEnds
from repcl.experiments.runs.pool import Failure
from repcl.experiments.runs.ray import run_on_ray, start_over_alone
from repcl.experiments.runs.ray_cluster import check_reachable, check_versions, ray_cluster, resources_of_run
from repcl.experiments.runs.result import Result
from repcl.experiments.runs.store import RunFolder
from tests.experiments.runs.test_pool import ignore, make_here, numbers, resolved

ours = {"python": "3.11.7", "repcl": "0.1.0", "torch": "2.13.0"}


def test_a_machine_with_the_same_versions_is_accepted():
    check_versions("node-1", ours, ours)


def test_another_version_and_a_missing_package_are_named_with_ours():
    theirs = {"python": "3.11.7", "torch": "2.9.0"}
    with pytest.raises(ClusterUnavailable) as caught:
        check_versions("node-1", theirs, ours)
    assert str(caught.value) == (
        "Machine node-1 of the Ray cluster has repcl missing (here 0.1.0), torch 2.9.0 (here 2.13.0); "
        "install the same versions on both."
    )


@pytest.mark.parametrize(
    ("device", "gpus", "asked_for"), [(None, 0, 0), (None, 4, 1), ("cuda", 4, 1), ("cpu", 4, 0)]
)
def test_a_run_occupies_one_core_and_the_gpu_it_uses(device, gpus, asked_for):
    cluster = {"CPU": 8.0, "GPU": float(gpus)}
    assert resources_of_run(device, cluster) == {"num_cpus": 1, "num_gpus": asked_for}


@pytest.mark.parametrize(
    ("device", "cluster", "sentence"),
    [
        ("cuda", {"CPU": 8.0}, "has none; use --device cpu"),
        ("cuda:1", {"CPU": 8.0, "GPU": 2.0}, "use --device cuda"),
    ],
)
def test_a_device_that_the_cluster_cannot_give_is_refused(device, cluster, sentence):
    with pytest.raises(InvalidSetting, match=sentence):
        resources_of_run(device, cluster)


def test_a_cluster_without_cores_is_refused():
    with pytest.raises(ClusterUnavailable, match="no core"):
        resources_of_run("cpu", {"memory": 1.0})


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


def test_an_address_where_nothing_answers_is_named():
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(ClusterUnavailable, match=f"No Ray cluster answers at {address} "):
        check_reachable(address)


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "ray://head"])
def test_a_word_that_is_no_address_is_refused_with_those_that_are(address):
    with pytest.raises(InvalidSetting, match="local, auto, HOST:PORT or ray://HOST:PORT"):
        check_reachable(address)


def test_a_missing_ray_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterUnavailable, match=r"pip install 'repcl\[ray\]'"), ray_cluster("local"):
        pass


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ConnectionError("Could not find any running Ray instance."), "start one with `ray start --head`"),
        (RuntimeError("Version mismatch: cluster:\n Ray: 2.9.0\n"), "cluster: Ray: 2.9.0"),
    ],
    ids=["none", "other Ray"],
)
def test_what_ray_refuses_becomes_one_sentence(monkeypatch, error, sentence):
    ray = pytest.importorskip("ray")

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(ClusterUnavailable) as caught, ray_cluster("auto"):
        pass
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_of_a_run_that_another_process_is_making_are_not_forgotten(workshop, tmp_path):
    run = resolved(workshop, tmp_path)[0]
    assert run.folder is not None
    with run.folder.lock(waiting=None), pytest.raises(RepclError, match="found one: wait until it has ended"):
        start_over_alone(run)


def test_what_a_worker_sends_replaces_what_an_earlier_run_left(tmp_path):
    for old in ("checkpoint-1/progress.json", "representations/after-9.safetensors"):
        (tmp_path / old).parent.mkdir()
        (tmp_path / old).write_bytes(b"old")
    files = {"result.json": b"{}", "representations/after-0.safetensors": b"new"}
    RunFolder(tmp_path).lay_down(files)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == set(files)


class Mute:
    """Hears what a worker tells, and keeps nothing of it."""

    def __init__(self, mailbox: object, index: int) -> None:
        pass

    def tell(self, event: Event) -> None:
        pass


@pytest.fixture(scope="module")
def brought_back(workshop, tmp_path_factory) -> Path:
    """The folder of a driver whose worker did not see it, after a duet with its parts."""
    out = tmp_path_factory.mktemp("driver")
    (run,) = resolved(workshop, out, ("duet",), with_parts=True)[:1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray_runs, "EventSender", Mute)
        finished = ray_runs.perform_on_worker(0, run, run.stream, None, ray_runs.Driver("mark", os.getcwd()))
    assert isinstance(finished.outcome, Result)
    assert not any(out.iterdir())
    ray_runs._lay_down(run, finished.files, pytest.fail)
    return out


@pytest.mark.parametrize("row", ["duet", "repcl", "duet@statistics"])
def test_all_rows_of_a_run_come_back_from_a_machine_that_does_not_share_the_folder(row, brought_back):
    folder = brought_back / "tickets" / row / "round-0"
    assert {path.name for path in folder.iterdir()} == {
        "predictions.jsonl.gz",
        "result.json",
        "wrong-texts.json.gz",
    }


def test_a_row_that_came_from_elsewhere_meanwhile_is_not_replaced(workshop, brought_back, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(brought_back / "tickets/repcl", out / "tickets/repcl")
    (run,) = resolved(workshop, out, ("duet",), with_parts=True)[:1]
    files = {"duet": {"result.json": b"{}"}, "repcl": {"result.json": b"other"}, "duet@statistics": {}}
    ray_runs._lay_down(run, files, pytest.fail)
    own = "tickets/repcl/round-0/result.json"
    assert (out / own).read_bytes() == (brought_back / own).read_bytes()


def test_a_row_of_other_settings_that_came_meanwhile_costs_no_other_row(workshop, brought_back, tmp_path):
    out, told = tmp_path / "out", []
    (run,) = resolved(workshop, out, ("duet",), with_parts=True)[:1]
    shutil.copytree(brought_back / "tickets/duet@statistics", out / "tickets/repcl")
    files = {"duet": {"result.json": b"{}"}, "repcl": {"result.json": b"other"}, "duet@statistics": {}}
    ray_runs._lay_down(run, files, told.append)
    assert (out / "tickets/duet/round-0/result.json").exists()
    assert told[0].startswith("repcl is not written: ")


@pytest.fixture(scope="module")
def address() -> str:
    """A cluster of one machine with two cores."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    head = {"num_cpus": 2, "object_store_memory": 100_000_000, "include_dashboard": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # else a machine busy with other things never gets to them
        cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    yield cluster.address
    cluster.shutdown()


def busy_workers() -> list[int]:
    """The processes below this one that make a run just now."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in table.stdout.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, *_ in rows}

    def is_ours(pid: int) -> bool:
        while pid and pid != os.getpid():
            pid = parents.get(pid, 0)
        return bool(pid)

    return [
        int(row[0]) for row in rows if row[-1].startswith("ray::perform_on_worker") and is_ours(int(row[0]))
    ]


@pytest.mark.slow
def test_8_runs_with_two_workers_killed_equal_local_ones(address, workshop, tmp_path):
    methods = ("fea", "sequential", "repcl", "joint")
    draw = random.Random(0)
    moments = draw.sample(range(20, 120), 2)
    heard: list[Event] = []

    def kill_at_these_moments(_: int, event: Event) -> None:
        heard.append(event)
        if len(heard) in moments:
            os.kill(draw.choice(busy_workers()), signal.SIGKILL)

    asked = resolved(workshop, tmp_path / "ray", methods)
    outcomes = run_on_ray(asked, address=address, workers=None, listener=kill_at_these_moments)
    make_here(resolved(workshop, tmp_path / "local", methods))
    assert [type(outcome) for outcome in outcomes] == [Result] * 8
    assert [event.text for event in heard if isinstance(event, Note)] == [
        "its worker was lost, another one takes it"
    ] * 2
    assert len(numbers(tmp_path / "ray")) == 8
    assert numbers(tmp_path / "ray") == numbers(tmp_path / "local")
    assert not (tmp_path / "ray/.driver").exists()


@pytest.mark.slow
def test_runs_on_machines_that_do_not_share_the_folder_leave_the_same_files(
    address, workshop, tmp_path, monkeypatch
):
    monkeypatch.setattr(ray_runs, "MARK", ".a-mark-that-workers-do-not-look-for")
    there, here = (
        resolved(workshop, tmp_path / name, save_representations=True)[:1] for name in ("ray", "local")
    )
    run_on_ray(there, address=address, workers=1, listener=ignore)
    make_here(here)

    def files(out: Path) -> dict[str, bytes]:
        found = [path for path in out.rglob("*") if path.is_file() and path.name != "result.json"]
        return {str(path.relative_to(out)): path.read_bytes() for path in found}

    assert len(files(tmp_path / "local")) == 6  # predictions, and representations at the start and of 4 tasks
    assert files(tmp_path / "ray") == files(tmp_path / "local")
    assert numbers(tmp_path / "ray") == numbers(tmp_path / "local")


@pytest.mark.slow
def test_workers_need_no_data_file_and_a_failed_run_stops_no_other(address, workshop, tmp_path):
    gone = tmp_path / "gone"
    shutil.copytree(workshop / "encoder", gone)
    broken, whole = resolved(workshop, tmp_path, encoder=str(gone))[0], resolved(workshop, tmp_path)[1]
    shutil.rmtree(gone)
    file = workshop / "tickets.csv"
    content = file.read_text()
    file.unlink()
    try:
        outcomes = run_on_ray([broken, whole], address=address, workers=1, listener=ignore)
    finally:
        file.write_text(content)
    assert isinstance(outcomes[0], Failure)
    assert "gone" in outcomes[0].reason
    assert isinstance(outcomes[1], Result)


@pytest.mark.slow
def test_a_finished_run_is_not_sent_again_but_with_fresh_it_is(address, workshop, tmp_path):
    def told(**changes: bool) -> list[type]:
        kinds: list[type] = []
        run = resolved(workshop, tmp_path, **changes)[1]
        run_on_ray([run], address=address, workers=1, listener=lambda _, event: kinds.append(type(event)))
        return kinds

    first = told()
    assert first[:2] == [TaskBegins, StageBegins]
    assert first[-2:] == [TaskEnds, Ended]
    assert told() == [Ended]
    assert told(fresh=True) == first


@pytest.mark.slow
def test_a_cluster_with_another_torch_is_refused_and_nothing_is_written(
    address, workshop, tmp_path, monkeypatch
):
    monkeypatch.setattr(connection, "installed_versions", lambda: {"torch": "0.0.1"})
    asked = resolved(workshop, tmp_path / "out")
    with pytest.raises(ClusterUnavailable, match=r"has torch .* \(here 0.0.1\)"):
        run_on_ray(asked, address=address, workers=1, listener=ignore)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_killed_worker_and_ctrl_c_bring_up_no_words_of_rays_own(workshop, tmp_path):
    data, encoder = str(workshop / "tickets.csv"), str(workshop / "encoder")
    command = [sys.executable, "-m", "repcl", "bench", "--benchmark", data, "--encoder", encoder]
    command += ["--method", "fea", "--preset", "smoke", "--rounds", "4", "--tasks", "4", "--device", "cpu"]
    with subprocess.Popen(
        [*command, "--ray", "local", "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        lines = [process.stdout.readline()]
        os.kill(busy_workers()[0], signal.SIGKILL)
        while not any("its worker was lost" in line for line in lines[:-1]):
            lines.append(process.stdout.readline())
            assert lines[-1]
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does
        lines += process.stdout.readlines()
    assert process.returncode == 130
    assert sum("its worker was lost" in line for line in lines) == 1
    assert all("learned, accuracy" in line or "its worker was lost" in line for line in lines)
    assert not (tmp_path / "out/.driver").exists()
