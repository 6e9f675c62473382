"""Rename, merge and remove classes, whatever the method."""

from collections import Counter

import numpy as np
import pytest

from repcl.classifier import InvalidInput, ModelFolder
from repcl.classifier.store.records import ClassChange, Update
from repcl.classifier.wording import described
from repcl.data import Example
from repcl.errors import InvalidSetting, UnknownName
from repcl.methods import METHODS
from repcl.methods.frozen.instant import Instant
from tests.classifier.conftest import toy

SENTENCE_METHODS = [name for name in METHODS if "sentence" in METHODS[name].kinds]
every_method = pytest.mark.parametrize("name", SENTENCE_METHODS)
ASKED = toy("fruit", "vehicle", "weather", start=70)[0]
TOPICS = ("fruit", "vehicle", "weather")


@every_method
def test_renaming_changes_the_name_and_nothing_else(make, name):
    classifier = make(name, holdout_per_class=2).fit(*toy(*TOPICS))
    before = classifier.predict_proba(ASKED)
    classifier.rename_class("vehicle", "a vehicle")
    assert classifier.classes_.tolist() == ["a vehicle", "fruit", "weather"]
    np.testing.assert_array_equal(classifier.predict_proba(ASKED), before[:, [1, 0, 2]])
    assert "vehicle" not in classifier.method_.memory.classes
    assert classifier.last_update_.action == "rename"


@every_method
def test_a_renamed_class_can_be_taught_more(make, name):
    classifier = make(name).fit(*toy(*TOPICS)).rename_class("fruit", "food")
    classifier.partial_fit(["plum and pear", "a cold city"], ["food", "place"])
    assert classifier.classes_.tolist() == ["food", "place", "vehicle", "weather"]
    assert classifier.predict(ASKED).shape == (30,)


@pytest.mark.filterwarnings("ignore::repcl.classifier.ForgettingWarning")
@every_method
def test_removing_leaves_nothing_of_the_class_in_memory_rows_or_statistics(make, name):
    classifier = make(name, holdout_per_class=2).fit(*toy(*TOPICS))
    classifier.remove_class("vehicle")
    assert classifier.classes_.tolist() == ["fruit", "weather"]
    assert classifier.predict_proba(ASKED).shape == (30, 2)
    assert set(classifier.predict(ASKED)) <= {"fruit", "weather"}
    held = [*classifier.method_.memory, *classifier.fitted_state().held_out]
    assert "vehicle" not in {example.label for example in held}
    for key, tensor in classifier.method_.state_dict().items():
        if key.endswith(("head.output.weight", "prototypes", "sums", "counts", "weights", "offsets")):
            assert len(tensor) == 2, key


@pytest.mark.filterwarnings("ignore::repcl.classifier.ForgettingWarning")
@every_method
def test_merging_makes_one_class_within_the_budget(make, name):
    classifier = make(name, memory_per_class=4, holdout_per_class=2).fit(*toy(*TOPICS))
    classifier.merge_classes(["weather", "vehicle"], "outside")
    assert classifier.classes_.tolist() == ["fruit", "outside"]
    np.testing.assert_allclose(classifier.predict_proba(ASKED).sum(axis=1), 1.0)
    if not METHODS[name].keeps_everything:
        assert classifier.method_.memory.counts().get("outside", 0) <= 4
    assert sum(example.label == "outside" for example in classifier.fitted_state().held_out) <= 2
    classifier.partial_fit(*toy("place"))
    assert classifier.classes_.tolist() == ["fruit", "outside", "place"]


def test_a_merged_memory_takes_from_its_parts_in_turn(make):
    classifier = make(memory_per_class=4).fit(*toy(*TOPICS))
    parts = [classifier.method_.memory.of(name)[:2] for name in ("vehicle", "weather")]
    classifier.merge_classes(["weather", "vehicle"], "weather")
    merged = [example.text for example in classifier.method_.memory.of("weather")]
    assert merged == [text.text for pair in zip(*parts, strict=True) for text in pair]


def test_merging_into_an_existing_class_takes_that_class_in(make):
    classifier = make().fit(*toy(*TOPICS)).merge_classes(["weather"], "fruit")
    assert classifier.classes_.tolist() == ["fruit", "vehicle"]


