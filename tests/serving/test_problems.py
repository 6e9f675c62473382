"""Whatever is wrong about a request, its answer is a problem body that repeats nothing of it."""

import logging

import pytest

from repcl.serving.options import TEXT_LENGTH
from tests.serving.conftest import WITH_TOKEN


@pytest.fixture
def client(calm):
    return calm


def problem(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert {"type", "title", "detail"} <= body.keys()
    return body


def test_an_address_that_is_not_there(client):
    assert "openapi" in problem(client.get("/v1/nothing"), 404)["detail"]
    problem(client.get("/nothing.html"), 404)


def test_a_method_that_is_not_taken(client):
    answer = client.get("/v1/predict")
    problem(answer, 405)
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff\xfe", b"[" * 100_000, b'{"texts": ["\\ud800"]}', b"1" * 10_000, b"null", b""],
    ids=["half", "bytes", "nested", "surrogate", "digits", "null", "nothing"],
)
def test_a_body_that_is_no_request(client, body):
    answer = client.post("/v1/predict", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    problem(answer, answer.status_code)


@pytest.mark.parametrize(
    ("body", "location"),
    [
        ({}, "body.texts"),
        ({"texts": "one"}, "body.texts"),
        ({"texts": ["a"], "top": 0}, "body.top"),
        ({"texts": ["a"], "nearest": 21}, "body.nearest"),
        ({"texts": ["a"], "topp": 1}, "body.topp"),
        ({"texts": [None]}, "body.texts.0"),
        ({"texts": ["x" * (TEXT_LENGTH + 1)]}, "body.texts.0"),
        ({"texts": [{"text": "a", "head": [0, 1]}]}, "body.texts.0"),
        ({"texts": [{"text": "a", "trigger": [0, 2]}]}, "body.texts.0"),
        ({"texts": ["a"] * 1001}, "body.texts"),
    ],
)
def test_a_wrong_field_is_located(client, body, location):
    found = problem(client.post("/v1/predict", json=body), 422)
    assert found["errors"][0]["location"].startswith(location)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"text": "a", "head": [0, 1]}, "head and tail have to be given together"),
        ("x" * (TEXT_LENGTH + 1), "String should have at most 10000 characters"),
        (17, "Expected a JSON object"),
    ],
)
def test_a_text_that_is_wrong_has_one_problem_in_plain_words(client, text, message):
    (found,) = problem(client.post("/v1/predict", json={"texts": [text]}), 422)["errors"]
    assert found == {"location": "body.texts.0", "message": message}


@pytest.mark.parametrize(
    "example",
    [
        {"text": " ", "label": "a"},
        {"text": "a", "label": " "},
        {"text": "a", "label": "a\0b"},
        {"text": "a", "label": "x" * 501},
        {"text": "a"},
        {"label": "a"},
    ],
)
def test_an_example_that_cannot_be_learned_starts_no_job(client, example):
    answer = client.post("/v1/learn", json={"examples": [example]}, headers=WITH_TOKEN)
    problem(answer, 422)
    assert client.get("/v1/jobs").json() == {"jobs": []}


def test_a_blank_text_is_called_so(client):
    body = {"examples": [{"text": " ", "label": "a"}]}
    (found,) = problem(client.post("/v1/evaluate", json=body), 422)["errors"]
    assert found["message"] == "Expected text that is not blank and has no null characters"


def test_a_job_of_a_wrong_id_is_said_to_be_so(client):
    (found,) = problem(client.get("/v1/jobs/xyz"), 422)["errors"]
    assert found == {"location": "path.job", "message": "String should match pattern '^[0-9a-f]{12}$'"}


def test_what_was_sent_is_not_repeated(client):
    sent = {"texts": ["a", 17], "top": "my secret"}
    assert "secret" not in client.post("/v1/predict", json=sent).text


def test_many_problems_are_counted_and_the_first_listed(client):
    found = problem(client.post("/v1/predict", json={"texts": [1] * 100}), 422)
    assert len(found["errors"]) == 50


def test_an_unforeseen_error_is_a_problem_and_its_words_stay_out_of_the_log(client, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("my secret text")

    monkeypatch.setattr(type(client.service.current.served), "answers", fail)
    with caplog.at_level(logging.DEBUG):
        answer = client.post("/v1/predict", json={"texts": ["my secret text"]})
    problem(answer, 500)
    assert "secret" not in answer.text + caplog.text
    assert "RuntimeError at" in caplog.text


def test_one_bad_question_does_not_spoil_those_it_was_computed_with(client, monkeypatch):
    kind = type(client.service.current.served)
    answers = kind.answers

    def picky(self, questions):
        if any(one.text == "bad" for question in questions for one in question.examples):
            raise RuntimeError
        return answers(self, questions)

    monkeypatch.setattr(kind, "answers", picky)
    assert client.post("/v1/predict", json={"texts": ["bad"]}).status_code == 500
    assert client.post("/v1/predict", json={"texts": ["the red apple"]}).status_code == 200
