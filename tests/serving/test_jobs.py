"""Changes of the model: one at a time, watched, canceled, refused, decided about, and lost."""

import json
import os
import signal

import pytest

from repcl.classifier import ContinualClassifier, ModelFolder, Update
from repcl.classifier.store.records import LostText
from repcl.data import Example
from repcl.errors import RepclError
from repcl.serving import worker
from repcl.serving.bodies import DoubtfulText, JobBody
from repcl.serving.journal import JobEntry, Journal
from repcl.serving.orders import Learn, Merge, Remove, Rename, Rollback
from repcl.serving.place import Place
from repcl.serving.process import LearningProcess
from repcl.serving.summaries import summary_of
from tests.classifier.conftest import toy
from tests.serving.conftest import WITH_TOKEN, examples, teach


def learn(client, *topics, **options):
    return client.change("learn", {"examples": examples(*topics, **options)})


def test_a_new_class_is_learned_and_answers_when_the_job_is_done(client):
    job = learn(client, "place")
    assert (job["state"], job["revision"], job["problem"]) == ("done", 2, None)
    assert client.get("/v1/model").json()["revision"] == 2
    text = examples("place")[0]["text"]
    assert client.label(text) == "place"


def test_a_job_is_answered_at_once_and_says_where_it_is(client):
    sent = client.post("/v1/learn", json={"examples": examples("place")}, headers=WITH_TOKEN)
    assert sent.status_code == 202
    assert sent.headers["location"] == f"/v1/jobs/{sent.json()['id']}"
    client.wait(sent.json()["id"])


def test_a_summary_tells_what_was_learned_and_every_old_class_before_and_after(client):
    summary = learn(client, "place")["summary"]
    assert summary["sentence"] == "Learned place."
    assert summary["new_classes"] == ["place"]
    regressed = [one["regressed"] for one in summary["classes"]]
    assert regressed == sorted(regressed, reverse=True)
    assert {one["label"] for one in summary["classes"]} == {"fruit", "vehicle", "weather"}


def test_events_tell_every_state_and_end_with_the_last(client):
    sent = client.post("/v1/learn", json={"examples": examples("place")}, headers=WITH_TOKEN).json()
    told = client.get(f"/v1/jobs/{sent['id']}/events")
    assert told.headers["content-type"].startswith("text/event-stream")
    states = [json.loads(line[6:])["state"] for line in told.text.splitlines() if line.startswith("data: ")]
    assert states[-1] == "done"
    assert set(states) <= {"queued", "running", "done"}


def test_jobs_that_come_together_are_done_one_after_another(client):
    sent = [
        client.post("/v1/learn", json={"examples": examples(topic)}, headers=WITH_TOKEN).json()["id"]
        for topic in ("place", "person", "conflict")
    ]
    assert [client.wait(job)["revision"] for job in sent] == [2, 3, 4]
    assert [one["id"] for one in client.get("/v1/jobs").json()["jobs"]] == sent[::-1]
    assert client.get("/v1/model").json()["classes"] == 6


def test_a_class_is_renamed_merged_and_removed(client, model):
    assert client.change("classes/rename", {"old": "fruit", "new": "food"})["state"] == "done"
    assert client.change("classes/merge", {"labels": ["food", "weather"], "into": "all"})["state"] == "done"
    job = client.change("classes/remove", {"label": "all"})
    assert job["summary"]["notes"] == ["Older revisions still hold its texts: 1, 2, 3."]
    assert [one["label"] for one in client.get("/v1/classes").json()["classes"]] == ["vehicle"]
    assert ModelFolder(model).numbers() == [1, 2, 3, 4]


def test_a_class_is_removed_with_every_revision_that_holds_it(client, model):
    job = client.change("classes/remove", {"label": "fruit", "purge": True})
    assert job["summary"]["notes"] == ["Deleted the revisions that held it: 1."]
    assert ModelFolder(model).numbers() == [2]


