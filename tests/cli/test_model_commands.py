"""The commands that make, ask and change a model folder, as typed."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from repcl import ContinualClassifier
from repcl.classifier import ModelFolder
from repcl.classifier.answering import Evidence, UnknownRule
from repcl.classifier.state import Checked, ClassifierState
from repcl.classifier.store.records import Familiarity
from tests.conftest import toy_example

CHEAP = ("--method", "fea", "--preset", "smoke", "--set", "learning_rate=0.001", "--device", "cpu")


def write(path: Path, *topics: str, texts: int = 10, start: int = 0) -> Path:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"])
        for topic in topics:
            for number in range(start, start + texts):
                rows.writerow([f"{toy_example('sentence', topic, number).text} {number}", topic])
    return path


@pytest.fixture(scope="module")
def taught(encoder_folder, tmp_path_factory) -> Path:
    """A model with one revision, made in Python."""
    path = tmp_path_factory.mktemp("taught") / "model"
    settings = {"initial_epochs": 1, "replay_epochs": 1, "learning_rate": 1e-3, "warmup_epochs": 0.0}
    examples = [toy_example("sentence", topic, n) for topic in ("fruit", "vehicle") for n in range(12)]
    texts = [f"{one.text} {number}" for number, one in enumerate(examples)]
    classifier = ContinualClassifier("fea", str(encoder_folder), settings=settings, device="cpu")
    classifier.fit(texts, [one.label for one in examples]).save(path)
    return path


@pytest.fixture
def model(taught, tmp_path) -> Path:
    return shutil.copytree(taught, tmp_path / "model")


def harmed(monkeypatch) -> None:
    """From now on every held-out text of an old class is taken for lost."""
    from repcl.classifier import updates

    real = updates.compare

    def pessimist(labels, before, after, **options):
        return real(labels, labels, ["weather"] * len(labels), **options)

    monkeypatch.setattr(updates, "compare", pessimist)


def soothed(monkeypatch) -> None:
    from repcl.classifier import updates

    real = updates.compare
    monkeypatch.setattr(
        updates, "compare", lambda labels, before, after, **options: real(labels, before, before, **options)
    )


# ---- learn --------------------------------------------------------------------------------------


def test_learn_makes_a_folder_and_says_what_was_learned(repcl, encoder_folder, tmp_path):
    data = write(tmp_path / "a.csv", "fruit", "vehicle")
    output = repcl("learn", tmp_path / "model", data, "--encoder", encoder_folder, *CHEAP)
    assert output.code == 0, output.err
    assert "Learned 2 new classes (fruit, vehicle) from 16 texts; 4 more held out." in output.out
    assert "is at revision 1, with 2 classes." in output.out
    assert ContinualClassifier.load(tmp_path / "model").classes_.tolist() == ["fruit", "vehicle"]


def test_learn_again_adds_classes_as_a_new_revision(repcl, model, tmp_path, monkeypatch):
    soothed(monkeypatch)
    output = repcl("learn", model, write(tmp_path / "b.csv", "weather", "fruit", start=40))
    assert output.code == 0, output.err
    assert "1 new class (weather) and 1 known class (fruit)" in output.out
    assert "right before" in output.out
    assert ModelFolder(model).current() == 2


def test_an_update_that_harms_old_classes_is_kept_but_not_used(repcl, model, tmp_path, monkeypatch):
    harmed(monkeypatch)
    output = repcl("learn", model, write(tmp_path / "b.csv", "weather"))
    assert output.code == 3
    assert "Not used: accuracy on texts of old classes fell by 100.0 points" in output.out
    assert "Regressed classes" in output.out
    assert f"To use it: repcl accept {model}" in output.out
    assert f"To delete it: repcl discard {model}" in output.out
    assert ModelFolder(model).current() == 1
    assert repcl("rollback", model, 2).code == 0
    assert ModelFolder(model).current() == 2


def test_the_tolerance_is_a_share_as_in_python(repcl, model, tmp_path, monkeypatch):
    from repcl.classifier import updates

    real, given = updates.compare, []

    def noted(labels, before, after, *, tolerance, **_):
        given.append(tolerance)
        return real(labels, before, before, tolerance=tolerance)

    monkeypatch.setattr(updates, "compare", noted)
    data = write(tmp_path / "b.csv", "weather")
    assert repcl("learn", model, data, "--tolerance", 2).code == 2
    assert repcl("learn", model, data, "--tolerance", 0.3).code == 0
    assert given == [0.3]


def test_a_harmful_update_can_be_accepted_at_once(repcl, model, tmp_path, monkeypatch):
    harmed(monkeypatch)
    output = repcl("learn", model, write(tmp_path / "b.csv", "weather"), "--accept")
    assert output.code == 0
    assert ModelFolder(model).current() == 2


def test_learn_speaks_json(repcl, model, tmp_path, monkeypatch):
    harmed(monkeypatch)
    output = repcl("learn", model, write(tmp_path / "b.csv", "weather"), "--json")
    told = json.loads(output.out)
    assert output.code == 3
    assert told["revision"] == 2
    assert not told["is_current"]
    assert told["update"]["new_classes"] == ["weather"]
    assert told["accept_with"] == f"repcl accept {model}"
    assert told["discard_with"] == f"repcl discard {model}"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--method", "repcl"), "was made with method = 'fea', found 'repcl': leave out --method"),
        (("--memory-per-class", 3), "was made with memory_per_class = 10, found 3"),
        (("--seed", 5), "leave out --seed"),
    ],
)
def test_learn_does_not_change_how_a_model_was_made(repcl, model, tmp_path, words, sentence):
    output = repcl("learn", model, write(tmp_path / "b.csv", "weather"), *words)
    assert output.code == 2
    assert sentence in output.err
    assert ModelFolder(model).numbers() == [1]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [("text,label\n", "no data rows"), ("text,label\n,x\n", "not empty"), ("a,b\n1,2\n", "no column 'text'")],
)
def test_a_bad_file_makes_no_folder(repcl, tmp_path, content, sentence):
    (tmp_path / "bad.csv").write_text(content)
    output = repcl("learn", tmp_path / "model", tmp_path / "bad.csv")
    assert output.code == 2
    assert sentence in output.err
    assert not (tmp_path / "model").exists()


def test_an_unknown_method_makes_no_folder(repcl, tmp_path):
    data = write(tmp_path / "a.csv", "fruit", "vehicle")
    output = repcl("learn", tmp_path / "model", data, "--method", "repcll")
    assert output.code == 2
    assert "Did you mean 'repcl'?" in output.err
    assert not (tmp_path / "model").exists()


def test_a_locked_model_says_who_holds_it(repcl, model, tmp_path):
    with ModelFolder(model).lock("learning other.csv"):
        output = repcl("learn", model, write(tmp_path / "b.csv", "weather"), "--wait", 0)
    assert output.code == 2
    assert f"process {os.getpid()}" in output.err
    assert "learning other.csv" in output.err


def test_a_setting_given_again_is_compared_with_that_of_the_folders_own_method(
    repcl, encoder_folder, tmp_path
):
    data, model = write(tmp_path / "a.csv", "fruit", "vehicle"), tmp_path / "model"
    chosen = ("--method", "instant", "--set", "features=40", "--set", "maps=2")
    assert repcl("learn", model, data, "--encoder", encoder_folder, *chosen).code == 0
    output = repcl("learn", model, data, "--set", "features=50")
    assert output.code == 2
    assert "was made with settings = {'features': 40, 'maps': 2}, found {'features': 50}" in output.err


def test_a_text_with_two_labels_is_noted(repcl, encoder_folder, tmp_path):
    data = tmp_path / "a.csv"
    data.write_text("text,label\napple,fruit\napple,vehicle\nboat,vehicle\nboat,vehicle\n")
    output = repcl("learn", tmp_path / "model", data, "--encoder", encoder_folder, "--method", "ncm")
    assert output.code == 0
    assert "Note: 1 text with more than one label, such as 'apple' (fruit, vehicle)" in output.err


def test_numbers_stay_numbers(repcl, encoder_folder, tmp_path, monkeypatch):
    soothed(monkeypatch)
    classifier = ContinualClassifier(
        "fea", str(encoder_folder), settings={"initial_epochs": 1, "replay_epochs": 1}, device="cpu"
    )
    classifier.fit(["apple", "pear", "car", "bike"], [1, 1, 2, 2]).save(tmp_path / "model")
    (tmp_path / "b.csv").write_text("text,label\nrain,3\nsnow,3\n")
    assert repcl("learn", tmp_path / "model", tmp_path / "b.csv").code == 0
    assert ContinualClassifier.load(tmp_path / "model").classes_.tolist() == [1, 2, 3]
    (tmp_path / "c.csv").write_text("text,label\nrain,three\n")
    output = repcl("learn", tmp_path / "model", tmp_path / "c.csv")
    assert output.code == 2
    assert "found 'three'" in output.err


# ---- predict and evaluate -----------------------------------------------------------------------


def test_predict_names_the_class_of_typed_texts(repcl, model):
    output = repcl("predict", model, "the apple is red", "a slow train", "--top", 2)
    assert output.code == 0, output.err
    lines = output.out.splitlines()
    assert len(lines) == 2
    assert "fruit" in lines[0]
    assert "vehicle" in lines[0]
    assert lines[0].endswith("\tthe apple is red")


def test_predict_reads_lines_from_a_pipe_and_speaks_json(repcl, model, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO('the apple\nthe car [/] is "fast"\n'))
    output = repcl("predict", model, "--json")
    told = [json.loads(line) for line in output.out.splitlines()]
    assert [one["text"] for one in told] == ["the apple", 'the car [/] is "fast"']
    assert all(one["label"] in ("fruit", "vehicle") for one in told)
    assert all(0 <= one["confidence"] <= 1 for one in told)


def test_predict_reads_files_with_and_without_labels(repcl, model, tmp_path):
    (tmp_path / "a.txt").write_text("the apple\nthe car\n")
    (tmp_path / "b.csv").write_text("text\nthe apple\n")
    (tmp_path / "c.jsonl").write_text('{"text": "the apple", "label": "x"}\n')
    for name, count in (("a.txt", 2), ("b.csv", 1), ("c.jsonl", 1)):
        assert len(repcl("predict", model, "--file", tmp_path / name).out.splitlines()) == count


def test_predict_says_unknown_when_asked_to(repcl, model):
    output = repcl("predict", model, "the war", "--unknown", "--threshold", 1, "--json")
    assert json.loads(output.out)["label"] == "unknown"
    assert json.loads(output.out)["is_unknown"]
    assert json.loads(repcl("predict", model, "the war", "--unknown", "--threshold", 0, "--json").out)[
        "label"
    ] in ("fruit", "vehicle")
    assert repcl("predict", model, "the war", "--unknown").code == 0


def test_a_class_called_unknown_is_refused_where_it_would_be_mistaken_for_the_answer(repcl, model):
    repcl("classes", "rename", model, "fruit", "unknown")
    output = repcl("predict", model, "the war", "--unknown")
    assert output.code == 2
    assert "'unknown' is one of the classes" in output.err
    assert repcl("predict", model, "the war").code == 0


def test_predict_can_ask_an_older_revision(repcl, model):
    repcl("classes", "rename", model, "fruit", "food")
    assert "food" in repcl("predict", model, "apple", "--top", 2).out
    assert "fruit" in repcl("predict", model, "apple", "--top", 2, "--revision", 1).out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("predict", "nowhere", "a"), "There is no model in nowhere"),
        (("predict", "MODEL", "a", "--file", "b.csv"), "found both"),
        (("predict", "MODEL", "a", "--unknown", "--threshold", "often"), "'often'"),
        (("predict", "MODEL", "a", "--threshold", "0.5"), "Expected --unknown beside --threshold 0.5"),
        (("predict", "MODEL", "--file", "nowhere.csv"), "no file nowhere.csv"),
        (("predict", "MODEL", "--file", "nowhere.txt"), "no file nowhere.txt"),
        (("evaluate", "MODEL", "nowhere.csv"), "no file nowhere.csv"),
        (("rollback", "MODEL", 9), "has no revision 9; there are: 1"),
        (("history", "nowhere"), "There is no model in nowhere"),
        (("classes", "nowhere"), "There is no model in nowhere"),
        (("classes", "rename", "nowhere", "a", "b"), "There is no model in nowhere"),
        (("classes", "rename", "MODEL", "fruits", "b"), "Did you mean 'fruit'?"),
        (("classes", "remove", "MODEL", "boat"), "No class 'boat'"),
        (("classes", "remove", "nowhere", "boat"), "There is no model in nowhere"),
        (("discover", "nowhere", "a.csv"), "There is no model in nowhere"),
        (("rollback", "nowhere", 1), "There is no model in nowhere"),
        (("suggest", "nowhere", "a.csv"), "There is no model in nowhere"),
        (("suggest", "MODEL", "nowhere.csv"), "no file nowhere.csv"),
        (("drift", "nowhere", "a.csv"), "There is no model in nowhere"),
        (("drift", "MODEL", "nowhere.csv"), "no file nowhere.csv"),
        (("classes", "rename", "MODEL", "fruit", ""), "Expected a label (str that is not empty"),
        (("classes", "merge", "MODEL", "fruit", "vehicle", "--into", " "), "Expected a label"),
        (("predict", "MODEL", "a", "--device", "tpu9"), "Expected a device that torch finds on this machine"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_2(repcl, model, words, sentence, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    output = repcl(*(model if word == "MODEL" else word for word in words))
    assert output.code == 2
    assert sentence in output.err
    assert "Traceback" not in output.err + output.out
    assert not (tmp_path / "nowhere").exists()


def test_evaluate_compares_with_the_labels(repcl, model, tmp_path):
    data = write(tmp_path / "test.csv", "fruit", "vehicle", "weather", start=50)
    told = json.loads(repcl("evaluate", model, data, "--json").out)
    assert told["texts"] == 20
    assert told["unknown_labels"] == {"weather": 10}
    assert {row["class"] for row in told["classes"]} == {"fruit", "vehicle"}
    mean = sum(row["recall"] * row["texts"] for row in told["classes"]) / 20
    assert told["accuracy"] == pytest.approx(mean)
    shown = repcl("evaluate", model, data)
    assert f"Accuracy {told['accuracy']:.1%} on 20 texts; macro recall" in shown.out
    assert "10 texts of classes the model does not know (weather)" in shown.out


def test_evaluate_counts_by_hand(repcl, model, tmp_path, monkeypatch):
    answered(monkeypatch, a=0.9, b=0.8, c=0.7, d=0.6)
    data = tmp_path / "test.csv"
    data.write_text("text,label\na,fruit\nb,fruit\nc,fruit\nd,vehicle\n")
    told = json.loads(repcl("evaluate", model, data, "--json").out)
    assert told["accuracy"] == 0.75
    assert told["macro_recall"] == 0.5
    assert told["classes"] == [
        {"class": "fruit", "texts": 3, "recall": 1.0, "precision": 0.75},
        {"class": "vehicle", "texts": 1, "recall": 0.0, "precision": None},
    ]


def answered(monkeypatch, **fruit: float) -> None:
    """From now on these texts are fruit with these probabilities, else vehicles."""

    def shares(_, asked):
        return np.array([[fruit[one.text], 1 - fruit[one.text]] for one in asked]).reshape(-1, 2)

    monkeypatch.setattr(ContinualClassifier, "predict_proba", shares)
    monkeypatch.setattr(ClassifierState, "probabilities", shares)


def test_evaluate_ends_with_the_worst_confusions_and_the_surest_texts(repcl, model, tmp_path, monkeypatch):
    answered(monkeypatch, a=0.1, b=0.2, c=0.3, d=0.9, e=0.8)
    data = tmp_path / "test.csv"
    data.write_text("text,label\na,fruit\nb,fruit\nc,fruit\nd,vehicle\ne,fruit\n")
    told = json.loads(repcl("evaluate", model, data, "--json").out)
    assert told["confusions"] == [
        {"label": "fruit", "predicted": "vehicle", "texts": 3, "examples": ["a", "b"]},
        {"label": "vehicle", "predicted": "fruit", "texts": 1, "examples": ["d"]},
    ]
    shown = repcl("evaluate", model, data).out
    assert "Accuracy 20.0% on 5 texts; macro recall 12.5% over 2 classes." in shown
    assert shown.index("macro recall") < shown.index("Taken for another class: 4 texts")


def test_evaluate_shows_ten_confusions_at_most(repcl, encoder_folder, tmp_path):
    classifier = ContinualClassifier("ncm", str(encoder_folder), device="cpu", holdout_per_class=0)
    names = [f"class {number:02}" for number in range(12)]
    words = [f"{one} {two}" for one in ("apple", "car", "rain") for two in ("red", "slow", "old", "new")]
    classifier.fit(words, names).save(tmp_path / "model")
    data = tmp_path / "test.csv"
    data.write_text("text,label\n" + "".join(f"{word},{names[n - 1]}\n" for n, word in enumerate(words)))
    told = json.loads(repcl("evaluate", tmp_path / "model", data, "--json").out)
    wrong = round((1 - told["accuracy"]) * 12)
    assert wrong > 10
    assert len(told["confusions"]) == 10


def test_evaluate_writes_all_wrong_rows_with_their_other_columns(repcl, model, tmp_path, monkeypatch):
    answered(monkeypatch, a=0.1, b=0.9, c=0.65432)
    data, out = tmp_path / "test.csv", tmp_path / "wrong.csv"
    data.write_text("id,text,label\n1,a,fruit\n2,b,fruit\n3,c,vehicle\n")
    output = repcl("evaluate", model, data, "--errors", out)
    assert f"Wrote 2 rows to {out}." in output.out
    assert out.read_bytes().decode() == (
        "id,text,label,predicted,confidence\r\n1,a,fruit,vehicle,0.9\r\n3,c,vehicle,fruit,0.6543\r\n"
    )
    assert "exists: give another --errors" in repcl("evaluate", model, data, "--errors", out).err
    data.write_text("id,text,label\n2,b,fruit\n")
    assert repcl("evaluate", model, data, "--errors", out, "--force").code == 0
    assert out.read_bytes() == b"id,text,label,predicted,confidence\r\n"


def test_evaluate_measures_the_rule_for_unknown_texts_by_hand(repcl, model, tmp_path, monkeypatch):
    answered(monkeypatch, a=0.95, b=0.05, c=0.7, d=0.55, e=0.8, f=0.45)
    data = tmp_path / "test.csv"
    data.write_text("text,label\na,fruit\nb,vehicle\nc,fruit\nd,boat\ne,oos\nf,boat\n")
    words = ("evaluate", model, data, "--unknown", "--threshold", 0.75)
    told = json.loads(repcl(*words, "--json").out)
    # known texts have confidence .95 .95 .7, the others .55 .8 .55: of 9 pairs only (.7, .8) is the wrong way
    assert told["unknown"] == {
        "threshold": 0.75,
        "known_texts": 3,
        "accepted": pytest.approx(2 / 3),
        "unknown_texts": 3,
        "caught": pytest.approx(2 / 3),
        "auroc": pytest.approx(8 / 9),
    }
    shown = repcl(*words).out
    assert "below a confidence of 0.750: 66.7% of 3 texts of known classes accepted" in shown
    assert "66.7% of 3 unknown texts caught; AUROC 0.889." in shown


def test_evaluate_names_no_confidence_where_nearness_decides_too(repcl, model, tmp_path, monkeypatch):
    rule = UnknownRule(0.4, familiarity=Familiarity(confidence=0.0, nearness=1.0, offset=0.0, threshold=0.6))
    near = {"a": 1.0, "b": 0.0}  # sigmoid(1) = 0.73 is accepted, sigmoid(0) = 0.5 is not

    def evidence(_, asked):
        return Evidence(
            ["fruit", "vehicle"], np.full((2, 2), 0.5), np.array([near[one.text] for one in asked])
        )

    monkeypatch.setattr(ClassifierState, "unknown_rule", lambda *_: rule)
    monkeypatch.setattr(ClassifierState, "evidence", evidence)
    data = tmp_path / "test.csv"
    data.write_text("text,label\na,fruit\nb,fruit\n")
    told = json.loads(repcl("evaluate", model, data, "--unknown", "--json").out)["unknown"]
    assert (told["threshold"], told["accepted"]) == (None, 0.5)
    shown = repcl("evaluate", model, data, "--unknown").out
    assert "Unknown texts, by confidence and nearness: 50.0% of 2 texts of known classes accepted" in shown


def test_evaluate_refuses_a_threshold_that_decides_nothing(repcl, model, tmp_path):
    data = write(tmp_path / "test.csv", "fruit", start=50)
    output = repcl("evaluate", model, data, "--threshold", 0.5)
    assert output.code == 2
    assert "Expected --unknown or --unknown-label beside --threshold 0.5" in " ".join(output.err.split())


def test_a_known_class_may_be_the_label_of_unknown_texts(repcl, model, tmp_path, monkeypatch):
    answered(monkeypatch, a=0.95, b=0.6)
    data = tmp_path / "test.csv"
    data.write_text("text,label\na,fruit\nb,vehicle\n")
    words = ("--unknown-label", "vehicle", "--threshold", 0.75, "--json")
    told = json.loads(repcl("evaluate", model, data, *words).out)
    assert (told["texts"], told["unknown"]["caught"], told["unknown"]["auroc"]) == (1, 1.0, 1.0)


def test_without_unknown_texts_only_what_is_accepted_is_measured(repcl, model, tmp_path):
    data = write(tmp_path / "test.csv", "fruit", start=50)
    told = json.loads(repcl("evaluate", model, data, "--unknown", "--json").out)["unknown"]
    assert (told["known_texts"], told["unknown_texts"], told["caught"], told["auroc"]) == (10, 0, None, None)
    assert "no texts of other classes to catch" in repcl("evaluate", model, data, "--unknown").out


# ---- classes, history, discover -----------------------------------------------------------------


def test_classes_lists_them_with_what_is_kept_of_each(repcl, model):
    assert "fruit" in repcl("classes", model).out
    told = json.loads(repcl("classes", "list", model, "--json").out)
    fruit = told["classes"][0]
    assert (fruit["class"], fruit["learned"], fruit["kept"], fruit["checked"]) == ("fruit", 10, 12, 2)


def test_classes_counts_held_out_texts_by_hand(repcl, model, monkeypatch):
    held = ContinualClassifier.load(model).fitted_state().held_out
    answers = {one: Checked(one.label, "vehicle") for one in held}
    answers[held[0]] = Checked("fruit", "fruit")
    monkeypatch.setattr(ClassifierState, "checks_before", lambda _: answers)
    told = json.loads(repcl("classes", model, "--json").out)["classes"]
    assert [(row["recall"], row["confused_with"], row["confusions"]) for row in told] == [
        (0.5, "vehicle", 1),
        (1.0, "fruit", 1),
    ]
    assert "vehicle (1)" in repcl("classes", model).out


def test_the_list_of_classes_bears_a_revision_that_goes_while_it_is_read(repcl, model, monkeypatch):
    real, calls = ModelFolder.current, []

    def overtaken(folder: ModelFolder) -> int:
        number = real(folder)
        calls.append(number)
        if len(calls) == 1:
            ContinualClassifier.load(model, device="cpu").rename_class("fruit", "food").save(model)
            with folder.lock("purging"):
                folder.keep_last(1)
        return number

    monkeypatch.setattr(ModelFolder, "current", overtaken)
    told = json.loads(repcl("classes", "list", model, "--json").out)
    assert (told["revision"], [row["class"] for row in told["classes"]]) == (2, ["food", "vehicle"])


def test_the_list_of_classes_fits_a_terminal_of_80_columns(repcl, model, monkeypatch):
    repcl("classes", "rename", model, "fruit", "a class with a name of quite some forty signs")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("repcl.cli.console.WIDE", 80)
    shown = repcl("classes", model).out
    assert max(map(len, shown.splitlines())) <= 80
    assert "forty" in shown
    assert "…" not in shown


def test_texts_learned_add_up_over_updates_and_follow_a_class(repcl, model, tmp_path, monkeypatch):
    soothed(monkeypatch)
    repcl("learn", model, write(tmp_path / "b.csv", "fruit", "weather", start=40), "--holdout-per-class", 0)
    repcl("classes", "merge", model, "fruit", "weather", "--into", "outside")
    told = json.loads(repcl("classes", model, "--json").out)["classes"]
    assert {row["class"]: row["learned"] for row in told} == {"outside": 30, "vehicle": 10}


def test_a_change_of_classes_is_confirmed_in_one_line(repcl, model):
    renamed = repcl("classes", "rename", model, "fruit", "food").out
    assert renamed == f"Renamed 'fruit' to 'food': {model} is at revision 2, with 2 classes.\n"
    assert "Removed 'food': " in repcl("classes", "remove", model, "food").out


def test_rename_and_merge_are_revisions(repcl, model):
    assert repcl("classes", "rename", model, "fruit", "food").code == 0
    merged = repcl("classes", "merge", model, "food", "vehicle", "--into", "things", "--json")
    assert json.loads(merged.out)["classes"] == ["things"]
    assert ModelFolder(model).numbers() == [1, 2, 3]
    shown = repcl("history", model).out
    assert "renamed to food" in shown
    assert "merged to things" in shown


def test_remove_names_the_revisions_that_still_hold_the_class_under_any_name(repcl, model):
    repcl("classes", "rename", model, "fruit", "food")
    output = repcl("classes", "remove", model, "food")
    assert output.code == 0, output.err
    assert "Older revisions still hold it: 1, 2; --purge deletes them." in output.out


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_remove_with_purge_leaves_no_trace_in_the_folder(repcl, model):
    texts = [e.text for e in ContinualClassifier.load(model).method_.memory if e.label == "fruit"]
    assert all(text.encode() in everything(model) for text in texts)
    output = repcl("classes", "remove", model, "fruit", "--purge", "--yes", "--json")
    told = json.loads(output.out)
    assert (told["purged"], told["classes"]) == ([1], ["vehicle"])
    left = everything(model)
    assert not any(text.encode() in left for text in [*texts, "fruit"])
    assert ModelFolder(model).numbers() == [2]


def test_a_class_removed_before_can_be_purged_later(repcl, model):
    repcl("classes", "remove", model, "fruit")
    output = repcl("classes", "remove", model, "fruit", "--purge", "--yes")
    assert output.code == 0, output.err
    assert ModelFolder(model).numbers() == [2]


@pytest.mark.parametrize("typed", [" fruit", "fruit\t"])
def test_purging_needs_a_yes_however_the_name_is_typed(repcl, model, typed):
    output = repcl("classes", "remove", model, typed, "--purge")
    assert output.code == 2
    assert f"--purge deletes 1 revision (1) of {model} for good: add --yes to go on." in output.err
    assert ModelFolder(model).numbers() == [1]


def test_purging_needs_a_yes_for_a_number_with_zeros_before_it(repcl, encoder_folder, tmp_path):
    model = tmp_path / "model"
    classifier = ContinualClassifier("ncm", str(encoder_folder), device="cpu")
    classifier.fit(["apple", "pear", "car", "bike"], [5, 5, 6, 6]).save(model)
    output = repcl("classes", "remove", model, "005", "--purge")
    assert output.code == 2
    assert "--purge deletes 1 revision (1)" in output.err
    assert ModelFolder(model).numbers() == [1]


def test_a_class_that_was_renamed_and_removed_is_purged_under_its_first_name_too(repcl, model):
    repcl("classes", "rename", model, "fruit", "food")
    repcl("classes", "remove", model, "food")
    output = repcl("classes", "remove", model, "food", "--purge", "--yes")
    assert output.code == 0, output.err
    assert output.out.splitlines() == [
        f"No class 'food' is left: {model} is at revision 3, with 1 class.",
        "Deleted 2 revisions that held it: 1, 2.",
    ]
    assert b"fruit" not in everything(model)


def test_the_update_of_an_earlier_change_is_not_reported_again(repcl, model):
    repcl("classes", "remove", model, "fruit")
    told = json.loads(repcl("classes", "remove", model, "fruit", "--purge", "--yes", "--json").out)
    assert (told["update"], told["purged"]) == (None, [1])


def test_a_class_is_purged_while_the_one_that_had_its_name_before_lives_on(repcl, model):
    repcl("classes", "rename", model, "fruit", "food")
    repcl("classes", "rename", model, "vehicle", "fruit")
    repcl("classes", "remove", model, "fruit")
    told = json.loads(repcl("classes", "remove", model, "fruit", "--purge", "--yes", "--json").out)
    assert told["purged"] == [1, 2, 3]  # in 1 and 2 it is called vehicle
    assert (told["revision"], told["classes"]) == (4, ["food"])


def test_purging_needs_a_yes_and_says_how_much_goes(repcl, model, monkeypatch):
    repcl("classes", "rename", model, "vehicle", "car")
    words = ("classes", "remove", model, "fruit", "--purge")
    output = repcl(*words)
    assert output.code == 2
    assert f"--purge deletes 2 revisions (1, 2) of {model} for good: add --yes to go on." in output.err
    asked = io.StringIO("n\n")
    asked.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", asked)
    output = repcl(*words)
    assert output.code == 1
    assert "deletes 2 revisions (1, 2)" in output.err
    assert ModelFolder(model).numbers() == [1, 2]
    asked.seek(0)
    asked.write("y\n")
    asked.seek(0)
    output = repcl(*words)
    assert output.code == 0, output.err
    assert "Deleted 2 revisions that held it: 1, 2." in output.out
    assert ModelFolder(model).numbers() == [3]


def test_purging_takes_damaged_revisions_along_for_no_one_knows_what_they_hold(repcl, model):
    repcl("classes", "rename", model, "vehicle", "car")
    (model / "revisions" / "000001.json").write_text("{}")
    told = json.loads(repcl("classes", "remove", model, "fruit", "--purge", "--yes", "--json").out)
    assert told["purged"] == [1, 2]
    assert b"fruit" not in everything(model)


def test_history_shows_every_revision_and_speaks_json(repcl, model):
    repcl("classes", "rename", model, "fruit", "food")
    told = json.loads(repcl("history", model, "--json").out)
    assert told["current"] == 2
    assert [one["number"] for one in told["revisions"]] == [1, 2]
    assert told["revisions"][0]["updates"][0]["examples"] == 20
    assert told["revisions"][1]["classes"] == ["food", "vehicle"]
    shown = repcl("history", model).out
    assert "learned fruit, vehicle" in shown
    assert "2*" in shown


def test_history_can_be_cut(repcl, model):
    for name in ("a", "b", "c"):
        repcl("classes", "rename", model, "fruit" if name == "a" else chr(ord(name) - 1), name)
    repcl("rollback", model, 1)
    assert "Deleted 1 revision: 2." in repcl("history", model, "--keep-last", 2).out
    assert ModelFolder(model).numbers() == [1, 3, 4]


def test_history_names_the_parent_of_a_revision_after_a_rollback(repcl, model):
    repcl("classes", "rename", model, "fruit", "food")
    repcl("rollback", model, 1)
    repcl("classes", "rename", model, "fruit", "crop")
    shown = repcl("history", model).out
    assert "3* from 1" in shown
    assert "2 from" not in shown


def test_revisions_are_short_in_python(model):
    (revision,) = ModelFolder(model).history()
    assert repr(ModelFolder(model).history()) == f"[Revision(1, {revision.when}, learn, classes=2)]"


def test_a_damaged_model_is_said_with_the_way_out(repcl, model):
    repcl("classes", "rename", model, "fruit", "food")
    (model / "revisions" / "000002.json").write_text("{}")
    output = repcl("predict", model, "a")
    assert output.code == 2
    assert f"repcl rollback {model} 1" in output.err
    assert repcl("rollback", model, 1).code == 0
    assert repcl("predict", model, "a").code == 0


def test_discover_groups_unknown_texts_and_writes_a_file_that_can_be_learned(
    repcl, model, tmp_path, monkeypatch
):
    data, out = write(tmp_path / "texts.csv", "weather", "place", start=30), tmp_path / "groups.csv"
    output = repcl("discover", model, data, "--threshold", 1, "--output", out)
    assert output.code == 0, output.err
    assert "20 of 20 texts are unknown" in output.out
    assert "group-1" in output.out
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    assert set(rows[0]) == {"text", "label"}
    soothed(monkeypatch)
    assert repcl("learn", model, out).code == 0


def test_discover_speaks_json_and_may_find_nothing(repcl, model, tmp_path):
    data, out = write(tmp_path / "texts.csv", "weather"), tmp_path / "groups.csv"
    told = json.loads(repcl("discover", model, data, "--threshold", 0, "--output", out, "--json").out)
    assert told == {
        "asked": 10,
        "unknown": 0,
        "repeated": 0,
        "written": 0,
        "separation": None,
        "groups": [],
        "output": None,
    }
    assert not out.exists()


def test_a_device_that_keeps_no_numbers_is_one_sentence(repcl, encoder_folder, tmp_path):
    data = write(tmp_path / "a.csv", "fruit", "vehicle")
    output = repcl("learn", tmp_path / "m", data, "--encoder", encoder_folder, *CHEAP, "--device", "meta")
    assert output.code == 2
    assert "found 'meta': leave it out" in output.err


def test_a_model_that_starts_over_learns_on_when_the_user_names_its_encoder(repcl, encoder_folder, tmp_path):
    chosen = ("--method", "joint", "--set", "initial_epochs=1", "--holdout-per-class", 0, "--device", "cpu")
    first = write(tmp_path / "a.csv", "fruit", "vehicle")
    more = write(tmp_path / "b.csv", "weather")
    assert repcl("learn", tmp_path / "m", first, "--encoder", encoder_folder, *chosen).code == 0
    output = repcl("learn", tmp_path / "m", more, "--device", "cpu")
    assert output.code == 2
    assert "name it yourself, with --encoder" in output.err
    assert repcl("learn", tmp_path / "m", more, "--device", "cpu", "--encoder", encoder_folder).code == 0


# ---- what must not happen -----------------------------------------------------------------------


def test_discover_keeps_a_groups_file_that_was_labeled_by_hand(repcl, model, tmp_path, monkeypatch):
    data, out = write(tmp_path / "texts.csv", "weather", "place", start=30), tmp_path / "groups.csv"
    out.write_text("labeled by hand")
    words = ("discover", model, data, "--threshold", 1, "--output", out)
    with monkeypatch.context() as patched:
        patched.setattr(ContinualClassifier, "load", lambda *_, **__: pytest.fail("worked before refusing"))
        output = repcl(*words)
    assert output.code == 2
    assert f"{out} exists: give another --output, or --force to replace it." in output.err
    assert out.read_text() == "labeled by hand"
    assert repcl(*words, "--force").code == 0
    assert out.read_text().startswith("text,label")


def test_discover_does_not_replace_the_file_it_reads(repcl, model, tmp_path):
    data = write(tmp_path / "texts.csv", "weather", "place", start=30)
    before = data.read_bytes()
    output = repcl("discover", model, data, "--threshold", 1, "--output", data, "--force")
    assert output.code == 2
    assert data.read_bytes() == before


STEERING = ["two\nlines", "\x1b[2Jred", "tab\there", "a\rb", "\x9b31m", "\u202eknil"]


@pytest.mark.parametrize("label", STEERING, ids=repr)
def test_a_label_that_steers_a_terminal_is_shown_escaped_and_kept_as_it_is(repcl, model, tmp_path, label):
    assert repcl("classes", "rename", model, "fruit", label).code == 0
    data = tmp_path / "t.csv"
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([["text", "label"], ["the apple", label], ["the car", "vehicle"]])
    shown = repr(label)[1:-1]
    for words in (
        ("classes", model),
        ("history", model),
        ("predict", model, "the apple", "--top", 2),
        ("evaluate", model, data),
    ):
        output = repcl(*words)
        assert shown in output.out
        assert label not in output.out
    told = json.loads(repcl("classes", model, "--json").out)
    assert label in [row["class"] for row in told["classes"]]
    assert len(repcl("predict", model, "the apple", "--top", 2).out.splitlines()) == 1


def test_a_message_about_a_label_that_steers_is_escaped(repcl, model):
    output = repcl("classes", "remove", model, "\x1b[2J\nboat")
    assert output.code == 2
    assert "No class '\\x1b[2J\\nboat'" in output.err
    assert "\x1b[2J" not in output.err


@pytest.mark.parametrize("typed", ["--5", "-", "5" * 5000, "-" * 100, "٣" * 30, "1_0", "5-"])
def test_a_typed_label_that_only_looks_like_a_number_is_refused(repcl, encoder_folder, tmp_path, typed):
    classifier = ContinualClassifier("ncm", str(encoder_folder), device="cpu")
    classifier.fit(["apple", "pear", "car", "bike"], [1, 1, 2, 2]).save(tmp_path / "model")
    output = repcl("classes", "rename", tmp_path / "model", "1", "--", typed)
    assert output.code == 2
    assert len(output.err) < 2100
    (tmp_path / "b.csv").write_text(f"text,label\nrain,{typed}\n")
    assert repcl("learn", tmp_path / "model", tmp_path / "b.csv").code == 2


def test_files_without_labels_may_have_texts_of_any_length(repcl, model, tmp_path):
    (tmp_path / "a.csv").write_text(f"text\n{'the apple ' * 500}\n")
    assert repcl("predict", model, "--file", tmp_path / "a.csv").code == 0


@pytest.mark.parametrize("content", [b"\xff\xfe\0", b"caf\x81\n", b"caf\xc3\xa9\ncaf\xe9\n"])
def test_a_text_file_that_is_in_no_encoding_is_refused(repcl, model, tmp_path, content):
    (tmp_path / "a.txt").write_bytes(content)
    output = repcl("predict", model, "--file", tmp_path / "a.txt")
    assert output.code == 2
    assert "save the file as UTF-8" in output.err


def test_a_folder_or_a_pipe_is_no_text_file(repcl, model, tmp_path):
    (tmp_path / "folder.txt").mkdir()
    os.mkfifo(tmp_path / "pipe.txt")
    for name in ("folder.txt", "pipe.txt"):
        assert repcl("predict", model, "--file", tmp_path / name).code == 2


def test_json_stays_json_where_the_output_has_no_such_letters(model):
    code = "from repcl.cli.main import app; from repcl.cli.guarded import run_guarded; run_guarded(app)"
    ended = subprocess.run(
        [sys.executable, "-c", code, "classes", "rename", model, "fruit", "größe 日本", "--json"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "LANG": "C"},
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["classes"] == ["größe 日本", "vehicle"]


def test_a_folder_keeps_as_many_revisions_as_it_was_told(repcl, model):
    shown = repcl("history", model, "--keep-last", 2).out
    assert "After every update the newest 2 revisions and the one in use are kept." in shown
    for old, new in zip(["fruit", "a", "b"], ["a", "b", "c"], strict=True):
        assert repcl("classes", "rename", model, old, new).code == 0
    assert ModelFolder(model).numbers() == [3, 4]
    assert "All revisions are kept from now on." in repcl("history", model, "--keep-last", 0).out
    repcl("classes", "rename", model, "c", "d")
    assert ModelFolder(model).numbers() == [3, 4, 5]


def test_learn_says_how_many_revisions_to_keep(repcl, model, tmp_path):
    data = tmp_path / "more.csv"
    data.write_text("text,label\nthe sun is warm,weather\n")
    assert repcl("learn", model, data, "--keep-last", 1, "--accept", "--device", "cpu").code == 0
    assert ModelFolder(model).numbers() == [2]


@pytest.mark.parametrize(("option", "is_offered"), [((), True), (("--memory-per-class", 0), False)])
def test_improving_is_offered_only_to_a_model_that_may_keep_texts(
    repcl, encoder_folder, tmp_path, monkeypatch, option, is_offered
):
    monkeypatch.setattr("repcl.classifier.improvement.offer", lambda *_: "An offer.")
    data = write(tmp_path / "texts.csv", "fruit", "vehicle")
    words = ("--method", "ncm", "--encoder", encoder_folder, "--device", "cpu", *option)
    output = repcl("learn", tmp_path / "model", data, *words)
    assert output.code == 0, output.err
    assert ("An offer." in output.out) == is_offered
