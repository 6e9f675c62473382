"""What can be computed again is kept for the revision in use only, and what did not change is kept once."""

import numpy as np
import pytest

from repcl.classifier import ContinualClassifier, ModelFolder
from repcl.classifier.store import snapshot
from tests.classifier.conftest import toy

ASKED = toy("fruit", "weather", start=80)[0]
frozen = pytest.mark.parametrize("name", ["instant", "ncm", "lda", "refit"])


def derived_files(folder: ModelFolder, number: int) -> list[bool]:
    return [
        (folder.path / "blobs" / blob.file).exists()
        for blob in folder.revision(number).contents.derived.values()
    ]


@pytest.fixture
def folder(make, tmp_path):
    def taught(name: str) -> ModelFolder:
        classifier = make(name).fit(*toy("fruit", "vehicle", texts=20))
        classifier.save(tmp_path / "model")
        classifier.partial_fit(*toy("weather", texts=20)).save(tmp_path / "model")
        return ModelFolder(tmp_path / "model")

    return taught


@frozen
def test_only_the_revision_in_use_keeps_what_is_derived(folder, name):
    model = folder(name)
    assert derived_files(model, 2)
    assert all(derived_files(model, 2))
    own = {blob.file for blob in model.revision(1).contents.derived.values()}
    own -= {blob.file for blob in model.revision(2).contents.derived.values()}
    assert not any((model.path / "blobs" / file).exists() for file in own)


@frozen
def test_an_older_revision_computes_it_again_to_the_bit(folder, make, name):
    model = folder(name)
    fresh = make(name).fit(*toy("fruit", "vehicle", texts=20))
    loaded = ContinualClassifier.load(model.path, revision=1, device="cpu")
    np.testing.assert_array_equal(loaded.predict_proba(ASKED), fresh.predict_proba(ASKED))
    lesson = toy("place", texts=20)
    np.testing.assert_array_equal(
        loaded.partial_fit(*lesson).predict_proba(ASKED), fresh.partial_fit(*lesson).predict_proba(ASKED)
    )


@frozen
def test_what_is_derived_is_computed_again_where_it_is_damaged(folder, name):
    model = folder(name)
    expected = ContinualClassifier.load(model.path, device="cpu").predict_proba(ASKED)
    for blob in model.revision(2).contents.derived.values():
        (model.path / "blobs" / blob.file).write_bytes(b"?" * blob.bytes)
    found = ContinualClassifier.load(model.path, device="cpu").predict_proba(ASKED)
    np.testing.assert_array_equal(found, expected)


def test_a_solution_that_was_saved_is_not_solved_again(folder, monkeypatch):
    model = folder("instant")
    loaded = ContinualClassifier.load(model.path, device="cpu")
    monkeypatch.setattr(type(loaded.method_), "solve", lambda _: pytest.fail("it was saved"))
    loaded.predict(ASKED)


def test_answers_to_texts_left_out_are_not_asked_again_after_loading(folder, monkeypatch):
    model = folder("ncm")
    before = ContinualClassifier.load(model.path, device="cpu")
    asked = before.fitted_state().method.left_out()
    monkeypatch.setattr(type(before.method_), "left_out", lambda *_: pytest.fail("they were saved"))
    checks = before.fitted_state().checks_before()
    names = before.method_.classes
    assert list(checks) == asked.keys.tolist()
    assert [names.index(check.answer) for check in checks.values()] == asked.scores.argmax(dim=1).tolist()


def test_rows_that_were_there_before_are_in_files_that_both_revisions_share(folder, monkeypatch):
    monkeypatch.setattr(snapshot, "ROWS_PER_PIECE", 16)
    model = folder("instant")
    first, second = (model.revision(number).contents.pieces["ledger.kept.rows"] for number in (1, 2))
    assert (len(first), len(second)) == (3, 4)  # 40 and 60 rows
    assert first[:2] == second[:2]