def test_a_rollback_is_in_use_when_the_job_is_done(client):
    learn(client, "place")
    job = client.change("rollback", {"revision": 1})
    assert (job["state"], job["revision"]) == ("done", 1)
    assert client.get("/v1/model").json()["revision"] == 1
    assert [one["is_current"] for one in client.get("/v1/history").json()["revisions"]] == [True, False]


@pytest.mark.parametrize(
    ("route", "body", "words"),
    [
        ("classes/rename", {"old": "friut", "new": "food"}, "Did you mean 'fruit'?"),
        ("classes/remove", {"label": "nothing"}, "No class 'nothing'"),
        ("rollback", {"revision": 77}, "has no revision 77"),
    ],
)
def test_a_job_that_cannot_be_done_fails_and_says_why(client, route, body, words):
    job = client.change(route, body)
    assert job["state"] == "failed"
    assert words in job["problem"]["detail"]
    assert client.get("/v1/model").json()["revision"] == 1


def test_nothing_answers_to_a_job_that_is_not_there(client):
    for path in ("jobs/0123456789ab", "jobs/0123456789ab/events"):
        assert client.get(f"/v1/{path}").status_code == 404
    assert client.post("/v1/jobs/0123456789ab/cancel", headers=WITH_TOKEN).status_code == 404


# ---- refused by the guard -----------------------------------------------------------------------


@pytest.fixture
def refused(model, serve):
    """A service with an update that the guard refused: texts of one class under another one's name."""
    classifier = ContinualClassifier.load(model, device="cpu")
    classifier.set_params(tolerance=0.0).save(model)
    client = serve()
    texts, _ = toy("fruit", texts=8)
    wrong = [{"text": f"{text} {n}", "label": "vehicle"} for text in texts for n in range(3)]
    job = client.change("learn", {"examples": wrong})
    assert job["state"] == "refused", job
    return client, job


def test_a_refused_update_waits_and_the_old_revision_answers(refused):
    client, job = refused
    assert client.get("/v1/model").json()["revision"] == 2
    assert job["summary"]["classes"][0]["regressed"]
    assert job["summary"]["classes"][0]["advice"]
    assert job["summary"]["sentence"] == "Learned more of vehicle."
    assert job["summary"]["reasons"]


def update(**more):
    doubtful = [LostText(text=f"text {number}", label="fruit", answer="vehicle") for number in range(30)]
    return Update(action="learn", when="2026-01-01T00:00:00Z", doubtful_texts=tuple(doubtful), **more)


def test_a_refused_update_lists_the_first_texts_to_check_with_the_label_that_others_speak_for():
    found = summary_of(update(reasons=("labels",)), {}, {}, []).doubtful_texts
    assert found[0] == DoubtfulText(text="text 0", label="fruit", likelier="vehicle")
    assert len(found) == 20


def test_an_update_that_is_used_lists_no_texts_to_check():
    assert summary_of(update(), {}, {}, []).doubtful_texts == []


def test_a_refused_update_can_be_accepted(refused):
    client, job = refused
    answer = client.post(f"/v1/jobs/{job['id']}/accept", headers=WITH_TOKEN).json()
    assert answer["state"] == "done"
    assert client.get("/v1/model").json()["revision"] == job["revision"]
    assert client.post(f"/v1/jobs/{job['id']}/discard", headers=WITH_TOKEN).status_code == 409


def test_an_update_that_was_accepted_is_so_in_the_history_even_after_a_rollback(refused):
    client, job = refused
    client.post(f"/v1/jobs/{job['id']}/accept", headers=WITH_TOKEN)
    found = client.get("/v1/history").json()["revisions"]
    assert [(one["is_refused"], one["is_accepted"]) for one in found] == [(False, False)] * 2 + [(True, True)]