def test_a_merged_row_is_the_mean_of_its_parts(make):
    classifier = make().fit(*toy(*TOPICS))
    rows = classifier.method_.head.output.weight.detach().clone()
    classifier.merge_classes(["fruit", "weather"], "both")
    assert classifier.method_.classes == ["both", "vehicle"]
    np.testing.assert_allclose(
        classifier.method_.head.output.weight.detach(), np.stack([(rows[0] + rows[2]) / 2, rows[1]])
    )


def test_the_instant_learner_merges_as_if_it_had_never_told_the_classes_apart(make):
    if "instant" not in METHODS:
        pytest.skip("instant is not there")
    texts, labels = toy(*TOPICS)
    merged = make("instant").fit(texts, labels).merge_classes(["fruit", "weather"], "both")
    direct = make("instant").fit(texts, ["vehicle" if label == "vehicle" else "both" for label in labels])
    np.testing.assert_allclose(
        merged.fitted_state().scores(_examples(ASKED))[
            :, [merged.method_.classes.index(name) for name in ("both", "vehicle")]
        ],
        direct.fitted_state().scores(_examples(ASKED))[
            :, [direct.method_.classes.index(name) for name in ("both", "vehicle")]
        ],
        atol=1e-5,
    )


def _examples(texts):
    from repcl.classifier.inputs import as_examples

    return as_examples(texts)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda one: one.rename_class("fruits", "x"), "No class 'fruits'. Did you mean 'fruit'?"),
        (lambda one: one.rename_class("fruit", "vehicle"), "There is a class 'vehicle' already"),
        (lambda one: one.remove_class("boats"), "No class 'boats'"),
        (lambda one: one.merge_classes(["fruit"], "x"), "two or more classes to merge"),
        (lambda one: one.merge_classes(["fruit", "no"], "x"), "No class 'no'"),
        (lambda one: one.rename_class("fruit", 3), "Expected every label to be text"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(make, change, sentence):
    classifier = make().fit(*toy("fruit", "vehicle"))
    before = classifier.predict_proba(ASKED)
    with pytest.raises((UnknownName, InvalidInput), match=sentence.replace("?", r"\?")):
        change(classifier)
    assert classifier.classes_.tolist() == ["fruit", "vehicle"]
    np.testing.assert_array_equal(classifier.predict_proba(ASKED), before)


def test_the_only_class_cannot_be_removed(make):
    with pytest.raises(InvalidInput, match="is the only class"):
        make().fit(*toy("fruit")).remove_class("fruit")


@pytest.fixture
def announced(make):
    """Two classes with texts and two that are announced."""
    texts, labels = toy("fruit", "vehicle", texts=3)
    return make("ncm").partial_fit(texts, labels, classes=["fruit", "vehicle", "boat", "ship"])


def test_a_class_can_be_given_the_name_of_one_that_was_announced(announced):
    announced.rename_class("vehicle", "boat")
    assert announced.classes_.tolist() == ["boat", "fruit", "ship"]
    assert announced.method_.classes == ["fruit", "boat"]
    assert announced.fitted_state().declared == ("fruit", "boat", "ship")


def test_an_announced_class_can_be_renamed(announced, tmp_path):
    announced.rename_class("boat", "canoe")
    assert announced.classes_.tolist() == ["canoe", "fruit", "ship", "vehicle"]
    announced.save(tmp_path / "model")
    assert announced.load(tmp_path / "model").classes_.tolist() == ["canoe", "fruit", "ship", "vehicle"]


@pytest.mark.parametrize("name", ["fruit", "ship"])
def test_an_announced_class_gets_no_name_that_is_taken(announced, name):
    with pytest.raises(InvalidInput, match=f"There is a class '{name}' already: choose another name"):
        announced.rename_class("boat", name)


def test_an_announced_class_can_be_removed(announced):
    before = announced.predict_proba(ASKED)
    announced.remove_class("boat")
    assert announced.classes_.tolist() == ["fruit", "ship", "vehicle"]
    np.testing.assert_array_equal(announced.predict_proba(ASKED), before[:, 1:])


@pytest.mark.filterwarnings("ignore::repcl.classifier.ForgettingWarning")
def test_a_class_that_is_removed_before_it_is_saved_leaves_no_name_in_the_folder(make, tmp_path):
    classifier = make("ncm").fit(*toy("fruit", "vehicle")).partial_fit(["a plan", "a code"], ["secret"] * 2)
    classifier.rename_class("secret", "covert").rename_class("covert", "veiled").rename_class("fruit", "food")
    classifier.remove_class("veiled").save(tmp_path / "model")
    saved = b"".join(path.read_bytes() for path in (tmp_path / "model").rglob("*") if path.is_file())
    assert [name for name in (b"secret", b"covert", b"veiled") if name in saved] == []
    (revision,) = ModelFolder(tmp_path / "model").history()
    assert [described(update) for update in revision.updates] == [
        "learned fruit, vehicle",
        "learned a class that was removed",
        "renamed to a class that was removed",
        "renamed to a class that was removed",
        "renamed to food",
        "removed a class",
    ]


@pytest.mark.filterwarnings("ignore::repcl.classifier.ForgettingWarning")
def test_what_the_guard_said_about_a_removed_class_does_not_name_it_either(make):
    classifier = make("ncm").fit(*toy("fruit", "vehicle"))
    change = ClassChange(name="fruit", texts=3, correct_before=3, correct_after=1, lost=2, taken_by="secret")
    reason = "class 'fruit' lost 2 of its 3 texts, 2 of them to 'secret'"
    doubted = Update(
        action="learn", when="", new_classes=("secret",), regressed=(change,), reasons=(reason,), examples=2
    )
    classifier.partial_fit(["a plan", "a code"], ["secret"] * 2).fitted_state().updates[-1] = doubted
    classifier.remove_class("secret")
    kept = classifier.fitted_state().updates[-2]
    assert (kept.new_classes, kept.regressed[0].name, kept.regressed[0].taken_by) == ((), "fruit", None)
    assert kept.reasons == ("class 'fruit' lost 2 of its 3 texts, 2 of them to a class that was removed",)


def test_numbers_are_renamed_to_numbers(make):
    texts, _ = toy("fruit", "vehicle", texts=2)
    classifier = make().fit(texts, [1, 1, 2, 2]).rename_class(1, 7)
    assert classifier.classes_.tolist() == [2, 7]


def test_a_method_that_keeps_what_belongs_to_no_class_refuses_rather_than_keep_it_silently(make):
    import torch

    classifier = make().fit(*toy("fruit", "vehicle"))
    classifier.method_.register_buffer("diary", torch.zeros(3))
    with pytest.raises(InvalidSetting, match="keeps 'diary'"):
        classifier.remove_class("fruit")
    assert classifier.classes_.tolist() == ["fruit", "vehicle"]


EXACT = ["instant", "ncm", "lda", "refit"]


def test_frozen_learners_taught_apart_can_be_united(make):
    first = make("instant", holdout_per_class=2).fit(*toy("fruit", "vehicle"))
    second = make("instant", holdout_per_class=2).fit(*toy("weather", "fruit", start=30))
    first.absorb(second)
    assert first.classes_.tolist() == ["fruit", "vehicle", "weather"]
    assert first.last_update_.new_classes == ("weather",)
    assert first.predict(ASKED).shape == (30,)


@pytest.mark.parametrize("name", EXACT)
def test_two_classifiers_united_answer_as_one_that_learned_everything(make, name):
    first = make(name).partial_fit(*toy("fruit", "vehicle"))
    second = make(name).partial_fit(*toy("weather", "fruit", start=30))
    whole = make(name).partial_fit(*toy("fruit", "vehicle")).partial_fit(*toy("weather", "fruit", start=30))
    united = first.absorb(second)
    np.testing.assert_allclose(united.predict_proba(ASKED), whole.predict_proba(ASKED), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", EXACT)
def test_after_a_class_was_removed_answers_are_those_of_a_classifier_that_never_saw_it(make, name):
    classifier = make(name).partial_fit(*toy("fruit", "vehicle")).partial_fit(*toy("weather"))
    never = make(name).partial_fit(*toy("fruit")).partial_fit(*toy("weather"))
    removed = classifier.remove_class("vehicle")
    np.testing.assert_allclose(removed.predict_proba(ASKED), never.predict_proba(ASKED), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["instant", "ncm", "lda"])
def test_probabilities_do_not_depend_on_the_order_or_size_of_lessons(make, name):
    lessons = [toy(topic) for topic in TOPICS]
    at_once, one_by_one = make(name, tolerance=1), make(name, tolerance=1)
    at_once.partial_fit(
        *zip(*[pair for lesson in lessons for pair in zip(*lesson, strict=True)], strict=True)
    )
    for texts, labels in reversed(lessons):
        one_by_one.partial_fit(texts[3:], labels[3:])
    for texts, labels in lessons:
        one_by_one.partial_fit(texts[:3], labels[:3])
    np.testing.assert_allclose(
        at_once.predict_proba(ASKED), one_by_one.predict_proba(ASKED), rtol=0, atol=1e-6
    )


FIRST, SECOND = toy("fruit", "vehicle"), toy("fruit", "vehicle", start=30)
holding_out = pytest.mark.parametrize(
    ("name", "settings"), [("refit", {}), ("instant", {"keep_embeddings": False})]
)


def learned_and_held_out(classifier) -> dict[str, tuple[int, int]]:
    """Of each class how many texts were learned, and how many are held out."""
    state = classifier.fitted_state()
    held = Counter(example.label for example in state.held_out)
    return {name: (count, held[name]) for name, count in state.texts_of_classes().items()}


@holding_out
def test_no_text_is_lost_when_classes_are_merged(make, name, settings):
    classifier = make(name, holdout_per_class=2, settings=settings).fit(*FIRST)
    assert learned_and_held_out(classifier) == {"fruit": (8, 2), "vehicle": (8, 2)}
    classifier.merge_classes(["fruit", "vehicle"], "thing")
    assert learned_and_held_out(classifier) == {"thing": (18, 2)}
    assert len(classifier.fitted_state().known) == 18


@holding_out
def test_no_text_is_lost_when_classifiers_are_united(make, name, settings):
    first, second = (
        make(name, holdout_per_class=2, settings=settings).fit(*part) for part in (FIRST, SECOND)
    )
    assert learned_and_held_out(first.absorb(second)) == {"fruit": (18, 2), "vehicle": (18, 2)}
    assert len(first.fitted_state().known) == 36


@holding_out
def test_a_text_that_either_of_two_united_classifiers_learned_is_not_held_out(make, name, settings):
    every = make(name, settings=settings).fit(*FIRST)
    some = make(name, holdout_per_class=2, settings=settings).fit(*FIRST)
    assert learned_and_held_out(some.absorb(every)) == {"fruit": (18, 0), "vehicle": (18, 0)}
    every.set_params(holdout_per_class=2)
    some = make(name, holdout_per_class=2, settings=settings).fit(*FIRST)
    assert learned_and_held_out(every.absorb(some)) == {"fruit": (18, 0), "vehicle": (18, 0)}


def test_a_text_that_one_of_two_merged_classes_learned_is_not_held_out(make):
    state = make("refit", holdout_per_class=2).fit(*FIRST).fitted_state()
    held = next(one for one in state.held_out if one.label == "vehicle")
    lesson = [*FIRST[0], held.text], [*FIRST[1], "fruit"]
    classifier = make("refit", holdout_per_class=2).fit(*lesson)
    assert held in classifier.fitted_state().held_out
    assert learned_and_held_out(classifier) == {"fruit": (9, 2), "vehicle": (8, 2)}
    classifier.merge_classes(["fruit", "vehicle"], "thing")
    assert learned_and_held_out(classifier) == {"thing": (18, 2)}  # of three that are left one is learned
    assert Example(held.text, "thing") not in classifier.fitted_state().held_out


def test_trained_methods_cannot_be_united(make):
    first, second = make().fit(*toy("fruit", "vehicle")), make().fit(*toy("weather", "place"))
    with pytest.raises(InvalidSetting, match="cannot take over what another classifier learned"):
        first.absorb(second)


def test_an_update_says_that_classes_are_balanced(make, monkeypatch):
    monkeypatch.setattr(Instant, "_choose_balance", lambda _: True)
    assert make("instant").fit(*toy("fruit", "vehicle")).last_update_.is_balanced
    assert not make("ncm").fit(*toy("fruit", "vehicle")).last_update_.is_balanced
