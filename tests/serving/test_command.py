"""`repcl serve` as it is typed: whatever is in its way is one sentence and exit code 2."""

import json
import socket

import pytest

from repcl.serving import run
from tests.cli.conftest import repcl as repcl
from tests.serving.conftest import TOKEN


@pytest.fixture
def never_serve(monkeypatch):
    """A service that gets as far as serving has failed the test."""

    def fail(*_, **__):
        raise AssertionError("nothing was refused")

    monkeypatch.setattr(run._Server, "run", fail)
    monkeypatch.setattr(run, "use_few_threads", lambda: None)
    monkeypatch.delenv("REPCL_TOKEN", raising=False)


def refused(output):
    assert output.code == 2, output
    assert output.err.startswith("Error: ")
    assert "Traceback" not in output.err
    return " ".join(output.err.split())


def test_a_port_in_use(repcl, model, never_serve):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(repcl("serve", model, "--port", port))
    assert said == f"Error: Port {port} is in use: choose another one with --port."


def test_an_address_that_is_not_this_machines(repcl, model, never_serve, monkeypatch):
    monkeypatch.setenv("REPCL_TOKEN", TOKEN)
    said = refused(repcl("serve", model, "--port", 0, "--host", "192.0.2.1"))
    assert "give an address of this machine" in said


def test_a_model_that_is_not_there(repcl, tmp_path, never_serve):
    assert "There is no model in" in refused(repcl("serve", tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists()


def test_a_damaged_model(repcl, model, never_serve):
    (model / "current.json").write_text("{}")
    assert "format number" in refused(repcl("serve", model, "--port", 0))


def test_a_model_with_a_damaged_file(repcl, model, never_serve):
    blob = max((model / "blobs").iterdir(), key=lambda path: path.stat().st_size)
    blob.write_bytes(blob.read_bytes()[:-1])
    assert "No other revision is whole" in refused(repcl("serve", model, "--port", 0))


def test_a_newer_model(repcl, model, never_serve):
    record = json.loads((model / "current.json").read_text())
    (model / "current.json").write_text(json.dumps(record | {"format": 99}))
    assert "update repcl" in refused(repcl("serve", model, "--port", 0))


def test_a_token_that_is_too_short(repcl, model, tmp_path, never_serve):
    (tmp_path / "token").write_text("short\n")
    said = refused(repcl("serve", model, "--token-file", tmp_path / "token"))
    assert "at least 16 characters, found 5" in said
    assert "short" not in said


def test_a_token_file_that_is_not_there(repcl, model, tmp_path, never_serve):
    assert "token" in refused(repcl("serve", model, "--token-file", tmp_path / "token"))


def test_a_second_writer(repcl, model, serve, never_serve, monkeypatch):
    serve()
    monkeypatch.setenv("REPCL_TOKEN", TOKEN)
    assert "Another service writes" in refused(repcl("serve", model, "--port", 0))


def test_a_package_that_is_not_there(repcl, model, never_serve, monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "repcl.serving.run")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    said = refused(repcl("serve", model))
    assert "pip install 'repcl[serve]'" in said


def test_all_cores_but_one_compute(monkeypatch):
    import torch

    before = torch.get_num_threads()
    try:
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
        run.use_few_threads()
        assert torch.get_num_threads() == 3
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
        run.use_few_threads()
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
