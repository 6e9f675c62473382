"""What a user gets who names no method, and methods with a variant."""

from pathlib import Path

import pytest

from repcl import ContinualClassifier
from repcl.errors import InvalidSetting, UnknownName
from repcl.methods.frozen.instant import Instant
from repcl.methods.frozen.vote import Vote
from tests.classifier.conftest import toy

SMALL = {"features": 32, "maps": 2}


def classifier(encoder_folder: Path, method: str = "auto", **options: object) -> ContinualClassifier:
    return ContinualClassifier(
        method, str(encoder_folder), settings=options.pop("settings", SMALL), device="cpu", **options
    )


def test_the_default_learns_within_seconds() -> None:
    assert ContinualClassifier().method == "auto"


def test_auto_is_the_instant_learner(encoder_folder: Path) -> None:
    taught = classifier(encoder_folder).partial_fit(*toy("fruit", "vehicle"))
    assert type(taught.method_) is Instant
    assert taught.get_params()["method"] == "auto"


def test_a_folder_keeps_the_method_that_auto_meant_when_it_was_made(
    encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier(encoder_folder).partial_fit(*toy("fruit", "vehicle")).save(tmp_path / "model")
    monkeypatch.setattr("repcl.classifier.state.BEST_WITHIN_SECONDS", "ncm")  # a later version
    loaded = ContinualClassifier.load(tmp_path / "model", device="cpu")
    assert loaded.method == "instant"
    assert type(loaded.partial_fit(*toy("place")).method_) is Instant


def test_a_method_may_be_named_with_its_variant(encoder_folder: Path, tmp_path: Path) -> None:
    taught = classifier(encoder_folder, "instant@vote").partial_fit(*toy("fruit", "vehicle"))
    assert isinstance(taught.method_, Vote)
    taught.save(tmp_path / "model")
    loaded = ContinualClassifier.load(tmp_path / "model", device="cpu")
    assert isinstance(loaded.method_, Vote)
    texts, _ = toy("fruit", "vehicle", start=40)
    assert loaded.predict(texts).tolist() == taught.predict(texts).tolist()


def test_an_unknown_variant_is_refused_with_the_known_ones(encoder_folder: Path) -> None:
    with pytest.raises(UnknownName, match="last-layer"):
        classifier(encoder_folder, "instant@vot").partial_fit(*toy("fruit"))


def test_a_vote_where_nothing_of_a_text_may_be_kept_is_refused(encoder_folder: Path) -> None:
    with pytest.raises(InvalidSetting, match="use instant"):
        classifier(encoder_folder, "instant@vote", memory_per_class=0, holdout_per_class=0).partial_fit(
            *toy("fruit")
        )


@pytest.mark.parametrize("method", ["duet", "duet@statistics"])
def test_a_duet_is_saved_loaded_and_learns_on_to_the_bit(
    method: str, encoder_folder: Path, tmp_path: Path
) -> None:
    fast = {"trained": "fea", "initial_epochs": 1, "replay_epochs": 1, "batch_size": 16, "warmup_epochs": 0}
    settings = fast | (SMALL if method == "duet@statistics" else {})
    taught = classifier(encoder_folder, method, settings=settings, tolerance=1.0)
    taught.partial_fit(*toy("fruit", "vehicle")).save(tmp_path / "model")
    loaded = ContinualClassifier.load(tmp_path / "model", device="cpu")
    for one in (taught, loaded):
        one.partial_fit(*toy("place", "weather"))
        one.remove_class("vehicle")
    texts, _ = toy("fruit", "place", start=40)
    assert (loaded.predict_proba(texts) == taught.predict_proba(texts)).all()
    assert "vehicle" not in loaded.classes_
    gone = {example.label for example in loaded.fitted_state().kept_texts()}
    assert "vehicle" not in gone
