"""A service follows its folder: what others write answers soon, and no request is lost on the way."""

import gc
import threading
import weakref
from types import SimpleNamespace

import numpy as np

from repcl.classifier import ContinualClassifier, ModelFolder
from repcl.serving import model as model_module
from tests.classifier.conftest import toy
from tests.serving.conftest import ROUNDING, WITH_TOKEN, examples, teach

TEXT = examples("place")[0]["text"]


def revision(client):
    return client.get("/v1/ready").json()["revision"]


def test_a_reader_switches_to_what_a_writer_makes(serve):
    writer, reader = serve(), serve(is_read_only=True)
    assert writer.change("learn", {"examples": examples("place")})["state"] == "done"
    assert reader.wait_for(lambda: revision(reader) == 2)
    assert reader.label(TEXT) == "place"


def test_a_new_revision_is_looked_for_more_often_than_every_two_seconds():
    assert model_module.POLL_SECONDS <= 1


def test_a_revision_that_no_longer_answers_gives_its_memory_back(client, model, monkeypatch):
    holder = SimpleNamespace(method=client.service.current.served.state.method)
    holder.itself = holder  # so that counting references does not free it
    old, was_gone = weakref.ref(holder.method), []
    del holder
    monkeypatch.setattr(model_module, "release_freed_memory", lambda: was_gone.append(old() is None))
    gc.disable()  # or it may be collected by chance
    try:
        teach(model, "place")
        assert client.wait_for(lambda: revision(client) == 2)
        assert client.wait_for(lambda: was_gone)
    finally:
        gc.enable()
    assert was_gone == [True]


def test_a_writer_switches_to_what_the_command_line_makes(client, model):
    teach(model, "place")
    assert client.wait_for(lambda: revision(client) == 2)
    with ModelFolder(model).lock("rolling back", wait=10):
        ModelFolder(model).rollback(1)
    assert client.wait_for(lambda: revision(client) == 1)


def test_a_damaged_revision_is_not_switched_to(client, model, caplog):
    number = teach(model, "place")
    record = model / "revisions" / f"{number:06}.json"
    good = record.read_bytes()
    record.write_bytes(good.replace(b"place", b"plaice"))
    before = client.service.current.failures
    if revision(client) == 1:
        assert client.wait_for(lambda: client.service.current.failures > before)
        assert revision(client) == 1
        assert client.post("/v1/predict", json={"texts": [TEXT]}).json()["revision"] == 1
    record.write_bytes(good)
    assert client.wait_for(lambda: revision(client) == number)


def test_every_answer_during_switches_is_that_of_one_whole_revision(client, model):
    texts, _ = toy("fruit", "weather", texts=3, start=80)
    teach(model, "place")
    expected = {
        number: ContinualClassifier.load(model, revision=number, device="cpu")
        .predict_proba(texts)
        .max(axis=1)
        for number in (1, 2)
    }
    found, ending = [], threading.Event()

    def ask():
        while not ending.is_set():
            found.append(client.post("/v1/predict", json={"texts": texts}))

    asking = [threading.Thread(target=ask) for _ in range(4)]
    for thread in asking:
        thread.start()
    for number in (1, 2, 1, 2):
        with ModelFolder(model).lock("rolling back", wait=10):
            ModelFolder(model).rollback(number)
        client.service.current.refresh()
    ending.set()
    for thread in asking:
        thread.join()
    assert {answer.status_code for answer in found} == {200}
    assert {answer.json()["revision"] for answer in found} == {1, 2}
    for answer in found:
        body = answer.json()
        confidence = [one["confidence"] for one in body["predictions"]]
        np.testing.assert_allclose(confidence, expected[body["revision"]], atol=ROUNDING)
    assert np.abs(expected[1] - expected[2]).max() > 10 * ROUNDING  # so that one could be told from the other


def test_questions_are_answered_while_a_job_runs(client, model):
    with ModelFolder(model).lock("testing"):
        sent = client.post("/v1/learn", json={"examples": examples("place")}, headers=WITH_TOKEN).json()["id"]
        assert client.wait_for(lambda: client.get(f"/v1/jobs/{sent}").json()["state"] == "running")
        assert client.post("/v1/predict", json={"texts": [TEXT]}).json()["revision"] == 1
    assert client.wait(sent)["state"] == "done"


def test_a_service_remembers_few_of_the_texts_it_was_asked_about(client):
    method = client.service.current.served.state.method
    assert method.encoder.remembered == model_module.REMEMBERED_TEXTS
    assert method.embedder.largest == model_module.REMEMBERED_BYTES
