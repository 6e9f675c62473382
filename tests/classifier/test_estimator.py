"""What a user holds: scikit-learn's contract, new classes in any call, labels as given."""

import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from repcl import ContinualClassifier
from repcl.classifier import InvalidInput
from repcl.classifier.state import ClassifierState
from repcl.classifier.vectors import embed
from repcl.data import Example, Span
from repcl.errors import InvalidData, InvalidSetting, RepclError, UnknownName
from repcl.methods import METHODS
from tests.classifier.conftest import toy
from tests.conftest import toy_task


def test_a_new_label_in_a_later_call_is_a_new_class(make):
    classifier = make().partial_fit(*toy("vehicle", "fruit"))
    assert classifier.classes_.tolist() == ["fruit", "vehicle"]
    classifier.partial_fit(*toy("weather"))
    assert classifier.classes_.tolist() == ["fruit", "vehicle", "weather"]


def test_new_examples_of_an_old_class_join_its_memory_selection(make):
    classifier = make(memory_per_class=3).partial_fit(*toy("fruit", "vehicle", texts=1))
    assert classifier.method_.memory.counts() == {"fruit": 1, "vehicle": 1}
    classifier.partial_fit(*toy("fruit", "weather", texts=6, start=30))
    assert classifier.method_.memory.counts() == {"fruit": 3, "vehicle": 1, "weather": 3}


def test_fit_starts_over(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    once = classifier.predict_proba(toy("fruit")[0])
    classifier.partial_fit(*toy("weather"))
    again = classifier.fit(*toy("fruit", "vehicle"))
    assert again is classifier
    assert classifier.classes_.tolist() == ["fruit", "vehicle"]
    np.testing.assert_array_equal(classifier.predict_proba(toy("fruit")[0]), once)


def test_the_order_in_which_texts_are_given_does_not_matter(make):
    texts, labels = toy("fruit", "vehicle", "weather")
    forwards = make().fit(texts, labels)
    backwards = make().fit(texts[::-1], labels[::-1])
    np.testing.assert_array_equal(forwards.predict_proba(texts), backwards.predict_proba(texts))


def test_probabilities_follow_sorted_classes_sum_to_one_and_decide_the_prediction(make):
    classifier = make().fit(*toy("weather", "fruit", "vehicle"))
    texts, _ = toy("vehicle", "fruit", start=40)
    probabilities = classifier.predict_proba(texts)
    assert probabilities.shape == (20, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    best = classifier.classes_[probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(classifier.predict(texts), best)


def test_one_text_alone_gets_the_label_it_gets_among_others(make):
    classifier = make().fit(*toy("weather", "fruit", "vehicle"))
    texts, _ = toy("vehicle", "fruit", start=40)
    alone = [classifier.predict([text])[0] for text in texts]
    assert classifier.predict(texts).tolist() == alone


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", "a"],
        [10, 9, 10, 9],
        np.array([-1, 2, -1, 2]),
        np.array(["x", "y", "x", "y"], dtype=object),
    ],
    ids=["str", "int", "array of int", "array of objects"],
)
def test_labels_come_back_as_they_were_given(make, labels):
    texts, _ = toy("fruit", "vehicle", texts=2)
    classifier = make().fit(texts, labels)
    kind = str if isinstance(labels[0], str) else np.integer
    assert classifier.classes_.tolist() == sorted(set(labels))
    assert all(isinstance(label, kind) for label in classifier.predict(texts))


def test_examples_of_relations_are_taken_as_they_are(make, tmp_path):
    from tests.classifier.conftest import save_tiny_encoder

    task = toy_task("relation", "fruit", "vehicle")
    folder = save_tiny_encoder(tmp_path / "encoder")
    classifier = make(encoder=str(folder)).fit(task.train, [one.label for one in task.train])
    assert set(classifier.predict(task.test)) <= {"fruit", "vehicle"}
    classifier.save(tmp_path / "model")
    loaded = ContinualClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(task.test), classifier.predict_proba(task.test))
    with pytest.raises(InvalidInput, match="Expected relation input, found sentence input"):
        classifier.predict(["a plain text"])


def test_classes_announced_are_listed_at_once_with_probability_zero(make):
    classifier = make().partial_fit(*toy("fruit", "vehicle"), classes=["vehicle", "fruit", "weather"])
    assert classifier.classes_.tolist() == ["fruit", "vehicle", "weather"]
    assert (classifier.predict_proba(toy("fruit")[0])[:, 2] == 0).all()
    classifier.partial_fit(*toy("weather"))
    assert (classifier.predict_proba(toy("fruit")[0])[:, 2] > 0).all()


def test_a_label_outside_the_classes_announced_is_named(make):
    with pytest.raises(InvalidInput, match="found 'vehicle'"):
        make().partial_fit(*toy("fruit", "vehicle"), classes=["fruit"])


