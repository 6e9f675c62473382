"""A duet is made from what a frozen learner keeps, and used only if held-out texts gain by it."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from repcl import ContinualClassifier
from repcl.classifier import improvement
from repcl.classifier.inputs import InvalidInput
from repcl.data import Example
from repcl.errors import InvalidSetting
from repcl.methods.duet import Duet
from tests.classifier.conftest import toy

Make = Callable[..., ContinualClassifier]
FAST = {"trained": "fea", "initial_epochs": 1, "replay_epochs": 1, "batch_size": 16, "warmup_epochs": 0.0}


@pytest.fixture
def taught(make: Make) -> ContinualClassifier:
    classifier = make("instant", holdout_per_class=5)
    return classifier.partial_fit(*toy("fruit", "vehicle", "weather", texts=10))


REALLY = improvement._answers_before


@pytest.fixture(autouse=True)
def _nothing_known_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny encoder gains nothing by training, so the model is said to have been wrong about every text."""
    monkeypatch.setattr("repcl.classifier.improvement._answers_before", all_wrong)


def all_wrong(state: object, method: object, held: list[Example]) -> list[str]:
    return ["" for _ in held]


def all_right(state: object, method: object, held: list[Example]) -> list[str]:
    return [example.label for example in held]


def improved(classifier: ContinualClassifier, *data: object) -> ContinualClassifier:
    return classifier.improve(*data, settings=FAST)


def test_the_frozen_half_knows_every_text_but_those_held_out(taught: ContinualClassifier) -> None:
    improved(taught)
    method = taught.method_
    assert isinstance(method, Duet)
    (frozen,) = method.frozen_parts.values()
    held = taught.fitted_state().held_out
    assert len(held) == 3  # one in five of the five kept of each class
    assert sum(frozen.class_sizes().values()) == 30 - len(held)


def test_the_trained_half_learns_no_text_that_is_held_out(taught: ContinualClassifier) -> None:
    improved(taught, *toy("fruit", "vehicle", "weather", texts=10))
    held = set(taught.fitted_state().held_out)
    assert len(held) == 6
    assert taught.last_update_.examples == 24
    assert held.isdisjoint(taught.method_.memory)


def learned_by_the_frozen_half(classifier: ContinualClassifier) -> dict[str, int]:
    sizes: dict[str, int] = classifier.method_.frozen_parts["vote"].class_sizes()
    return sizes


def test_a_held_out_text_that_is_forgotten_takes_no_other_with_it(taught: ContinualClassifier) -> None:
    improved(taught)
    held = next(one for one in taught.fitted_state().held_out if one.label == "fruit")
    assert learned_by_the_frozen_half(taught)["fruit"] == 9
    taught.forget_texts([held.text])
    assert learned_by_the_frozen_half(taught)["fruit"] == 9
    assert taught.last_update_.is_exact


def test_a_held_out_text_that_is_corrected_takes_no_other_with_it(taught: ContinualClassifier) -> None:
    improved(taught)
    held = next(one for one in taught.fitted_state().held_out if one.label == "fruit")
    taught.partial_fit([held.text], ["vehicle"])
    assert learned_by_the_frozen_half(taught) == {"fruit": 9, "vehicle": 10, "weather": 9}


def test_all_texts_of_a_class_can_be_forgotten(taught: ContinualClassifier) -> None:
    improved(taught).forget_texts(toy("fruit")[0])
    assert taught.classes_.tolist() == ["vehicle", "weather"]


def test_a_model_that_stays_as_it_is_still_knows_every_text(taught: ContinualClassifier, monkeypatch) -> None:
    monkeypatch.setattr("repcl.classifier.improvement._answers_before", all_right)
    with pytest.warns(UserWarning, match="The model stays as it is"):
        improved(taught)
    assert len(taught.fitted_state().known) == 30


def test_it_learns_on_after_saving_and_loading_as_if_it_never_was(
    taught: ContinualClassifier, tmp_path
) -> None:
    improved(taught).save(tmp_path / "model")
    loaded = ContinualClassifier.load(tmp_path / "model", device="cpu")
    for one in (taught, loaded):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one.partial_fit(*toy("place", texts=10))
    texts, _ = toy("fruit", "place", texts=4, start=50)
    np.testing.assert_array_equal(loaded.predict_proba(texts), taught.predict_proba(texts))


