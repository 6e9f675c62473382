"""`repcl export` at the command line: what it says, what it refuses, and that `predict` answers by it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from repcl import ContinualClassifier
from repcl.classifier import ModelFolder
from repcl.classifier.answerer import open_answerer
from repcl.classifier.exported import Exported
from repcl.data import Example, InputKind
from tests.classifier.conftest import cheap_settings, save_tiny_encoder
from tests.conftest import toy_task


@pytest.fixture
def model(tmp_path) -> Callable[..., Path]:
    """Teach a classifier of a method, and of an input kind, with a tiny encoder."""

    def build(method: str = "instant", kind: InputKind = "sentence", **settings: Any) -> Path:
        encoder = save_tiny_encoder(tmp_path / "encoder", kind)
        classifier = ContinualClassifier(method, str(encoder), settings=cheap_settings(method) | settings)
        examples = toy_task(kind, "fruit", "vehicle", train=8).train
        classifier.fit(examples, [example.label for example in examples])
        classifier.save(tmp_path / "model")
        return tmp_path / "model"

    return build


def test_export_says_what_it_made_and_predict_answers_by_it(repcl, model) -> None:
    folder = model()
    before = repcl("predict", folder, "a cold pear", "--json")
    made = repcl("export", folder)
    assert made.code == 0
    assert made.out.startswith("Exported revision 1 in fp32")
    assert "this export answers for later revisions too" in made.out
    after = repcl("predict", folder, "a cold pear", "--json")
    assert json.loads(after.out)["label"] == json.loads(before.out)["label"]
    assert after.err == ""


def test_after_a_rollback_export_solves_again_and_predict_answers_by_it(repcl, model) -> None:
    folder = model()
    assert repcl("export", folder).code == 0
    classifier = ContinualClassifier.load(folder)
    examples = toy_task("sentence", "weather", train=8).train
    classifier.partial_fit([one.text for one in examples], [one.label for one in examples]).save(folder)
    assert repcl("rollback", folder, 1).code == 0
    assert "`repcl export` makes it anew" in " ".join(repcl("predict", folder, "a cold pear").err.split())
    made = repcl("export", folder)
    assert (made.code, made.err) == (0, "")
    assert repcl("predict", folder, "a cold pear").err == ""


def test_export_answers_in_json(repcl, model) -> None:
    folder = model("fea")
    made = json.loads(repcl("export", folder, "--int8", "--json").out)
    assert made["precision"] == "int8"
    assert made["revision"] == 1
    assert made["is_shared"] is False
    export = ModelFolder(folder).export()
    assert export is not None
    assert export.second is not None
    assert made["bytes"] == export.graph.bytes + export.second.graph.bytes


@pytest.mark.filterwarnings("ignore:.* texts have over")  # the tiny tokenizer cuts words into many pieces
@pytest.mark.parametrize("kind", ["relation", "event"])
def test_relations_and_events_are_exported_too(repcl, model, kind) -> None:
    folder = model("fea", kind)
    asked = [Example(one.text, "", one.head, one.tail, one.trigger) for one in toy_task(kind, "fruit").test]
    expected = ContinualClassifier.load(folder).predict_proba(asked)
    made = repcl("export", folder)
    assert made.code == 0, made.err
    answerer = open_answerer(folder)
    assert isinstance(answerer, Exported)
    assert answerer.answer(asked).probabilities == pytest.approx(expected, abs=1e-3)


def test_a_model_with_several_labels_a_text_is_refused_in_a_sentence(repcl, model) -> None:
    ended = repcl("export", model(multilabel=True))
    assert ended.code == 2
    assert "several (multilabel), which cannot be exported yet" in " ".join(ended.err.split())


@pytest.mark.parametrize(("method", "settings"), [("duet", {}), ("instant", {"vote": True})])
def test_methods_made_of_others_are_exported_or_refused_in_a_sentence(repcl, model, method, settings) -> None:
    folder = model(method, **settings)
    ended = repcl("export", folder)
    assert "Traceback" not in ended.err
    if ended.code:
        assert ended.code == 2
        assert "it answers with torch only" in " ".join(ended.err.split())
        assert ModelFolder(folder).export() is None
    assert repcl("predict", folder, "a cold pear").code == 0


def test_no_model_is_said_at_once(repcl, tmp_path) -> None:
    ended = repcl("export", tmp_path / "nothing")
    assert ended.code == 2
    assert "Traceback" not in ended.err
