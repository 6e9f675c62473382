"""What the guard says about changes that were asked for by name, and about a class that is described."""

import json
import shutil
from pathlib import Path

import pytest

from repcl import ContinualClassifier
from repcl.classifier import ModelFolder, updates
from repcl.classifier.store.records import Comparison
from tests.cli.test_corrections import lines, marks, teach, texts


@pytest.fixture(scope="module")
def taught(encoder_folder, tmp_path_factory) -> Path:
    path = teach(tmp_path_factory.mktemp("taught") / "model", encoder_folder, "ncm")
    ContinualClassifier.load(path, device="cpu").partial_fit(["a sun", "a snow"], ["weather"] * 2).save(path)
    return path


@pytest.fixture
def model(taught, tmp_path) -> Path:
    return shutil.copytree(taught, tmp_path / "model")


@pytest.fixture
def _is_doubted(monkeypatch) -> None:
    """From now on the guard has something against every update."""
    monkeypatch.setattr(updates, "compare", lambda *_, **__: Comparison(reasons=("it was made up",)))


@pytest.mark.usefixtures("_is_doubted")
def test_a_refused_description_is_kept_but_not_used(repcl, model):
    output = repcl("classes", "describe", model, "boat", "--description", "a ship")
    assert output.code == 3
    assert output.out.splitlines()[-4:] == [
        "Not used: it was made up.",
        "Revision 3 is kept; revision 2 stays in use.",
        f"To use it: repcl accept {model}",
        f"To delete it: repcl discard {model}",
    ]
    assert ModelFolder(model).current() == 2
    assert marks(repcl, model) == ["refused"]
    assert repcl("accept", model).code == 0
    assert "boat" in repcl("classes", model).out


@pytest.mark.usefixtures("_is_doubted")
def test_a_refused_description_is_told_in_json(repcl, model):
    output = repcl("classes", "describe", model, "boat", "--json")
    told = json.loads(output.out)
    assert output.code == 3
    assert (told["revision"], told["is_current"]) == (3, False)
    assert told["accept_with"] == f"repcl accept {model}"
    assert told["discard_with"] == f"repcl discard {model}"


def test_a_description_that_harms_nothing_is_used(repcl, model):
    output = repcl("classes", "describe", model, "boat", "--json")
    told = json.loads(output.out)
    assert (output.code, told["revision"], told["is_current"]) == (0, 3, True)
    assert "accept_with" not in told


@pytest.mark.usefixtures("_is_doubted")
@pytest.mark.parametrize("words", [("remove", "fruit"), ("merge", "fruit", "vehicle", "--into", "things")])
def test_a_change_that_was_asked_for_is_used_and_the_guards_reasons_are_noted(repcl, model, words):
    output = repcl("classes", words[0], model, *words[1:])
    assert output.code == 0
    assert output.err == "Note: The change is used, but the guard advises against it: it was made up.\n"
    assert ModelFolder(model).current() == 3


@pytest.mark.usefixtures("_is_doubted")
def test_forgotten_texts_are_gone_and_the_guards_reasons_are_noted(repcl, model, tmp_path):
    output = repcl("forget", model, lines(tmp_path / "a.txt", texts("fruit")[0]))
    assert output.code == 0
    assert output.err == "Note: The change is used, but the guard advises against it: it was made up.\n"


@pytest.mark.usefixtures("_is_doubted")
def test_the_history_does_not_call_such_a_change_refused_or_accepted(repcl, model):
    repcl("classes", "remove", model, "fruit")
    assert marks(repcl, model) == []
    assert "removed a class (against the guard's advice)" in " ".join(repcl("history", model).out.split())
    told = json.loads(repcl("history", model, "--json").out)["revisions"][-1]
    assert (told["is_refused"], told["is_accepted"]) == (False, False)


@pytest.mark.usefixtures("_is_doubted")
def test_such_a_change_does_not_wait_for_a_decision_after_a_rollback(repcl, model):
    repcl("classes", "remove", model, "fruit")
    repcl("rollback", model, 2)
    output = repcl("discard", model)
    assert output.code == 2
    assert "No refused update of revision 2 waits" in output.err
    assert ModelFolder(model).numbers() == [1, 2, 3]