def test_a_refused_update_can_be_discarded(refused, model):
    client, job = refused
    answer = client.post(f"/v1/jobs/{job['id']}/discard", headers=WITH_TOKEN).json()
    assert answer["state"] == "discarded"
    assert job["revision"] not in ModelFolder(model).numbers()
    assert client.get("/v1/model").json()["revision"] == 2


def test_a_decision_on_the_command_line_is_noticed(refused, model):
    client, job = refused
    with ModelFolder(model).lock("discarding"):
        ModelFolder(model).discard()
    assert client.wait_for(lambda: client.get(f"/v1/jobs/{job['id']}").json()["state"] == "discarded")


def test_a_refused_update_is_outdated_when_another_revision_comes_first(refused, model):
    client, job = refused
    teach(model, "place")
    client.service.current.refresh()
    found = client.get(f"/v1/jobs/{job['id']}").json()
    assert (found["state"], found["problem"]["title"]) == ("discarded", "Outdated")


# ---- canceled, failed, lost ---------------------------------------------------------------------


@pytest.fixture
def held(model):
    """The folder is locked by another process, as it were: a job that starts has to wait."""
    with ModelFolder(model).lock("testing"):
        yield


def test_a_job_that_waits_is_canceled(client, held):
    first, second = (
        client.post("/v1/learn", json={"examples": examples(topic)}, headers=WITH_TOKEN).json()["id"]
        for topic in ("place", "person")
    )
    answer = client.post(f"/v1/jobs/{second}/cancel", headers=WITH_TOKEN)
    assert answer.json()["state"] == "canceled"
    assert client.get(f"/v1/jobs/{first}").json()["state"] in ("queued", "running")


def test_a_canceled_job_keeps_none_of_its_texts(client, held):
    sent = [
        client.post("/v1/learn", json={"examples": examples(topic)}, headers=WITH_TOKEN).json()["id"]
        for topic in ("place", "person")
    ]
    client.post(f"/v1/jobs/{sent[1]}/cancel", headers=WITH_TOKEN)
    assert client.service.jobs._jobs[sent[1]].order is None


def test_a_refused_job_keeps_none_of_its_texts(refused):
    client, job = refused
    assert client.service.jobs._jobs[job["id"]].order is None


def test_a_job_that_is_over_cannot_be_canceled(client):
    job = learn(client, "place")
    answer = client.post(f"/v1/jobs/{job['id']}/cancel", headers=WITH_TOKEN)
    assert answer.status_code == 409
    assert "done" in answer.json()["detail"]


def test_too_many_jobs_are_told_to_come_again(client, held, monkeypatch):
    monkeypatch.setattr("repcl.serving.jobs.WAITING_JOBS", 1)
    codes = [
        client.post("/v1/rollback", json={"revision": 1}, headers=WITH_TOKEN).status_code for _ in range(3)
    ]
    assert codes[-1] == 503


@pytest.fixture
def own_process(monkeypatch):
    """A service has a learning process of its own, which may be killed."""
    monkeypatch.setattr("repcl.serving.jobs.LearningProcess", LearningProcess)


def running(client):
    """A job that has begun, and waits for the folder's lock."""
    sent = client.post("/v1/learn", json={"examples": examples("place")}, headers=WITH_TOKEN).json()["id"]
    assert client.wait_for(lambda: client.get(f"/v1/jobs/{sent}").json()["progress"] is not None)
    return sent


def test_a_running_job_is_canceled_and_the_next_one_has_its_turn(serve, own_process, model):
    client = serve()
    with ModelFolder(model).lock("testing"):
        job = running(client)
        assert client.post(f"/v1/jobs/{job}/cancel", headers=WITH_TOKEN).json()["state"] == "canceled"
    assert client.wait(job)["state"] == "canceled"
    assert learn(client, "place")["revision"] == 2


