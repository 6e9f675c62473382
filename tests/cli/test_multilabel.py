"""Models that give a text several labels, on the command line."""

import csv
import json

import pytest

from tests.classifier.test_multilabel import LABELS, TEXTS

CELLS = ["|".join(labels) for labels in LABELS]


def table(path, texts, cells):
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"])
        rows.writerows(zip(texts, cells, strict=True))
    return path


@pytest.fixture
def model(repcl, encoder_folder, tmp_path):
    data = table(tmp_path / "first.csv", TEXTS, CELLS)
    made_with = ("--method", "ncm", "--encoder", encoder_folder, "--device", "cpu", "--accept")
    output = repcl("learn", tmp_path / "model", data, "--multilabel", *made_with)
    assert output.code == 0, output.err
    assert "Learned 3 new classes (fruit, vehicle, weather) from 32 texts." in output.out
    assert "more than one label" not in output.err
    return tmp_path / "model"


def test_cells_of_several_labels_are_learned_and_answered(repcl, model):
    found = json.loads(repcl("predict", model, TEXTS[-1], "--json").out)
    assert {one["label"] for one in found["labels"]} >= {"fruit", "vehicle"}
    assert found["label"].split("|") == [one["label"] for one in found["labels"]]
    line = repcl("predict", model, TEXTS[-1]).out.rstrip("\n").split("\t")
    assert line[0] == found["label"]


def test_an_output_file_holds_cells_of_labels(repcl, model, tmp_path):
    data = table(tmp_path / "ask.csv", TEXTS[-2:], CELLS[-2:])
    assert repcl("predict", model, "--file", data, "--output", tmp_path / "out.csv").code == 0
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [set(row["predicted"].split("|")) >= {"fruit", "vehicle"} for row in rows] == [True, True]


def test_a_threshold_leaves_a_text_without_labels(repcl, model):
    found = json.loads(repcl("predict", model, TEXTS[0], "--threshold", "1", "--json").out)
    assert (found["label"], found["labels"], found["is_unknown"]) == ("", [], False)
    found = json.loads(repcl("predict", model, TEXTS[0], "--threshold", "1", "--unknown", "--json").out)
    assert (found["label"], found["labels"], found["is_unknown"]) == ("unknown", [], True)


def test_evaluate_counts_labels(repcl, model, tmp_path):
    cells = [*CELLS[:-1], "fruit|planet"]
    data = table(tmp_path / "test.csv", TEXTS, cells)
    found = json.loads(repcl("evaluate", model, data, "--json").out)
    assert found["texts"] == 32
    assert {row["class"]: row["texts"] for row in found["classes"]} == {
        "fruit": 16,
        "vehicle": 15,
        "weather": 8,
    }
    assert 0.5 < found["f1"] <= 1
    shown = repcl("evaluate", model, data, "--errors", tmp_path / "wrong.csv").out
    assert "exactly the right labels for" in shown
    assert "Labels missed and added" in shown
    assert (tmp_path / "wrong.csv").read_text().startswith("text,label,predicted,confidence")


def test_a_text_is_forgotten_under_the_labels_of_its_cell(repcl, model, tmp_path):
    data = table(tmp_path / "gone.csv", TEXTS[-1:], ["fruit"])
    assert "Forgot 1 text, as if never learned." in repcl("forget", model, data).out
    rows = json.loads(repcl("classes", model, "--json").out)["classes"]
    assert {row["class"]: row["learned"] for row in rows} == {"fruit": 15, "vehicle": 16, "weather": 8}


def test_a_model_of_one_label_a_text_stays_one(repcl, encoder_folder, tmp_path):
    data = table(tmp_path / "first.csv", TEXTS, CELLS)
    made_with = ("--method", "ncm", "--encoder", encoder_folder, "--device", "cpu")
    output = repcl("learn", tmp_path / "model", data, *made_with)
    assert "'fruit|vehicle' is taken for one class" in " ".join(output.err.split())
    output = repcl("learn", tmp_path / "model", data, "--multilabel")
    assert output.code == 2
    assert "leave out --multilabel" in " ".join(output.err.split())


def test_a_method_that_gives_one_label_is_refused(repcl, encoder_folder, tmp_path):
    data = table(tmp_path / "first.csv", TEXTS, CELLS)
    output = repcl(
        "learn", tmp_path / "model", data, "--multilabel", "--method", "lda", "--encoder", encoder_folder
    )
    assert output.code == 2
    assert "use instant or ncm" in " ".join(output.err.split())
