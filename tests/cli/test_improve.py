"""`repcl improve`: a duet becomes a revision, or the model stays as it was."""

import json
from pathlib import Path

import pytest

FAST = [
    *("--set", "trained=fea", "--set", "initial_epochs=1", "--set", "replay_epochs=1"),
    *("--set", "batch_size=16", "--set", "warmup_epochs=0.0"),
]


@pytest.fixture
def model(repcl, encoder_folder, data_file, tmp_path) -> Path:
    """A model of 32 texts in four classes."""
    path: Path = tmp_path / "desk"
    learned = repcl("learn", path, data_file, "--encoder", encoder_folder, "--method", "instant")
    assert learned.code == 0, learned.err
    return path


@pytest.fixture
def was_wrong(monkeypatch) -> None:
    """A tiny encoder gains nothing by training, so the model is said to have been wrong about every text."""
    monkeypatch.setattr(
        "repcl.classifier.improvement._answers_before", lambda state, method, held: ["" for _ in held]
    )


@pytest.fixture
def was_right(monkeypatch) -> None:
    monkeypatch.setattr(
        "repcl.classifier.improvement._answers_before",
        lambda state, method, held: [example.label for example in held],
    )


@pytest.mark.usefixtures("was_wrong")
def test_a_better_duet_becomes_a_revision(repcl, model, data_file) -> None:
    done = repcl("improve", model, "--data", data_file, *FAST)
    assert done.code == 0, done.err
    assert "is at revision 2, a duet trained on" in done.out.replace("\n", " ")
    assert repcl("predict", model, "a red apple").code == 0


@pytest.mark.usefixtures("was_wrong")
def test_labels_with_blanks_name_the_classes_that_learn_took_them_for(repcl, model, data_file) -> None:
    data_file.write_text(data_file.read_text().replace(",fruit", ",fruit "))
    done = repcl("improve", model, "--data", data_file, *FAST)
    assert done.code == 0, done.err


@pytest.mark.usefixtures("was_right")
def test_a_duet_that_is_no_better_leaves_the_model_with_code_3(repcl, model, data_file) -> None:
    done = repcl("improve", model, "--data", data_file, *FAST)
    assert done.code == 3
    assert "stays at revision 1" in done.out.replace("\n", " ")
    assert len(json.loads(repcl("history", model, "--json").out)["revisions"]) == 1


@pytest.mark.usefixtures("was_wrong")
def test_as_json_it_says_which_revision_is_in_use(repcl, model, data_file) -> None:
    found = json.loads(repcl("improve", model, "--data", data_file, "--json", *FAST).out)
    assert found["current"] == 2
    assert found["update"]["reasons"] == []


def test_a_setting_that_nobody_knows_is_named(repcl, model) -> None:
    done = repcl("improve", model, "--set", "traind=fea")
    assert done.code == 2
    assert "traind" in done.err


def test_a_model_that_is_not_there_is_one_sentence(repcl, tmp_path) -> None:
    done = repcl("improve", tmp_path / "nothing")
    assert done.code == 2
    assert "Traceback" not in done.err
