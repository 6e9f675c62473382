"""A model whose texts may have several labels, over HTTP."""

import numpy as np
import pytest

from repcl.classifier import ContinualClassifier
from repcl.classifier.state import ClassifierState
from tests.classifier.conftest import cheap_settings, save_tiny_encoder, toy
from tests.serving.conftest import examples


@pytest.fixture
def model(tmp_path):
    """Texts of fruit are also food."""
    encoder = save_tiny_encoder(tmp_path / "encoder")
    texts, labels = toy("fruit", "vehicle", "weather", texts=8)
    sets = [[label, "food"] if label == "fruit" else [label] for label in labels]
    classifier = ContinualClassifier(
        "instant",
        str(encoder),
        settings=cheap_settings("instant"),
        device="cpu",
        tolerance=1.0,
        multilabel=True,
    )
    classifier.fit(texts, sets).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_text_has_the_labels_that_the_classifier_gives_it(client, model):
    texts, _ = toy("fruit", "weather", texts=4)
    found = client.post("/v1/predict", json={"texts": texts}).json()["predictions"]
    expected = ContinualClassifier.load(model, device="cpu").predict(texts)
    for answer, labels in zip(found, expected, strict=True):
        if not answer["unknown"]:
            assert {one["label"] for one in answer["labels"]} == set(labels)
    assert client.get("/v1/model").json()["multilabel"]


def test_a_text_that_is_taught_twice_has_both_labels(client, model):
    taught = examples("place", texts=6)
    again = [one | {"label": "somewhere"} for one in taught]
    job = client.change("learn", {"examples": [*taught, *again]})
    assert job["state"] == "done", job
    (labels,) = ContinualClassifier.load(model, device="cpu").predict([taught[0]["text"]])
    assert {"place", "somewhere"} <= set(labels)


def test_a_text_is_taught_with_both_labels_of_a_cell(client, model):
    taught = [one | {"label": "place | somewhere"} for one in examples("place", texts=6)]
    job = client.change("learn", {"examples": taught})
    assert job["state"] == "done", job
    assert job["summary"]["new_classes"] == ["place", "somewhere"]


def test_a_cell_of_an_evaluation_holds_several_labels(client):
    texts, _ = toy("fruit", texts=4)
    by_cell = [{"text": text, "label": "fruit|food"} for text in texts]
    by_row = [{"text": text, "label": label} for text in texts for label in ("fruit", "food")]
    cells, rows = (client.post("/v1/evaluate", json={"examples": one}).json() for one in (by_cell, by_row))
    assert cells == rows


def test_a_text_without_any_label_is_unknown(client, monkeypatch):
    monkeypatch.setattr(ClassifierState, "has_labels", lambda _, found: np.zeros(found.shape, dtype=bool))
    (answer,) = client.post("/v1/predict", json={"texts": ["the red apple"]}).json()["predictions"]
    assert (answer["label"], answer["labels"], answer["unknown"]) == (None, [], True)


def test_an_evaluation_counts_texts_that_get_exactly_their_labels(client, model):
    texts, labels = toy("fruit", "weather", texts=4)
    rows = [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)]
    rows += [row | {"label": "food"} for row in rows if row["label"] == "fruit"]
    found = client.post("/v1/evaluate", json={"examples": rows}).json()
    given = ContinualClassifier.load(model, device="cpu").predict(texts)
    wanted = [{"fruit", "food"} if label == "fruit" else {label} for label in labels]
    right = sum(set(own) == sets for own, sets in zip(given, wanted, strict=True))
    assert found["accuracy"] == right / len(texts)
    counts = {one["label"]: one["texts"] for one in found["classes"]}
    assert counts == {"food": 4, "fruit": 4, "weather": 4}


def test_a_label_that_is_missed_is_shown_as_missed(client, model):
    texts, _ = toy("weather", texts=4)
    rows = [{"text": text, "label": label} for text in texts for label in ("weather", "food")]
    found = client.post("/v1/evaluate", json={"examples": rows}).json()
    given = ContinualClassifier.load(model, device="cpu").predict(texts)
    missed = [
        one["count"] for one in found["confusions"] if (one["label"], one["predicted"]) == ("food", "–")
    ]
    assert missed == [sum(set(own) <= {"weather"} for own in given)]