def test_when_the_learning_process_is_killed_the_job_fails_and_answers_go_on(serve, own_process, model):
    client = serve()
    with ModelFolder(model).lock("testing"):
        job = running(client)
        os.kill(client.service.jobs.process.number, signal.SIGKILL)
        found = client.wait(job)
    assert (found["state"], found["problem"]["title"]) == ("failed", "Ended")
    assert client.post("/v1/predict", json={"texts": ["the red apple"]}).status_code == 200


def test_a_service_clears_away_what_one_before_did_not_finish_and_nothing_else(model):
    place = Place(model)
    place.path.mkdir()
    names = [".part-0123456789ab-jobs.json", ".part-0123456789ab-thesis.tex", ".part-mine", "thesis.tex"]
    for name in names:
        (place.path / name).write_text("mine")
    place.claim()
    place.release()
    assert sorted(os.listdir(place.path)) == sorted([*names[1:], "lock"])


def test_jobs_that_a_service_did_not_end_are_lost(model, serve):
    place = Place(model)
    place.claim()
    journal = Journal(place)
    waiting = JobBody(id="0" * 12, action="learn", state="queued", created="2026-01-01T00:00:00Z")
    done = waiting.model_copy(update={"id": "1" * 12, "state": "done"})
    begun = waiting.model_copy(update={"id": "2" * 12, "state": "running"})
    journal.write([JobEntry(job=job) for job in (waiting, done, begun)])
    place.release()
    client = serve()
    assert [one["state"] for one in client.get("/v1/jobs").json()["jobs"]] == ["lost", "done", "lost"]


def test_a_damaged_journal_does_not_stop_a_service(model, serve):
    (model / "service").mkdir()
    (model / "service" / "jobs.json").write_text("{")
    assert serve().get("/v1/jobs").json() == {"jobs": []}


def test_no_text_of_a_user_is_in_the_journal(refused, model):
    _, job = refused
    lost = [text for one in job["summary"]["classes"] for text in one["lost_texts"]]
    assert lost
    written = (model / "service" / "jobs.json").read_text()
    assert not [text for text in lost if text in written]
    assert job["id"] in written


def test_ids_of_texts_that_are_settled_are_not_in_the_journal(client, model):
    job = client.change("learn", {"examples": examples("place"), "collected": ["0123456789abcdef"]})
    assert job["state"] == "done"
    assert client.wait_for(lambda: '"done"' in (model / "service" / "jobs.json").read_text())
    assert "0123456789abcdef" not in (model / "service" / "jobs.json").read_text()


def test_texts_to_check_are_not_in_the_journal_either(model):
    place = Place(model)
    place.claim()
    summary = summary_of(update(reasons=("labels",)), {}, {}, [])
    job = JobBody(
        id="0" * 12, action="learn", state="refused", created="2026-01-01T00:00:00Z", summary=summary
    )
    Journal(place).write([JobEntry(job=job)])
    place.release()
    assert "labels" in (model / "service" / "jobs.json").read_text()
    assert "text 0" not in (model / "service" / "jobs.json").read_text()


def test_a_class_that_was_deleted_for_good_is_named_nowhere(client, model):
    learn(client, "place")
    assert "place" in (model / "service" / "jobs.json").read_text()
    client.change("classes/remove", {"label": "place", "purge": True})
    assert client.wait_for(lambda: "place" not in (model / "service" / "jobs.json").read_text())


def test_two_services_do_not_write_to_one_folder(serve, model):
    serve()
    with pytest.raises(RepclError, match="--read-only"):
        serve()
    assert serve(is_read_only=True).get("/v1/ready").status_code == 200


