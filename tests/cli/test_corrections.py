"""`repcl forget`, `accept` and `discard`, and what `learn` says about texts and labels it knows."""

import json
import re
import shutil
from pathlib import Path

import pytest

from repcl import ContinualClassifier
from repcl.classifier import ModelFolder
from repcl.cli import labels as cli_labels
from tests.cli.test_model_commands import soothed, write
from tests.conftest import toy_example

TOPICS = ("fruit", "vehicle")
NUMBER = 6


def lines(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n")
    return path


def texts(topic: str) -> list[str]:
    return [f"{toy_example('sentence', topic, number).text} {number}" for number in range(NUMBER)]


def teach(path: Path, encoder_folder: Path, method: str, **options) -> Path:
    settings = {"features": 20, "maps": 1} if method == "instant" else {}
    if method == "fea":
        settings = {"initial_epochs": 1, "replay_epochs": 1}
    classifier = ContinualClassifier(method, str(encoder_folder), settings=settings, device="cpu", **options)
    labels = [topic for topic in TOPICS for _ in range(NUMBER)]
    classifier.fit([text for topic in TOPICS for text in texts(topic)], labels).save(path)
    return path


@pytest.fixture(scope="module")
def taught(encoder_folder, tmp_path_factory) -> Path:
    return teach(tmp_path_factory.mktemp("taught") / "model", encoder_folder, "instant")


@pytest.fixture
def model(taught, tmp_path) -> Path:
    return shutil.copytree(taught, tmp_path / "model")


@pytest.fixture
def wrong(tmp_path) -> Path:
    return lines(tmp_path / "fix.csv", "text,label", *(f"{text},vehicle" for text in texts("fruit")[:2]))


# ---- learn ------------------------------------------------------------------------------------------


def test_learn_counts_corrections(repcl, model, wrong, monkeypatch):
    soothed(monkeypatch)
    output = repcl("learn", model, wrong)
    assert output.code == 0, output.err
    assert "Corrected 2 texts that had another label before, as if never learned under it." in output.out
    assert "recognized" not in output.out
    told = json.loads(repcl("learn", model, wrong, "--json").out)
    assert (told["update"]["corrected"], told["update"]["repeated"]) == (0, 2)


def test_learn_says_that_nothing_is_new(repcl, model, tmp_path):
    again = lines(tmp_path / "a.csv", "text,label", *(f"{text},fruit" for text in texts("fruit")))
    output = repcl("learn", model, again)
    assert output.code == 0, output.err
    assert "Nothing is new: all texts are known with these labels." in output.out
    assert "Already known with the same label, and not counted twice: 6 texts." in output.out
    assert "learned nothing new" in repcl("history", model).out


def test_learn_does_not_call_it_nothing_new_that_a_text_lost_a_label(repcl, model, tmp_path, monkeypatch):
    soothed(monkeypatch)
    both = lines(tmp_path / "a.csv", "text,label", "a plum,fruit", "a plum,vehicle")
    assert repcl("learn", model, both, "--accept").code == 0
    output = repcl("learn", model, lines(tmp_path / "b.csv", "text,label", "a plum,fruit"))
    assert "Corrected 1 text that had another label before" in output.out
    assert "Nothing is new" not in output.out


def test_learn_says_that_a_class_lost_its_last_text(repcl, model, tmp_path, monkeypatch):
    soothed(monkeypatch)
    fix = lines(tmp_path / "a.csv", "text,label", *(f"{text},vehicle" for text in texts("fruit")))
    output = repcl("learn", model, fix)
    assert "Corrected 6 texts" in output.out
    assert "Removed, because no text is left: 1 class." in output.out
    assert "with 1 class." in output.out


def test_learn_says_that_trained_weights_keep_traces(repcl, encoder_folder, tmp_path, wrong):
    model = teach(tmp_path / "model", encoder_folder, "fea", holdout_per_class=0)
    output = repcl("learn", model, wrong)
    assert "Corrected 2 texts that had another label before: they are dropped from what is kept" in output.out


def test_learn_says_where_corrections_cannot_be_recognized(repcl, encoder_folder, tmp_path, wrong):
    nothing = {"memory_per_class": 0, "holdout_per_class": 0}
    model = teach(tmp_path / "model", encoder_folder, "ncm", **nothing)
    output = repcl("learn", model, wrong)
    assert "Corrections cannot be recognized" in output.out
    assert "Corrected" not in output.out
    output = repcl("learn", model, wrong, "--holdout-per-class", 1)
    assert "Not every text can be recognized when it is corrected" in output.out


# ---- labels -----------------------------------------------------------------------------------------


def test_labels_with_blanks_are_noted_and_taken_as_one(repcl, model, tmp_path, monkeypatch):
    soothed(monkeypatch)
    data = lines(tmp_path / "a.csv", "text,label", "a plum,fruit ", "a sun,weather", "a snow,weather ")
    output = repcl("learn", model, data)
    assert output.code == 0, output.err
    assert "'weather ' as 'weather'" in output.err
    classes = json.loads(repcl("classes", model, "--json").out)["classes"]
    assert [row["class"] for row in classes] == ["fruit", "vehicle", "weather"]


def test_without_a_terminal_labels_that_differ_in_case_are_noted(repcl, model, tmp_path, monkeypatch):
    soothed(monkeypatch)
    output = repcl("learn", model, lines(tmp_path / "a.csv", "text,label", "a plum,Fruit"))
    assert "Note: Labels 'fruit', 'Fruit' differ in case only and are 2 classes" in output.err
    assert "1 new class (Fruit)" in output.out


@pytest.mark.parametrize(("answer", "classes"), [(True, 2), (False, 3)])
def test_in_a_terminal_it_is_asked_whether_they_are_one(repcl, model, tmp_path, monkeypatch, answer, classes):
    soothed(monkeypatch)
    asked = []
    monkeypatch.setattr(cli_labels, "someone_answers", lambda: True)
    monkeypatch.setattr(cli_labels.typer, "confirm", lambda question, **_: asked.append(question) or answer)
    output = repcl("learn", model, lines(tmp_path / "a.csv", "text,label", "a plum,Fruit"))
    assert asked == ["'Fruit' differs from 'fruit' in case only. Is it the same class?"]
    assert f"with {classes} classes." in output.out


def test_of_new_labels_that_are_one_the_one_with_most_texts_is_taken(monkeypatch):
    from repcl.data import Example

    monkeypatch.setattr(cli_labels, "someone_answers", lambda: True)
    monkeypatch.setattr(cli_labels.typer, "confirm", lambda *_, **__: True)
    examples = [Example("a", "EMI"), Example("b", "emi"), Example("c", "emi "), Example("d", "x")]
    found = cli_labels.one_label_where_case_differs(examples, ["x"])
    assert [example.label for example in found] == ["emi", "emi", "emi", "x"]


def test_evaluate_compares_labels_without_blanks(repcl, model, tmp_path):
    data = lines(tmp_path / "a.csv", "text,label", "a plum,fruit ", "a car, vehicle")
    told = json.loads(repcl("evaluate", model, data, "--json").out)
    assert (told["texts"], told["unknown_labels"]) == (2, {})


def test_a_class_is_removed_by_its_name_with_blanks(repcl, model):
    assert repcl("classes", "remove", model, " fruit").code == 0
    assert json.loads(repcl("classes", model, "--json").out)["classes"][0]["class"] == "vehicle"


# ---- forget -----------------------------------------------------------------------------------------


def test_forget_takes_back_texts_and_names_the_revisions_that_hold_them(repcl, model, tmp_path):
    output = repcl("forget", model, lines(tmp_path / "a.txt", *texts("fruit")[:2], "never seen"))
    assert output.code == 0, output.err
    assert "Forgot 2 texts, as if never learned. Not known, and left out: 1 text." in output.out
    assert "is at revision 2, with 2 classes." in output.out
    assert "Older revisions still hold them: 1; --purge deletes those." in output.out
    assert "forgot 2 texts" in repcl("history", model).out


def test_forget_with_purge_leaves_no_trace_in_the_folder(repcl, model, tmp_path):
    text = texts("fruit")[1]
    known = ContinualClassifier.load(model).fitted_state().known
    hashed = known._hash(known.keys[0], toy_example("sentence", "fruit", 1).__class__(text, ""))
    told = json.loads(repcl("forget", model, lines(tmp_path / "a.txt", text), "--purge", "--json").out)
    assert (told["purged"], told["still_held_by"], told["update"]["forgotten"]) == ([1], [], 1)
    data = b"".join(path.read_bytes() for path in model.rglob("*") if path.is_file())
    assert hashed not in data
    assert text.encode() not in data


def test_forget_leaves_revisions_that_never_held_the_text(repcl, model, tmp_path, monkeypatch):
    soothed(monkeypatch)
    more = lines(tmp_path / "b.csv", "text,label", "the rain is warm,weather")
    repcl("learn", model, more)
    told = json.loads(repcl("forget", model, lines(tmp_path / "a.txt", "the rain is warm"), "--json").out)
    assert told["still_held_by"] == [2]
    assert told["classes"] == ["fruit", "vehicle"]


def test_texts_forgotten_before_can_be_purged_later(repcl, model, tmp_path):
    data = lines(tmp_path / "a.txt", *texts("fruit")[:2])
    assert repcl("forget", model, data).code == 0
    output = repcl("forget", model, data, "--purge")
    assert output.code == 0, output.err
    assert output.out.splitlines() == [
        "The revision in use does not hold these texts.",
        f"{model} is at revision 2, with 2 classes.",
        "Deleted revisions that held them: 1.",
    ]
    assert ModelFolder(model).numbers() == [2]


def test_texts_of_a_class_that_went_with_them_can_be_purged_later(repcl, model, tmp_path):
    data = lines(tmp_path / "a.csv", "text,label", *(f"{text},fruit" for text in texts("fruit")))
    assert json.loads(repcl("forget", model, data, "--json").out)["classes"] == ["vehicle"]
    told = json.loads(repcl("forget", model, data, "--purge", "--json").out)
    assert (told["revision"], told["purged"], told["still_held_by"], told["update"]) == (2, [1], [], None)


def test_texts_of_which_no_revision_knows_purge_nothing(repcl, model, tmp_path):
    repcl("classes", "rename", model, "fruit", "food")
    output = repcl("forget", model, lines(tmp_path / "a.txt", "never seen"), "--purge")
    assert output.code == 2
    assert "None of the 1 texts to forget is known" in output.err
    assert ModelFolder(model).numbers() == [1, 2]


def test_a_text_that_the_model_knows_under_another_label_purges_nothing(repcl, model, tmp_path):
    repcl("classes", "rename", model, "fruit", "food")
    data = lines(tmp_path / "a.csv", "text,label", f"{texts('fruit')[0]},vehicle")
    assert repcl("forget", model, data, "--purge").code == 2
    assert ModelFolder(model).numbers() == [1, 2]


def test_a_purge_that_was_stopped_before_its_end_is_finished_by_the_next(repcl, model, tmp_path):
    text = texts("fruit")[1]
    data = lines(tmp_path / "a.txt", text)
    assert repcl("forget", model, data).code == 0
    (model / "revisions" / "000001.json").unlink()
    assert any(text.encode() in path.read_bytes() for path in (model / "blobs").iterdir())
    assert repcl("forget", model, data, "--purge").code == 2
    assert not any(text.encode() in path.read_bytes() for path in (model / "blobs").iterdir())


def test_forget_reads_lines_from_a_file_with_an_ending_in_capitals(repcl, model, tmp_path):
    output = repcl("forget", model, lines(tmp_path / "A.TXT", texts("fruit")[0]))
    assert output.code == 0, output.err


def test_forget_heeds_labels(repcl, model, tmp_path):
    text = texts("fruit")[0]
    output = repcl("forget", model, lines(tmp_path / "a.csv", "text,label", f"{text},vehicle"))
    assert output.code == 2
    assert "None of the 1 texts to forget is known" in output.err
    assert ModelFolder(model).current() == 1
    data = lines(tmp_path / "b.csv", "text,topic", f"{text},fruit ")
    assert repcl("forget", model, data, "--label-column", "topic").code == 0


def test_forget_says_that_trained_weights_keep_traces(repcl, encoder_folder, tmp_path):
    model = teach(tmp_path / "model", encoder_folder, "fea", holdout_per_class=0)
    output = repcl("forget", model, lines(tmp_path / "a.csv", "text", *texts("fruit")[:1]))
    assert "Forgot 1 text: they are dropped from what is kept, but the weights" in output.out


def test_forget_says_what_is_taken_on_the_users_word(repcl, encoder_folder, tmp_path):
    nothing = {"memory_per_class": 0, "holdout_per_class": 0}
    model = teach(tmp_path / "model", encoder_folder, "ncm", **nothing)
    output = repcl("forget", model, lines(tmp_path / "a.csv", "text,label", f"{texts('fruit')[0]},fruit"))
    assert "That 1 text had been learned is taken on your word" in output.out
    output = repcl("forget", model, lines(tmp_path / "b.txt", texts("fruit")[1]))
    assert (output.code, "find texts by their labels" in output.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("forget", "nowhere", "a.csv"), "There is no model in nowhere"),
        (("forget", "MODEL", "b.csv"), "There is no file b.csv"),
        (("forget", "MODEL", "empty.txt"), "empty.txt has no texts"),
        (("forget", "MODEL", "a.csv", "--label-column", "topic"), "has no column 'topic'"),
        (("accept", "MODEL"), "No refused update of revision 1 waits in"),
        (("discard", "MODEL"), "No refused update of revision 1 waits in"),
        (("accept", "nowhere"), "There is no model in nowhere"),
        (("discard", "nowhere"), "There is no model in nowhere"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(repcl, model, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "a.csv", "text", "a plum")
    (tmp_path / "empty.txt").write_text("\n")
    output = repcl(*(model if word == "MODEL" else word for word in words))
    assert output.code == 2
    assert sentence in output.err
    assert not (tmp_path / "nowhere").exists()


# ---- accept and discard -----------------------------------------------------------------------------


@pytest.fixture
def refused(repcl, model, tmp_path, monkeypatch) -> Path:
    """A model with an update that waits."""
    from repcl.classifier import updates
    from repcl.classifier.store.records import Comparison

    monkeypatch.setattr(updates, "compare", lambda *_, **__: Comparison(reasons=("it was made up",)))
    assert repcl("learn", model, write(tmp_path / "b.csv", "weather")).code == 3
    return model


def test_a_refused_update_is_accepted(repcl, refused):
    output = repcl("accept", refused)
    assert output.code == 0
    assert "is at revision 2, with 3 classes." in output.out
    assert ModelFolder(refused).current() == 2
    assert repcl("accept", refused).code == 2


def marks(repcl, model) -> list[str]:
    """What the history says behind each revision's deed."""
    shown = " ".join(repcl("history", model).out.split())
    return re.findall(r"\((refused[^)]*)\)", shown)


def test_the_history_says_that_a_refused_update_was_accepted(repcl, refused):
    assert marks(repcl, refused) == ["refused"]
    repcl("accept", refused)
    assert marks(repcl, refused) == ["refused, then accepted"]
    told = json.loads(repcl("history", refused, "--json").out)["revisions"][1]
    assert (told["is_refused"], told["is_accepted"]) == (True, True)


def test_an_accepted_update_from_which_more_was_learned_stays_accepted(repcl, refused, tmp_path):
    repcl("accept", refused)
    assert repcl("learn", refused, write(tmp_path / "c.csv", "place")).code == 3
    assert marks(repcl, refused) == ["refused, then accepted", "refused"]


def test_a_refused_update_is_discarded(repcl, refused):
    output = repcl("discard", refused)
    assert output.code == 0
    assert "Revision 2 is deleted" in output.out
    assert "stays at revision 1." in output.out
    assert ModelFolder(refused).numbers() == [1]
    assert repcl("discard", refused).code == 2


def test_the_newest_refused_update_comes_first(repcl, refused, tmp_path):
    assert repcl("learn", refused, write(tmp_path / "c.csv", "place")).code == 3
    assert json.loads(repcl("discard", refused, "--json").out)["discarded"] == 3
    assert json.loads(repcl("accept", refused, "--json").out)["current"] == 2


def test_an_update_of_another_revision_than_the_one_in_use_does_not_wait(repcl, refused, tmp_path):
    assert repcl("learn", refused, write(tmp_path / "c.csv", "place"), "--accept").code == 0
    output = repcl("accept", refused)
    assert (output.code, ModelFolder(refused).current()) == (2, 3)
    assert "No refused update of revision 3 waits" in output.err
