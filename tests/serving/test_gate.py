"""Who may ask what: hosts, tokens, sizes, and how many at a time."""

import asyncio
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from repcl.errors import InvalidSetting
from repcl.serving import gate as gate_module
from repcl.serving import jobs as jobs_module
from repcl.serving.gate import Gate
from repcl.serving.metrics import Metrics
from repcl.serving.options import BODY_BYTES, Options, read_token
from tests.serving.conftest import TOKEN, WITH_TOKEN, examples

LEARN = {"examples": examples("place", texts=1)}


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "evil.example:8000", "", "[::2]", "127.0.0.1.evil"]
)
def test_a_request_for_another_host_is_refused(calm, host):
    assert calm.get("/v1/model", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000"])
def test_names_of_this_machine_are_its_own(calm, host):
    assert calm.get("/v1/model", headers={"Host": host}).status_code == 200


def test_a_name_that_was_allowed_is_its_own(serve):
    client = serve(allowed_hosts=("desk.example",))
    assert client.get("/v1/model", headers={"Host": "desk.example:80"}).status_code == 200
    assert client.get("/v1/model", headers={"Host": "other.example"}).status_code == 421


def test_health_is_told_under_any_name(calm):
    assert calm.get("/v1/health", headers={"Host": "10.0.0.7:8000"}).status_code == 200


@pytest.mark.parametrize(
    "header",
    [None, "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ü"],
)
def test_nobody_writes_without_the_token(calm, header):
    headers = {"Authorization": header.encode()} if header else {}
    answer = calm.post("/v1/learn", json=LEARN, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert calm.get("/v1/jobs").json() == {"jobs": []}


@pytest.mark.parametrize(
    "route",
    ["learn", "rollback", "classes/rename", "classes/merge", "classes/remove", "unknown/erase",
     "jobs/0123456789ab/cancel", "jobs/0123456789ab/accept", "jobs/0123456789ab/discard", "to/come"],
)  # fmt: skip
def test_every_change_needs_the_token(calm, route):
    assert calm.post(f"/v1/{route}", json={}).status_code == 401


@pytest.mark.parametrize("options", [{"token": None}, {"is_read_only": True}])
def test_a_service_that_may_not_write_says_why(serve, options):
    client = serve(**options)
    answer = client.post("/v1/learn", json=LEARN, headers=WITH_TOKEN)
    assert answer.status_code == 403
    assert answer.json()["detail"] == client.get("/v1/model").json()["why_not"]
    assert client.post("/v1/predict", json={"texts": ["a"]}).status_code == 200


def test_a_service_that_may_not_write_writes_nothing(serve, model):
    before = sorted(path.name for path in model.rglob("*"))
    serve(token=None).get("/v1/unknown")
    assert sorted(path.name for path in model.rglob("*")) == before


def test_away_from_this_machine_reading_needs_the_token_too(serve):
    client = serve(host="192.0.2.1")
    assert client.get("/v1/model").status_code == 401
    assert client.post("/v1/predict", json={"texts": ["a"]}).status_code == 401
    assert client.get("/v1/openapi.json").status_code == 401
    assert client.get("/v1/model", headers=WITH_TOKEN).json()["needs_token"]
    assert [client.get(path).status_code for path in ("/v1/health", "/v1/ready", "/")] == [200, 200, 200]


def test_a_large_body_is_refused_by_its_length(calm):
    answer = calm.post("/v1/predict", content=b" " * (BODY_BYTES + 1))
    assert answer.status_code == 413


def test_a_large_body_without_a_length_is_refused_when_it_grows_too_large(calm):
    parts = (b" " * 2**20 for _ in range(BODY_BYTES // 2**20 + 1))
    assert calm.post("/v1/predict", content=parts).status_code == 413


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"]
)
def test_a_form_on_another_page_cannot_send_a_body(calm, kind):
    answer = calm.post("/v1/predict", content=b'{"texts": ["a"]}', headers={"Content-Type": kind})
    assert answer.status_code == 415


def test_no_other_page_is_told_that_it_may_ask(calm):
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = calm.options("/v1/predict", headers=headers)
    assert not [name for name in answer.headers if name.startswith("access-control")]


@contextmanager
def busy(client):
    """Nothing is computed meanwhile."""
    begun, end = threading.Event(), threading.Event()

    def hold():
        begun.set()
        end.wait(60)

    client.portal.start_task_soon(client.service.answerer.run, hold)
    assert begun.wait(60)
    try:
        yield
    finally:
        end.set()


def test_where_too_many_wait_the_next_is_told_to_come_again(serve):
    client = serve(waiting=1)
    found = []
    with busy(client):
        first = threading.Thread(
            target=lambda: found.append(client.post("/v1/predict", json={"texts": ["a"]}).status_code)
        )
        first.start()
        while not client.service.answerer.length:
            pass
        answer = client.post("/v1/predict", json={"texts": ["b"]})
        health = client.get("/v1/health")
    first.join()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert health.status_code == 200
    assert found == [200]
    assert client.post("/v1/predict", json={"texts": ["b"]}).status_code == 200


def asked(gate, send, path="/v1/model"):
    """Let a gate answer a request for a path in a loop of its own."""
    scope = {"type": "http", "method": "GET", "path": path, "headers": [(b"host", b"localhost")]}

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    return gate(scope, receive, send)


def test_an_answer_that_has_begun_keeps_nobody_out():
    async def endless(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()

    async def statuses():
        found = []

        async def send(message):
            found.append(message.get("status"))

        gate = Gate(endless, SimpleNamespace(options=Options(Path("m"), waiting=1), metrics=Metrics()))
        asking = [asyncio.create_task(asked(gate, send)) for _ in range(5)]
        while len(found) < len(asking):
            await asyncio.sleep(0)
        for task in asking:
            task.cancel()
        return found

    assert asyncio.run(statuses()) == [200] * 5


@pytest.mark.parametrize("body", [{"body": b"part", "more_body": True}, {"body": b" " * 2**20}])
def test_who_takes_nothing_of_an_answer_is_let_go(body, monkeypatch):
    monkeypatch.setattr(gate_module, "READING_SECONDS", 0.01)

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", **body})
        pytest.fail("the answer was taken")

    async def send(message):
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    asyncio.run(asked(Gate(app, SimpleNamespace(options=Options(Path("m")), metrics=Metrics())), send))


def test_a_body_with_two_lengths_is_refused(calm):
    headers = {"Content-Length": "16", "Transfer-Encoding": "chunked", "Content-Type": "application/json"}
    answer = calm.post("/v1/predict", content=b'{"texts": ["a"]}', headers=headers)
    assert answer.status_code == 400
    assert answer.headers["connection"] == "close"


def test_no_more_than_some_may_listen_to_jobs(calm, monkeypatch):
    assert calm.get("/v1/jobs/0123456789ab/events").status_code == 404
    monkeypatch.setattr(jobs_module, "LISTENERS", 0)
    assert calm.get("/v1/jobs/0123456789ab/events").status_code == 503


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"token": "short"}, "at least 16 characters"),
        ({"token": "with blanks in between"}, "without blanks"),
        ({"host": "192.0.2.1"}, "Expected a token"),
        ({"host": "0.0.0.0", "token": TOKEN}, "--allowed-host"),
        ({"host": "::", "token": TOKEN}, "--allowed-host"),
        ({"collects": True}, "Expected a token for --collect"),
        ({"collects": True, "token": TOKEN, "is_read_only": True}, "--read-only"),
    ],
)
def test_options_that_would_not_do_are_refused(tmp_path, options, words):
    with pytest.raises(InvalidSetting, match=words):
        Options(tmp_path, **options)


def test_the_token_comes_from_the_file_or_else_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("REPCL_TOKEN", "from the environment")
    (tmp_path / "token").write_text("from the file\n")
    assert read_token(tmp_path / "token") == "from the file"
    assert read_token(None) == "from the environment"
    monkeypatch.delenv("REPCL_TOKEN")
    assert read_token(None) is None