def test_a_link_in_place_of_the_services_folder_is_not_followed(serve, model, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (model / "service").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RepclError, match="links are not followed"):
        serve()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_folder_that_cannot_be_written_is_said_to_be(serve, model, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(RepclError, match=r"cannot be written \(Permission denied\).*--read-only"):
        serve()


# ---- the learning process, seen from inside -----------------------------------------------------


class Wire:
    """The service's end of the connection, in this process."""

    def __init__(self, may_write: bool) -> None:
        self.may_write = may_write
        self.sent: list[object] = []

    def send(self, message: object) -> None:
        self.sent.append(message)

    def recv(self) -> bool:
        return self.may_write


def test_nothing_is_written_that_the_service_no_longer_wants(model):
    order = worker.Assignment(model, Rename("fruit", "food"), "cpu")
    outcome = worker.carried_out(order, Wire(may_write=False))
    assert isinstance(outcome, worker.Failed)
    assert ModelFolder(model).numbers() == [1]


def test_a_rollback_asks_whether_it_may_be_written_once_the_folder_is_free(model):
    wire, order = Wire(may_write=True), worker.Assignment(model, Rollback(1), "cpu")
    with ModelFolder(model).lock("testing"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "WAIT", 0.0)
        outcome = worker.carried_out(order, wire)
    assert isinstance(outcome, worker.Failed)
    assert not any(isinstance(one, worker.AsksToWrite) for one in wire.sent)
    assert outcome.detail.endswith(" Try again when it has ended.")


@pytest.mark.parametrize(
    ("order", "is_used"),
    [(Learn((Example("a red apple", "vehicle"),)), False), (Merge(("fruit", "vehicle"), "vehicle"), True)],
    ids=["learn", "merge"],
)
def test_only_learning_is_refused(model, monkeypatch, order, is_used):
    monkeypatch.setattr(Update, "is_refused", True)
    outcome = worker.carried_out(worker.Assignment(model, order, "cpu"), Wire(may_write=True))
    assert isinstance(outcome, worker.Finished)
    assert (outcome.is_used, ModelFolder(model).current()) == (is_used, 2 if is_used else 1)


def test_a_class_that_was_only_announced_is_removed_without_a_word_about_older_revisions(model):
    classifier = ContinualClassifier.load(model, device="cpu")
    texts, labels = toy("fruit", texts=2, start=60)
    classifier.partial_fit(texts, labels, classes=["fruit", "vehicle", "weather", "later"]).save(model)
    outcome = worker.carried_out(worker.Assignment(model, Remove("later"), "cpu"), Wire(may_write=True))
    assert isinstance(outcome, worker.Finished)
    assert outcome.summary.notes == []


def test_a_class_is_removed_even_where_older_revisions_cannot_be_deleted(model, monkeypatch):
    def refuse(*_):
        raise RepclError("The disk is read-only.")

    monkeypatch.setattr(ModelFolder, "purge", refuse)
    order = worker.Assignment(model, Remove("fruit", purge=True), "cpu")
    outcome = worker.carried_out(order, Wire(may_write=True))
    assert isinstance(outcome, worker.Finished)
    assert outcome.summary.notes == [
        "Older revisions still hold its texts: 1. They could not be deleted (The disk is read-only.); "
        "`repcl classes remove MODEL NAME --purge` deletes them later."
    ]
    assert ModelFolder(model).current() == 2


def test_an_unforeseen_error_names_its_kind_and_quotes_nothing(model, monkeypatch):
    def fail(*_, **__):
        raise KeyError("a text of a user")

    monkeypatch.setattr(ContinualClassifier, "load", fail)
    outcome = worker.carried_out(worker.Assignment(model, Rename("fruit", "food"), "cpu"), Wire(True))
    assert outcome == worker.Failed("Unforeseen", "Something happened that repcl did not foresee (KeyError).")


def test_progress_is_told_stage_by_stage(model):
    wire = Wire(may_write=True)
    order = Learn(tuple(Example(one["text"], one["label"]) for one in examples("place")))
    outcome = worker.carried_out(worker.Assignment(model, order, "cpu"), wire)
    assert isinstance(outcome, worker.Finished)
    stages = [one.stage for one in wire.sent if isinstance(one, worker.Advance)]
    assert stages[:3] == ["loading", "embedding", "solving"]
