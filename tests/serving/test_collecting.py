"""Texts that the model was not sure of: kept if asked for, grouped, taught, erased, counted."""

from contextlib import ExitStack

import pytest

from repcl.classifier import ContinualClassifier, ModelFolder
from repcl.classifier.store.records import DamagedModel
from repcl.serving import collecting
from repcl.serving.bodies import JobBody
from repcl.serving.journal import JobEntry, Journal
from repcl.serving.place import Place
from tests.serving.conftest import WITH_TOKEN, examples, started

STRANGE = [f"{word} zz {number}" for word in ("qq xx", "jj ww") for number in range(4)]


@pytest.fixture
def unsure(monkeypatch):
    """The model is sure of nothing."""
    from repcl.classifier.answering import UnknownRule

    monkeypatch.setattr(UnknownRule, "applies", lambda _, evidence: evidence.probabilities.max(axis=1) >= 0)


@pytest.fixture
def collecting_client(serve, unsure):
    client = serve(collects=True)
    client.post("/v1/predict", json={"texts": [*STRANGE, STRANGE[0], " "]})
    return client


def collected(client):
    return [one for group in client.get("/v1/unknown").json()["groups"] for one in group["texts"]]


def test_nothing_is_collected_unless_it_is_asked_for(serve, unsure, model):
    client = serve()
    client.post("/v1/predict", json={"texts": STRANGE})
    assert client.get("/v1/unknown").json() == {"collects": False, "total": 0, "groups": []}
    assert not (model / "service" / "collected.json").exists()


def test_unsure_texts_are_collected_once_each_and_grouped(collecting_client):
    found = collecting_client.get("/v1/unknown").json()
    assert found["total"] == len(STRANGE)
    assert sorted(one["text"] for one in collected(collecting_client)) == sorted(STRANGE)
    sizes = [len(group["texts"]) for group in found["groups"]]
    assert sizes == sorted(sizes, reverse=True)
    assert all(one["label"] in ("fruit", "vehicle", "weather") for one in collected(collecting_client))


def test_texts_that_the_model_is_sure_of_are_not_collected(serve):
    client = serve(collects=True)
    texts = [one["text"] for one in examples("fruit", texts=4, start=0)]
    answers = client.post("/v1/predict", json={"texts": texts}).json()["predictions"]
    expected = {text for text, one in zip(texts, answers, strict=True) if one["unknown"]}
    assert {one["text"] for one in collected(client)} == expected


def test_single_texts_or_all_are_erased(collecting_client, model):
    client, first = collecting_client, collected(collecting_client)[0]
    erased = client.post("/v1/unknown/erase", json={"ids": [first["id"], "nothing"]}, headers=WITH_TOKEN)
    assert erased.json() == {"erased": 1, "total": len(STRANGE) - 1}
    written = (model / "service" / "collected.json").read_text()
    assert first["text"] not in written
    assert client.post("/v1/unknown/erase", json={"all": True}, headers=WITH_TOKEN).json()["total"] == 0
    assert collected(client) == []


def test_texts_that_were_taught_need_no_review(collecting_client):
    client, some = collecting_client, collected(collecting_client)[:3]
    taught = [{"text": one["text"], "label": "strange"} for one in some]
    job = client.change("learn", {"examples": taught, "collected": [one["id"] for one in some]})
    assert job["state"] == "done"
    assert {one["id"] for one in collected(client)}.isdisjoint(one["id"] for one in some)
    assert len(collected(client)) == len(STRANGE) - 3


def test_a_decision_after_a_restart_settles_the_texts_of_the_update(serve, unsure, model):
    with ExitStack() as stack:
        client = started(stack, model, collects=True)
        client.post("/v1/predict", json={"texts": STRANGE})
        ids = [one["id"] for one in collected(client)]
    classifier = ContinualClassifier.load(model, device="cpu")
    classifier.partial_fit([*STRANGE, "a stranger"], ["strange"] * 9)
    with ModelFolder(model).lock("testing"):
        number = classifier.commit(ModelFolder(model), make_current=False).number
    job = JobBody(id="0" * 12, action="learn", state="refused", created="2026-01-01T00:00:00Z")
    place = Place(model)
    place.claim()
    waiting = job.model_copy(update={"revision": number})
    Journal(place).write([JobEntry(job=waiting, collected=tuple(ids[:3]))])
    place.release()
    client = serve(collects=True)
    assert client.post(f"/v1/jobs/{job.id}/accept", headers=WITH_TOKEN).json()["state"] == "done"
    assert len(collected(client)) == len(STRANGE) - 3


def test_texts_that_cannot_be_erased_from_the_disk_are_said_to_be_there(collecting_client, monkeypatch):
    def refuse(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Place, "write", refuse)
    answer = collecting_client.post("/v1/unknown/erase", json={"all": True}, headers=WITH_TOKEN)
    assert answer.status_code == 503
    assert "still on the disk, which cannot be written (Read-only file system)" in answer.json()["detail"]


def test_collected_texts_are_there_after_a_restart(serve, unsure, model):
    with ExitStack() as stack:
        started(stack, model, collects=True).post("/v1/predict", json={"texts": STRANGE})
    assert len(collected(serve(collects=True))) == len(STRANGE)


def test_the_models_readme_counts_them(collecting_client, model):
    collecting_client.service.collector.write()
    assert "- *Collected texts*: 8 that a service was asked about" in (model / "README.md").read_text()
    collecting_client.post("/v1/unknown/erase", json={"all": True}, headers=WITH_TOKEN)
    assert "Collected texts" not in (model / "README.md").read_text()


def test_the_readme_counts_them_when_a_job_writes_it_too(collecting_client, model):
    collecting_client.service.collector.write()
    collecting_client.change("learn", {"examples": examples("place")})
    assert "- *Collected texts*: 8 that" in (model / "README.md").read_text()


def test_the_oldest_are_let_go_where_there_are_too_many(collecting_client, monkeypatch):
    monkeypatch.setattr(collecting, "MOST_TEXTS", 5)
    collecting_client.post("/v1/predict", json={"texts": ["the newest of all"]})
    assert [one.text for one in collecting_client.service.collector.texts()] == [
        *STRANGE[-4:],
        "the newest of all",
    ]


def test_long_texts_are_bounded_together(collecting_client, monkeypatch):
    monkeypatch.setattr(collecting, "MOST_CHARACTERS", 30)
    collecting_client.post("/v1/predict", json={"texts": ["x" * 25]})
    assert [one.text for one in collecting_client.service.collector.texts()] == ["x" * 25]


def test_other_users_of_the_machine_cannot_read_them(collecting_client, model):
    assert (model / "service").stat().st_mode & 0o077 == 0


def test_a_link_in_place_of_the_file_is_neither_read_nor_written_through(serve, model, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (model / "service").mkdir()
    (model / "service" / "collected.json").symlink_to(tmp_path / "secret")
    with pytest.raises(DamagedModel):
        serve(collects=True)
    assert (tmp_path / "secret").read_text() == "secret"