@pytest.mark.parametrize(
    ("texts", "labels", "sentence"),
    [
        ("a single text", ["a"], "put it in a list"),
        (["a"], "b", "flat list"),
        (["a", 3], ["x", "y"], "position 1, found 3"),
        (["a", None], ["x", "y"], "position 1, found None"),
        (["a", "b"], ["x"], "found 1 labels for 2 texts"),
        (["a", "b"], ["x", None], "position 1, found None"),
        (["a", "b"], ["x", float("nan")], "position 1, found nan"),
        (["a", "b"], ["x", 1], "Expected every label to be text"),
        (["a", "b"], [True, False], "found True"),
        (["a", "b"], [1, 2**63], "position 1, found 9223372036854775808"),
        (["a", " "], ["x", "y"], "empty"),
        (["a", "\ud800"], ["x", "y"], "surrogate"),
        ([], [], "found none"),
        ([["a"], ["b"]], ["x", "y"], "position 0"),
        (np.array([["a"], ["b"]]), ["x", "y"], "shape"),
        (3, [1], "sequence of texts"),
        (["a"], None, "found None"),
    ],
)
def test_bad_input_is_refused_with_what_was_found(make, texts, labels, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        make().fit(texts, labels)


def test_a_fit_that_is_refused_leaves_what_was_learned(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    with pytest.raises(InvalidInput, match="empty"):
        classifier.fit(["a", " "], ["x", "y"])
    assert classifier.classes_.tolist() == ["fruit", "vehicle"]


def test_labels_of_another_type_than_before_are_refused_and_nothing_changes(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    before = classifier.predict_proba(toy("fruit")[0])
    with pytest.raises(InvalidInput, match="Expected every label to be text"):
        classifier.partial_fit(["rain"], [3])
    np.testing.assert_array_equal(classifier.predict_proba(toy("fruit")[0]), before)


def test_predicting_nothing_gives_nothing(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    assert classifier.predict([]).shape == (0,)
    assert classifier.predict_proba([]).shape == (0, 2)


def test_an_empty_text_gets_a_class_with_a_warning_where_nothing_else_can_be_answered(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    with pytest.warns(UserWarning, match="1 of 2 texts are empty"):
        assert classifier.predict(["apple", " "]).tolist()[1] in ("fruit", "vehicle")


def test_an_empty_text_is_unknown_under_any_threshold(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    known = classifier.predict(["apple"]).item()
    answers = classifier.predict(["", "apple", " \n"], unknown="?", threshold=0)
    assert answers.tolist() == ["?", known, "?"]
    assert classifier.predict([""], unknown="?", threshold=0).tolist() == ["?"]


def test_the_best_labels_come_with_their_probabilities(make):
    classifier = make("ncm").fit(*toy("fruit", "vehicle", "weather"))
    texts = ["the apple", "the rain"]
    labels, shares = classifier.predict_top(texts, 2)
    probabilities = classifier.predict_proba(texts)
    for row in range(2):
        ranked = sorted(zip(-probabilities[row], classifier.classes_, strict=True))
        assert labels[row].tolist() == [name for _, name in ranked[:2]]
        assert shares[row].tolist() == [-share for share, _ in ranked[:2]]
    assert labels[:, 0].tolist() == classifier.predict(texts).tolist()


def test_no_more_labels_than_there_are_classes_are_named(make):
    labels, shares = make("ncm").fit(["apple", "pear", "car", "bike"], [1, 1, 2, 2]).predict_top(["apple"], 9)
    assert sorted(labels[0].tolist()) == [1, 2]
    assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2"])
def test_a_number_of_labels_or_neighbors_below_one_is_refused(make, k):
    classifier = make("ncm").fit(*toy("fruit", "vehicle"))
    for ask in (classifier.predict_top, classifier.nearest):
        with pytest.raises(InvalidSetting, match="Expected k to be a whole number of at least 1"):
            ask(["apple"], k)


def test_the_nearest_kept_texts_are_those_with_the_largest_cosine(make):
    classifier = make().fit(*toy("fruit", "vehicle"))  # keeps exemplars
    kept = list(classifier.method_.memory)
    (found,) = classifier.nearest(["the apple is red"], 3)
    vectors = embed(classifier.fitted_state(), [Example("the apple is red", ""), *kept])
    cosines = [float(vectors[0] @ vector) for vector in vectors[1:]]
    assert [one.similarity for one in found] == pytest.approx(sorted(cosines, reverse=True)[:3])
    best = max(range(len(kept)), key=cosines.__getitem__)
    assert (found[0].text, found[0].label) == (kept[best].text, kept[best].label)


def test_a_kept_text_is_nearest_to_itself_also_for_learners_that_hold_texts_out_only(make):
    texts, labels = toy("fruit", "vehicle")
    classifier = make("ncm", holdout_per_class=2).fit(texts, [int(label == "fruit") for label in labels])
    held = classifier.fitted_state().held_out[0]
    (found,) = classifier.nearest([held.text], 1)
    assert found[0].text == held.text
    assert found[0].label == int(held.label)
    assert found[0].similarity == pytest.approx(1)


def test_an_empty_text_is_like_none_and_others_keep_their_places(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    found = classifier.nearest(["", "the apple"], 2)
    assert [len(one) for one in found] == [0, 2]


def test_without_kept_texts_nothing_can_be_explained(make):
    with pytest.raises(InvalidSetting, match="Expected kept texts to compare with, found none"):
        make("ncm").fit(*toy("fruit", "vehicle")).nearest(["apple"])


def test_before_learning_it_says_that_it_is_not_fitted(make):
    with pytest.raises(NotFittedError, match="has learned nothing yet"):
        make().predict(["a"])
    assert not hasattr(make(), "classes_")


def test_init_only_stores(make):
    classifier = ContinualClassifier(method="no such", encoder=3, settings={"a": 1}, seed="x")
    assert classifier.get_params()["encoder"] == 3
    with pytest.raises(InvalidSetting, match="cannot learn: encoder, input should be a valid string"):
        classifier.fit(["a", "b"], ["x", "y"])


@pytest.mark.parametrize("tolerance", [-0.1, 2])
def test_a_tolerance_that_is_no_share_is_refused(make, tolerance):
    with pytest.raises(InvalidSetting, match="cannot learn: tolerance, input should be"):
        make(tolerance=tolerance).fit(["a", "b"], ["x", "y"])


def test_a_seed_may_be_of_any_size(make, tmp_path):
    make("ncm", seed=-(2**70)).fit(*toy("fruit", "vehicle")).save(tmp_path / "model")
    assert ContinualClassifier.load(tmp_path / "model").seed == -(2**70)


def test_a_method_that_does_not_exist_is_said_when_it_is_to_learn(make):
    with pytest.raises(UnknownName, match="No method 'no such'"):
        ContinualClassifier(method="no such").fit(["a", "b"], ["x", "y"])


def test_clone_has_the_parameters_and_has_learned_nothing(make):
    fitted = make(seed=4, memory_per_class=2).fit(*toy("fruit", "vehicle"))
    twin = clone(fitted)
    assert twin.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        twin.predict(["a"])


@pytest.mark.parametrize("copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy])
def test_a_copy_predicts_and_learns_the_same(make, copied):
    first = make().fit(*toy("fruit", "vehicle"))
    second = copied(first)
    for classifier in (first, second):
        classifier.partial_fit(*toy("weather", "fruit", start=20))
    texts = toy("fruit", "weather", start=60)[0]
    np.testing.assert_array_equal(first.predict_proba(texts), second.predict_proba(texts))


def test_it_works_in_a_pipeline_cross_validation_and_a_grid_search(make):
    texts, labels = toy("fruit", "vehicle", texts=8)
    lower = FunctionTransformer(lambda values: [value.lower() for value in values])
    pipeline = make_pipeline(lower, make("sequential")).fit(texts, labels)
    assert pipeline.predict(texts).shape == (16,)
    scores = cross_val_score(make("sequential"), np.array(texts), labels, cv=2)
    assert scores.shape == (2,)
    search = GridSearchCV(make("sequential"), {"seed": [0, 1]}, cv=2).fit(texts, labels)
    assert set(search.best_params_) == {"seed"}
    assert search.score(texts, labels) >= 0


def test_score_is_accuracy(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    texts, labels = toy("fruit", "vehicle", start=30)
    assert classifier.score(texts, labels) == np.mean(classifier.predict(texts) == np.array(labels))


def test_the_memory_budget_in_all_is_kept(make):
    classifier = make(memory_total=7).fit(*toy("fruit", "vehicle"))
    classifier.partial_fit(*toy("weather"))
    assert classifier.method_.memory.counts() == {"fruit": 2, "vehicle": 2, "weather": 2}


def keeps_no_text(name):
    method = METHODS[name]
    return "memory_per_class" not in method.Settings.model_fields and not method.keeps_everything


@pytest.mark.parametrize("name", [name for name in METHODS if "sentence" in METHODS[name].kinds])
def test_a_memory_of_nothing_works_where_no_exemplars_are_needed_and_is_refused_elsewhere(make, name):
    classifier = make(name, memory_per_class=0)
    if keeps_no_text(name):
        classifier.fit(*toy("fruit", "vehicle", texts=4))
        assert len(classifier.method_.memory) == 0
    else:
        with pytest.raises(InvalidSetting, match=r"learns from kept texts\..*none: .*sequential"):
            classifier.fit(*toy("fruit", "vehicle", texts=4))


def test_a_classifier_interrupted_in_the_middle_is_not_used_any_more(make, monkeypatch):
    classifier = make().fit(*toy("fruit", "vehicle"))

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(classifier.method_), "remember", interrupt)
    with pytest.raises(KeyboardInterrupt):
        classifier.partial_fit(*toy("weather"))
    with pytest.raises(RepclError, match="interrupted while it learned"):
        classifier.predict(["a"])


@pytest.mark.parametrize(
    "change",
    [
        lambda classifier: classifier.remove_class("fruit"),
        lambda classifier: classifier.merge_classes(["fruit", "vehicle"], "thing"),
    ],
)
def test_a_classifier_interrupted_while_its_classes_change_is_not_used_any_more(make, monkeypatch, change):
    classifier = make("ncm").fit(*toy("fruit", "vehicle", "weather"))

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ClassifierState, "recalibrate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        change(classifier)
    with pytest.raises(RepclError, match="neither old nor new"):
        classifier.predict(["a"])


def test_a_loaded_classifier_starts_over_on_the_device_it_was_loaded_to(make, tmp_path):
    make("ncm", device=None).fit(*toy("fruit", "vehicle")).save(tmp_path / "model")
    assert ContinualClassifier.load(tmp_path / "model", device="cpu").device == "cpu"
    assert ContinualClassifier.load(tmp_path / "model").device is None


def test_a_first_lesson_that_fails_leaves_a_fresh_classifier(make):
    classifier = make()
    with pytest.raises(RepclError):
        classifier.partial_fit([Example("abc", "", head=None, tail=None, trigger=None)], ["x"], classes=["y"])
    classifier.partial_fit(*toy("fruit", "vehicle"))
    assert classifier.classes_.tolist() == ["fruit", "vehicle"]


def test_importing_the_package_does_not_import_torch():
    script = "import repcl, sys; assert 'torch' not in sys.modules; repcl.__version__"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_importing_the_command_line_does_not_import_transformers():
    script = "import repcl.cli, sys; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_unknown_attribute_of_the_package_is_an_error():
    import repcl

    with pytest.raises(AttributeError, match="nonsense"):
        repcl.nonsense  # noqa: B018


@pytest.mark.parametrize(
    "bad",
    [
        Example("Eve met Tom!", "", head=Span(0, 3), tail=Span(8, 15)),
        Example("Eve met Tom!", "", head=Span(3, 0), tail=Span(8, 11)),
        Example("Eve met Tom!", "", head=Span(0, 3)),
        Example("Eve met Tom!", "", head=(0, 3), tail=Span(8, 11)),
    ],
)
def test_wrong_marks_are_refused_before_anything_that_was_learned_is_touched(bad):
    good = [
        Example("Ann Weld married Jon Marsh.", "", head=Span(0, 8), tail=Span(17, 26)),
        Example("Eve Hill met Tom Poe!", "", head=Span(0, 8), tail=Span(13, 20)),
    ]
    classifier = ContinualClassifier("ncm", device="cpu").fit(good, ["a", "b"])
    with pytest.raises(InvalidInput, match="at position 1"):
        classifier.partial_fit([good[0], bad], ["c", "c"])
    assert classifier.predict(good).tolist() == ["a", "b"]


def test_a_mark_that_the_tokenizer_drops_is_refused_before_anything_that_was_learned_is_touched():
    good = [
        Example("The army attacked.", "", trigger=Span(9, 17)),
        Example("He sold a car.", "", trigger=Span(3, 7)),
    ]
    classifier = ContinualClassifier("ncm", device="cpu").fit(good, ["a", "b"])
    with pytest.raises(InvalidData, match="The tokenizer drops the trigger"):
        classifier.partial_fit([good[0], Example("It fell.", "", trigger=Span(2, 3))], ["c", "c"])
    assert classifier.predict(good).tolist() == ["a", "b"]


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_a_note_of_long_texts_that_is_made_an_error_leaves_what_was_learned_as_it_was(make, learn):
    texts, labels = toy("fruit", "vehicle")
    classifier = make("ncm").fit(texts, labels)
    expected = classifier.predict(texts).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="were shortened"):
            getattr(classifier, learn)(["one " * 600, "two " * 600], ["long", "long"])
    assert classifier.predict(texts).tolist() == expected


def test_a_text_to_forget_whose_mark_the_tokenizer_drops_leaves_what_was_learned_as_it_was():
    good = [
        Example("The army attacked.", "", trigger=Span(9, 17)),
        Example("He sold a car.", "", trigger=Span(3, 7)),
    ]
    classifier = ContinualClassifier("ncm", device="cpu").fit(good, ["a", "b"])
    with pytest.raises(InvalidData, match="The tokenizer drops the trigger"):
        classifier.forget_texts([Example("It fell.", "", trigger=Span(2, 3))])
    assert classifier.predict(good).tolist() == ["a", "b"]