def test_a_duet_that_is_no_better_is_refused(taught: ContinualClassifier, monkeypatch) -> None:
    monkeypatch.setattr("repcl.classifier.improvement._answers_before", all_right)
    before = taught.method_
    with pytest.warns(UserWarning, match="The model stays as it is"):
        taught.improve(settings=FAST)
    assert taught.last_update_.is_refused
    assert taught.method_ is before
    assert taught.method == "instant"


def test_too_few_kept_texts_are_refused_with_what_to_do(make: Make) -> None:
    classifier = make("instant", holdout_per_class=1).partial_fit(*toy("fruit", "vehicle"))
    with pytest.raises(InvalidInput, match="give the texts that the model learned"):
        classifier.improve(settings=FAST)
    classifier.predict(["still in use"])


@pytest.mark.parametrize("method", ["refit", "instant@vote"])
def test_a_model_that_cannot_leave_texts_out_is_compared_by_those_it_holds_out(make: Make, method) -> None:
    lesson = toy("fruit", "vehicle", "weather", texts=10)
    settings = {"features": 40, "maps": 2} if method == "instant@vote" else {}
    encoder = make().encoder
    classifier = ContinualClassifier(method, encoder, settings=settings, device="cpu").fit(*lesson)
    held = set(classifier.fitted_state().held_out)
    improved(classifier, *lesson)
    assert len(held) == 6  # one in five
    assert (classifier.last_update_.examples, classifier.last_update_.compared) == (24, 6)
    assert set(classifier.fitted_state().held_out) == held
    assert learned_by_the_frozen_half(classifier) == {"fruit": 8, "vehicle": 8, "weather": 8}


def test_a_model_that_cannot_leave_texts_out_and_holds_none_out_is_refused(make: Make) -> None:
    lesson = toy("fruit", "vehicle", texts=10)
    classifier = make("refit").fit(*lesson).set_params(holdout_per_class=5)
    with pytest.raises(InvalidInput, match="held-out texts to compare by, found none"):
        improved(classifier, *lesson)


def test_no_more_exemplars_are_kept_than_the_model_may_keep(make: Make) -> None:
    classifier = make("instant", holdout_per_class=5, memory_total=4)
    lesson = toy("fruit", "vehicle", texts=10)
    improved(classifier.fit(*lesson), *lesson)
    assert len(classifier.method_.memory) == 4


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"memory_per_class": 0}, "Teach a new model"),
        ({"memory_total": 0}, "Teach a new model"),
        ({"holdout_per_class": 0}, "Set it higher"),
    ],
)
def test_a_model_that_may_keep_no_texts_is_refused(make: Make, limits, words) -> None:
    lesson = toy("fruit", "vehicle", texts=10)
    classifier = make("instant", **({"holdout_per_class": 5} | limits)).fit(*lesson)
    with pytest.raises(InvalidSetting, match=words):
        improved(classifier, *lesson)


def test_given_texts_that_were_never_learned_are_not_trained_on(taught: ContinualClassifier) -> None:
    improved(taught, *toy("fruit", "vehicle", "weather", texts=5, start=70))
    assert taught.last_update_.examples == 12


def test_the_model_is_asked_as_if_it_had_not_learned_the_text(make: Make) -> None:
    texts, labels = toy("fruit", "vehicle", texts=8)
    options = {"holdout_per_class": 5, "settings": {"ridge": 1.0, "balanced": False}}
    state = make("instant", **options).partial_fit([*texts, texts[3]], [*labels, labels[3]]).fitted_state()
    held = [example for example in state.held_out if example.text in texts[:5]]
    expected = []
    for example in held:
        rest = [at for at, text in enumerate(texts) if text != example.text]
        without = make("instant", **options).fit([texts[at] for at in rest], [labels[at] for at in rest])
        expected.append(without.predict([example.text])[0])
    assert held
    assert REALLY(state, state.method, held) == expected


def test_a_text_that_was_learned_twice_is_held_out_twice(make: Make) -> None:
    texts, labels = toy("fruit", "vehicle", texts=5)
    weights = np.full(len(texts), 2)
    classifier = make("instant", holdout_per_class=5).partial_fit(texts, labels, sample_weight=weights)
    improved(classifier)
    frozen = classifier.method_.frozen_parts["vote"]
    assert sum(frozen.class_sizes().values()) == 2 * (10 - 2)


def test_a_trained_model_is_refused(make: Make) -> None:
    classifier = make("fea").partial_fit(*toy("fruit", "vehicle"))
    with pytest.raises(InvalidSetting, match="teach a new model with method duet"):
        classifier.improve()
