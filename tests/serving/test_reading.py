"""What the routes that only read answer."""

import json

import numpy as np
import pytest

from repcl.classifier import ContinualClassifier
from repcl.serving import batching
from tests.classifier.conftest import toy
from tests.serving.conftest import ROUNDING, examples

TEXTS = toy("fruit", "vehicle", "weather", texts=4, start=70)[0]


@pytest.fixture
def client(calm):
    return calm


@pytest.fixture
def direct(taught) -> ContinualClassifier:
    return ContinualClassifier.load(taught, device="cpu")


def predicted(client, texts, **options):
    answer = client.post("/v1/predict", json={"texts": texts} | options)
    assert answer.status_code == 200, answer.text
    return answer.json()["predictions"]


def test_labels_and_confidence_are_those_of_the_classifier(client, direct):
    found = predicted(client, TEXTS)
    probabilities = direct.predict_proba(TEXTS)
    assert [one["top"][0]["label"] for one in found] == direct.predict(TEXTS).tolist()
    confidence = [one["confidence"] for one in found]
    np.testing.assert_allclose(confidence, probabilities.max(axis=1), atol=ROUNDING)


def test_texts_are_unknown_where_the_classifier_says_so(client, direct):
    found = [one["unknown"] for one in predicted(client, [*TEXTS, "zzz qqq"])]
    expected = direct.predict([*TEXTS, "zzz qqq"], unknown="none of them") == "none of them"
    assert found == expected.tolist()


def test_an_unknown_text_has_no_label_but_its_best_classes(client):
    (answer,) = predicted(client, ["zzz qqq 9 9 9"])
    if answer["unknown"]:
        assert answer["label"] is None
    assert len(answer["top"]) == 3


def test_an_empty_text_is_unknown_and_has_no_class(client):
    assert predicted(client, ["  ", TEXTS[0]])[0] == {
        "label": None,
        "labels": [],
        "unknown": True,
        "confidence": 0.0,
        "top": [],
        "nearest": [],
    }


def test_as_many_classes_are_named_as_are_asked_for(client):
    assert [len(predicted(client, TEXTS[:1], top=top)[0]["top"]) for top in (1, 2, 50)] == [1, 2, 3]


def test_the_nearest_kept_texts_are_those_of_the_classifier(client, direct):
    (found,) = predicted(client, TEXTS[:1], nearest=2)
    expected = direct.nearest(TEXTS[:1], 2)[0]
    assert [(one["text"], one["label"]) for one in found["nearest"]] == [
        (one.text, one.label) for one in expected
    ]


def test_a_question_of_several_turns_has_the_answers_of_one(client, direct, monkeypatch):
    monkeypatch.setattr(batching, "TEXTS_PER_TURN", 5)
    found = predicted(client, TEXTS)
    assert [one["top"][0]["label"] for one in found] == direct.predict(TEXTS).tolist()


def test_no_text_has_no_answer(client):
    assert predicted(client, []) == []


def test_a_relation_is_refused_by_a_model_of_sentences(client):
    marked = {"text": "anna lives in paris", "head": [0, 4], "tail": [14, 19]}
    answer = client.post("/v1/predict", json={"texts": [marked]})
    assert answer.status_code == 422
    assert "Expected sentence input" in answer.json()["detail"]


def test_the_model_says_what_it_is(client):
    found = client.get("/v1/model").json()
    wanted = {
        "name": "model",
        "method": "instant",
        "kind": "sentence",
        "revision": 1,
        "classes": 3,
        "texts": 24,
    }
    assert wanted.items() <= found.items()
    assert found["can_write"]
    assert not found["needs_token"]


def test_the_model_says_how_long_a_label_may_be(client):
    assert client.get("/v1/model").json()["limits"]["label_length"] == 500


def test_classes_have_counts_and_checked_texts(client):
    found = client.get("/v1/classes").json()
    assert [(one["label"], one["texts"], one["checked"]) for one in found["classes"]] == [
        ("fruit", 8, 8),
        ("vehicle", 8, 8),
        ("weather", 8, 8),
    ]


def test_kept_texts_of_a_class_are_listed(client, direct):
    found = client.get("/v1/classes/texts", params={"label": "fruit"}).json()["texts"]
    assert found == [one.text for one in direct.fitted_state().kept_texts() if one.label == "fruit"]


def test_a_class_that_is_not_there_is_said_to_be_missing(client):
    answer = client.get("/v1/classes/texts", params={"label": "friut"})
    assert answer.status_code == 404
    assert "Did you mean 'fruit'?" in answer.json()["detail"]


def test_the_history_lists_revisions(client):
    (one,) = client.get("/v1/history").json()["revisions"]
    assert (one["number"], one["parent"], one["is_current"], one["is_refused"]) == (1, None, True, False)
    assert one["sentence"] == "Learned fruit, vehicle, weather."


def test_an_evaluation_counts_right_answers(client, direct):
    asked = examples("fruit", "vehicle", texts=3, start=70)
    found = client.post("/v1/evaluate", json={"examples": asked}).json()
    answers = direct.predict([one["text"] for one in asked])
    right = [one["label"] == answer for one, answer in zip(asked, answers, strict=True)]
    assert found["accuracy"] == sum(right) / 6
    assert found["classes"][0]["recall"] == sum(right[:3]) / 3
    assert sum(one["count"] for one in found["confusions"]) == 6 - sum(right)


def test_an_evaluation_reads_labels_as_learning_does_and_counts_those_it_does_not_know(client):
    asked = [one | {"label": f" {one['label']} "} for one in examples("fruit", texts=3, start=70)]
    asked += [{"text": "a", "label": "nothing known"}, {"text": "b", "label": "nothing known"}]
    found = client.post("/v1/evaluate", json={"examples": asked}).json()
    assert found["texts"] == 3
    assert found["unknown_labels"] == {"nothing known": 2}
    assert [one["label"] for one in found["classes"]] == ["fruit"]


def test_an_evaluation_of_strange_labels_says_what_to_do(client):
    answer = client.post("/v1/evaluate", json={"examples": [{"text": "a", "label": "nothing known"}]})
    assert answer.status_code == 422
    assert "learn them first" in answer.json()["detail"]


def test_health_and_readiness_are_told(client):
    assert client.get("/v1/health").json() == {"status": "ok"}
    assert client.get("/v1/ready").json() == {"status": "ready", "revision": 1}


def test_metrics_count_requests_by_route_and_hold_no_text(client):
    client.get("/v1/classes/texts", params={"label": "secret"})
    predicted(client, ["secret text"])
    page = client.get("/v1/metrics").text
    assert 'repcl_requests_total{method="GET",route="/v1/classes/texts",status="404"}' in page
    assert "repcl_texts_total 0" not in page
    assert "repcl_revision 1" in page
    assert "secret" not in page


def test_the_page_is_served_with_a_policy_without_inline_code(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    assert "unsafe" not in page.headers["content-security-policy"]


def test_every_documented_body_has_an_example(client):
    document = client.get("/v1/openapi.json").json()
    for name in ("PredictRequest", "LearnRequest", "RenameRequest", "MergeRequest", "RemoveRequest"):
        assert "examples" in json.dumps(document["components"]["schemas"][name]), name
    assert document["paths"]["/v1/learn"]["post"]["security"] == [{"token": []}]
    assert "security" not in document["paths"]["/v1/predict"]["post"]
