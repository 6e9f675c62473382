"""A month of daily use, played through commands and through Python; both end up with the same model."""

import csv
import json

import numpy as np
import pytest

from repcl import ContinualClassifier
from repcl.classifier import ModelFolder
from repcl.classifier.discovery import discover
from tests.classifier.conftest import toy

ASKED = toy("fruit", "vehicle", "weather", "place", texts=10, start=200)


def table(path, texts, labels=None):
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"] if labels is not None else ["text"])
        rows.writerows(zip(texts, labels, strict=True) if labels is not None else ([text] for text in texts))
    return path


class Month:
    """Every step once as a command and once in Python, compared after each."""

    def __init__(self, repcl, encoder, folder):
        self.repcl, self.model, self.folder = repcl, folder / "model", folder
        self.clf = ContinualClassifier("ncm", encoder=str(encoder), device="cpu")
        self.made_with = ["--method", "ncm", "--encoder", encoder, "--device", "cpu", "--accept"]
        self.steps = 0

    def run(self, *words, code=0):
        output = self.repcl(*words)
        assert output.code == code, output.err
        return output.out

    def ask(self, *words):
        return json.loads(self.run(*words, "--json"))

    def learn(self, texts, labels):
        data = table(self.folder / f"{self.steps}.csv", texts, labels)
        new = self.made_with if self.steps == 0 else ["--device", "cpu", "--accept"]
        told = self.ask("learn", self.model, data, *new)["update"]
        self.clf.partial_fit(texts, labels)
        self.compare()
        return told

    def change(self, *words, python):
        told = self.ask(*words)
        python(self.clf)
        self.compare()
        return told

    def compare(self):
        """One more revision, and the same answers to the bit."""
        self.steps += 1
        assert len(ModelFolder(self.model).numbers()) == self.steps
        loaded = ContinualClassifier.load(self.model, device="cpu")
        assert loaded.classes_.tolist() == self.clf.classes_.tolist()
        np.testing.assert_array_equal(loaded.predict_proba(ASKED[0]), self.clf.predict_proba(ASKED[0]))

    def accuracy(self, *topics):
        data = table(self.folder / "test.csv", *toy(*topics, texts=10, start=200))
        return self.ask("evaluate", self.model, data)["accuracy"]


@pytest.mark.filterwarnings("ignore::repcl.classifier.ForgettingWarning")
def test_a_month_of_daily_use(repcl, encoder_folder, tmp_path):
    month = Month(repcl, encoder_folder, tmp_path)
    month.learn(*toy("fruit", "vehicle", texts=30))
    assert month.accuracy("fruit", "vehicle") >= 0.75

    # a class is added under a wrong label, and corrected
    texts, _ = toy("weather", texts=30)
    month.learn(texts, ["vehicle"] * 30)
    assert "weather" not in month.clf.predict(texts)
    assert month.learn(texts, ["weather"] * 30)["corrected"] == 30
    assert month.accuracy("fruit", "vehicle", "weather") >= 0.7

    # single texts go
    gone = table(tmp_path / "gone.csv", texts[:5])
    told = month.change("forget", month.model, gone, python=lambda clf: clf.forget_texts(texts[:5]))
    assert told["update"]["forgotten"] == 5
    assert ContinualClassifier.load(month.model).fitted_state().texts_of_classes()["weather"] == 25

    # what comes in is not all known: which texts to label, and which groups they form
    new_texts = toy("place", "fruit", texts=20, start=100)[0]
    coming = table(tmp_path / "coming.csv", new_texts)
    assert month.ask("drift", month.model, coming)["verdict"] == month.clf.drift(new_texts).verdict
    suggested = month.ask("suggest", month.model, coming, "--most", 6)["suggested"]
    assert [one["text"] for one in suggested] == [one.text for one in month.clf.suggest(new_texts, most=6)]
    groups = tmp_path / "groups.csv"
    told = month.ask("discover", month.model, coming, "--output", groups, "--threshold", 0.99)
    assert told["written"] == len(groups.read_text().splitlines()) - 1
    assert told["unknown"] == discover(month.clf, new_texts, threshold=0.99).unknown
    month.learn(*toy("place", texts=30, start=100))
    assert month.accuracy("fruit", "vehicle", "weather", "place") > 0.6

    # the life of classes
    month.change(
        "classes",
        "rename",
        month.model,
        "fruit",
        "food",
        python=lambda clf: clf.rename_class("fruit", "food"),
    )
    month.change(
        *("classes", "merge", month.model, "weather", "place", "--into", "outside"),
        python=lambda clf: clf.merge_classes(["weather", "place"], "outside"),
    )
    month.change("classes", "remove", month.model, "vehicle", python=lambda clf: clf.remove_class("vehicle"))
    assert month.clf.classes_.tolist() == ["food", "outside"]

    # and back: the revision before the removal answers as it did
    month.run("rollback", month.model, month.steps - 1)
    before = ContinualClassifier.load(month.model, device="cpu")
    assert before.classes_.tolist() == ["food", "outside", "vehicle"]
    assert ModelFolder(month.model).current() == month.steps - 1
    for number in ModelFolder(month.model).numbers():
        ModelFolder(month.model).check(number)
