"""Texts with several labels: learned, corrected, forgotten, saved and asked about."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from repcl import ContinualClassifier
from repcl.classifier import InvalidInput
from repcl.classifier.label_rules import best_threshold, has_labels, label_probabilities
from repcl.classifier.label_sets import as_label_sets
from repcl.classifier.store.records import LabelRule, LabelRules
from repcl.errors import InvalidSetting
from repcl.methods import METHODS
from tests.classifier.conftest import toy

pytestmark = pytest.mark.filterwarnings("ignore::repcl.classifier.ForgettingWarning")

ABLE = ["instant", "ncm"]
able = pytest.mark.parametrize("name", ABLE)


def lesson(texts: int = 8, start: int = 0) -> tuple[list[str], list[list[str]]]:
    """Texts of a topic each, and texts of two."""
    fruit, vehicle = toy("fruit", texts=texts, start=start)[0], toy("vehicle", texts=texts, start=start)[0]
    weather = toy("weather", texts=texts, start=start)[0]
    both = [f"{one} {other}" for one, other in zip(fruit, vehicle, strict=True)]
    labels = [["fruit"]] * texts + [["vehicle"]] * texts + [["weather"]] * texts
    return [*fruit, *vehicle, *weather, *both], labels + [["fruit", "vehicle"]] * texts


TEXTS, LABELS = lesson()
ASKED = lesson(start=70)[0]


def assert_same_answers(one: ContinualClassifier, other: ContinualClassifier) -> None:
    np.testing.assert_array_equal(one.predict_proba(ASKED), other.predict_proba(ASKED))
    assert one.predict(ASKED).tolist() == other.predict(ASKED).tolist()


@pytest.fixture(scope="module")
def taught(make) -> ContinualClassifier:
    return make("instant", multilabel=True).fit(TEXTS, LABELS)


def test_learned_texts_get_their_labels(taught):
    assert taught.score(TEXTS, LABELS) > 0.9
    assert taught.predict(TEXTS)[-1] == ("fruit", "vehicle")


def test_each_label_has_a_probability_of_its_own(taught):
    found = taught.predict_proba(TEXTS[-1:])[0]
    assert found.sum() > 1
    assert taught.predict_top(TEXTS[-1:], k=2)[0].tolist()[0] in (["fruit", "vehicle"], ["vehicle", "fruit"])


def test_a_threshold_for_all_labels_replaces_their_own(taught):
    assert taught.predict(TEXTS[:1], threshold=0).tolist() == [("fruit", "vehicle", "weather")]
    assert taught.predict(TEXTS[:1], threshold=1).tolist() == [()]
    with pytest.raises(InvalidSetting, match="from 0 to 1"):
        taught.predict(TEXTS[:1], threshold=2)


def test_a_score_does_not_depend_on_blanks_around_labels(taught):
    typed = [[f" {label} " for label in labels] for labels in LABELS]
    assert taught.score(TEXTS, typed) == taught.score(TEXTS, LABELS) > 0


def test_an_empty_text_has_no_label_and_is_unknown(taught):
    assert taught.predict(["", TEXTS[-1]]).tolist() == [(), ("fruit", "vehicle")]
    assert taught.predict([" "], unknown="?").tolist() == [("?",)]


def test_cells_are_as_good_as_lists(make):
    cells = ["|".join(labels) for labels in LABELS]
    assert_same_answers(
        make("ncm", multilabel=True).fit(TEXTS, LABELS), make("ncm", multilabel=True).fit(TEXTS, cells)
    )


def test_labels_that_are_numbers_come_back_as_numbers(make):
    clf = make("ncm", multilabel=True).fit(TEXTS, [[len(one[0]), 1] for one in LABELS])
    assert all(isinstance(label, int) and label in (1, 5, 7) for label in clf.predict(TEXTS[:1])[0])


@able
def test_saving_loading_and_learning_gives_the_same_bits(make, name, tmp_path):
    straight = make(name, multilabel=True).fit(TEXTS[:20], LABELS[:20])
    straight.save(tmp_path / "model")
    loaded = ContinualClassifier.load(tmp_path / "model", device="cpu")
    assert loaded.multilabel
    assert loaded.fitted_state().checks_before() == straight.fitted_state().checks_before()
    for clf in (straight, loaded):
        clf.partial_fit(TEXTS[20:], LABELS[20:])
    assert_same_answers(straight, loaded)
    assert straight.last_update_.compared == loaded.last_update_.compared > 0


def test_a_copy_by_pickle_gives_the_same_answers(taught):
    assert_same_answers(taught, pickle.loads(pickle.dumps(taught)))
    assert clone(taught).multilabel


@able
def test_a_text_taught_again_has_the_new_labels_only(make, name):
    corrected = make(name, multilabel=True).fit(TEXTS, LABELS)
    corrected.partial_fit(TEXTS[-1:], [["weather", "fruit"]])
    assert corrected.last_update_.corrected == 1
    never = make(name, multilabel=True).fit(TEXTS, [*LABELS[:-1], ["weather", "fruit"]])
    assert_same_answers(corrected, never)


@able
def test_a_text_is_forgotten_under_one_label_or_all(make, name):
    under_one = make(name, multilabel=True).fit(TEXTS, LABELS).forget_texts(TEXTS[-1:], [["fruit"]])
    assert_same_answers(under_one, make(name, multilabel=True).fit(TEXTS, [*LABELS[:-1], ["vehicle"]]))
    under_all = make(name, multilabel=True).fit(TEXTS, LABELS).forget_texts(TEXTS[-1:])
    assert_same_answers(under_all, make(name, multilabel=True).fit(TEXTS[:-1], LABELS[:-1]))


def test_merged_classes_have_a_shared_text_once(make):
    merged = make("instant", multilabel=True).fit(TEXTS, LABELS)
    merged.merge_classes(["fruit", "vehicle"], into="thing")
    things = [["weather"] if labels == ["weather"] else ["thing"] for labels in LABELS]
    assert_same_answers(merged, make("instant", multilabel=True).fit(TEXTS, things))


SMALL = ["a pear", "a plum and a pear", "a train", "the rain"], [["a", "b"], ["a"], ["b"], ["d"]]


def merged_to_forget_from(make) -> ContinualClassifier:
    """Class c of three texts, one of which had both labels that c was made of."""
    return make("instant", multilabel=True).fit(*SMALL).merge_classes(["a", "b"], into="c")


def test_a_text_of_both_merged_classes_is_forgotten_and_no_other_is(make):
    merged = merged_to_forget_from(make).forget_texts(SMALL[0][:1])
    assert merged.fitted_state().texts_of_classes() == {"c": 2, "d": 1}
    assert_same_answers(merged, make("instant", multilabel=True).fit(SMALL[0][1:], [["c"], ["c"], ["d"]]))


def test_a_text_of_both_merged_classes_is_corrected_and_no_other_is(make):
    merged = merged_to_forget_from(make).partial_fit(SMALL[0][:1], [["d"]])
    assert merged.fitted_state().texts_of_classes() == {"c": 2, "d": 2}


def test_the_only_text_of_merged_classes_can_be_forgotten(make):
    merged = make("ncm", multilabel=True).fit(["a pear", "the rain"], [["a", "b"], ["d"]])
    merged.merge_classes(["a", "b"], into="c").forget_texts(["a pear"])
    assert merged.classes_.tolist() == ["d"]


def test_a_text_that_two_united_classifiers_knew_is_forgotten_and_no_other_is(make):
    one = make("ncm", multilabel=True).fit(*SMALL)
    one.absorb(make("ncm", multilabel=True).fit(SMALL[0][:1], SMALL[1][:1])).forget_texts(SMALL[0][:1])
    assert one.fitted_state().texts_of_classes() == {"a": 1, "b": 1, "d": 1}


def test_a_text_that_comes_twice_but_for_blanks_is_forgotten_and_no_other_is(make):
    texts, labels = SMALL
    classifier = make("ncm", multilabel=True).fit([*texts, f"{texts[0]} "], [*labels, labels[0]])
    classifier.forget_texts(texts[:1])
    assert classifier.fitted_state().texts_of_classes() == {"a": 1, "b": 1, "d": 1}


def of_texts_that_look_the_same(make) -> ContinualClassifier:
    """An encoder that knows no capitals sees three texts: a pear, the train, the rain."""
    return make("ncm", multilabel=True).fit(["A pear", "a pear", "the train", "the rain"], [*"aaad"])


@pytest.mark.parametrize("lessons", [[["A pear"], ["a pear"]], [["a pear", "A pear"]]])
def test_of_texts_that_look_the_same_the_second_takes_no_other_with_it(make, lessons):
    classifier = of_texts_that_look_the_same(make)
    assert classifier.fitted_state().texts_of_classes() == {"a": 2, "d": 1}
    for texts in lessons:
        classifier.forget_texts(texts)
    assert classifier.last_update_.forgotten == len(lessons[-1])
    assert classifier.fitted_state().texts_of_classes() == {"a": 1, "d": 1}


def test_a_text_that_went_with_one_that_looks_the_same_is_learned_when_it_comes_again(make):
    classifier = of_texts_that_look_the_same(make).forget_texts(["A pear"])
    classifier.partial_fit(["a pear", "the train"], ["a", "a"])
    assert classifier.last_update_.repeated == 1
    assert classifier.fitted_state().texts_of_classes() == {"a": 2, "d": 1}


def test_a_class_of_texts_that_look_the_same_is_gone_with_them(make):
    classifier = of_texts_that_look_the_same(make).forget_texts(["A pear", "the train", "a pear"])
    assert classifier.classes_.tolist() == ["d"]


def test_a_removed_class_leaves_its_texts_to_their_other_labels(make):
    removed = make("instant", multilabel=True).fit(TEXTS, LABELS).remove_class("vehicle")
    left = [
        ([label for label in labels if label != "vehicle"], text)
        for text, labels in zip(TEXTS, LABELS, strict=True)
    ]
    kept = [(text, labels) for labels, text in left if labels]
    never = make("instant", multilabel=True).fit(*map(list, zip(*kept, strict=True)))
    assert_same_answers(removed, never)


def test_a_renamed_class_keeps_its_rule(make):
    clf = make("instant", multilabel=True).fit(*lesson(texts=12))
    before = clf.predict_proba(ASKED)
    assert set(clf.fitted_state().calibration.labels.classes) == {"fruit", "vehicle"}
    clf.rename_class("fruit", "apple")
    np.testing.assert_array_equal(clf.predict_proba(ASKED), before)


def test_new_classes_may_come_in_any_call_and_old_ones_are_compared(make):
    clf = make("instant", multilabel=True).fit(TEXTS[:16], LABELS[:16]).partial_fit(TEXTS[16:], LABELS[16:])
    update = clf.last_update_
    assert (update.new_classes, update.examples) == (("weather",), 16)
    assert update.compared == 16


def test_a_checked_label_stands_against_those_that_its_text_has_not(taught):
    for (_, asked), check in taught.fitted_state().checks_before().items():
        assert check.label == asked
    checks = list(taught.fitted_state().checks_before().values())
    assert len(checks) == 40
    pairs = {(check.label, check.answer) for check in checks}
    assert ("fruit", "fruit") in pairs


def test_two_classifiers_that_know_one_text_are_united(make):
    one = make("ncm", multilabel=True).fit(TEXTS[:16], LABELS[:16])
    one.absorb(make("ncm", multilabel=True).fit(TEXTS[8:], LABELS[8:]))
    np.testing.assert_array_equal(
        one.predict_proba(ASKED), make("ncm", multilabel=True).fit(TEXTS, LABELS).predict_proba(ASKED)
    )
    one.partial_fit(TEXTS[8:9], [["weather"]])  # known to both, and counted once
    assert one.last_update_.corrected == 1


def test_a_described_class_gets_one_label(make):
    clf = make("ncm", multilabel=True).fit(TEXTS, LABELS).describe_class("fast_train")
    assert "fast_train" in clf.classes_
    with pytest.raises(InvalidInput, match=r"without '\|'"):
        clf.describe_class("slow|train", "a slow train")


def test_what_comes_next_works_with_several_labels(make):
    clf = make("instant", multilabel=True).fit(TEXTS, LABELS)
    assert {share.name for share in clf.drift(ASKED).classes} == {"fruit", "vehicle", "weather"}
    assert len(clf.suggest(ASKED, most=3)) == 3


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ABLE])
def test_methods_that_give_one_label_say_so(name):
    memory = {"memory_per_class": 1}
    with pytest.raises(InvalidSetting, match=f"several labels .* found '{name}'.* use instant or ncm"):
        ContinualClassifier(name, multilabel=True, **memory).fit(["a", "b"], [["x"], ["y"]])


def test_several_labels_are_refused_where_nothing_of_a_text_may_be_kept(make):
    with pytest.raises(InvalidSetting, match="keep_embeddings = true"):
        make("ncm", multilabel=True, memory_per_class=0).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([["a"], []], "at least one label at position 1"),
        (["a", "|"], "at least one label at position 1"),
        ([["a|b"], ["c"]], r"without '\|'"),
        (np.eye(2), "table of shape"),
        ("ab", "list of lists"),
        (None, "list of lists"),
        ([["a"]], "found 1 for 2 texts"),
        ([["a"], [0.5]], "a continuous value"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(make, labels, said):
    with pytest.raises(InvalidInput, match=said):
        make("ncm", multilabel=True).fit(["one text", "another"], labels)


def test_an_empty_text_is_named_by_its_own_place(make):
    with pytest.raises(InvalidInput, match="position 1"):
        make("ncm", multilabel=True).fit(["one text", " "], [["a", "b"], ["c"]])


def test_labels_of_a_text_are_taken_once_each():
    assert as_label_sets([("b", "a", "b"), "b| a |", {2}], 3) == [["b", "a"], ["b", "a"], [2]]


def test_the_threshold_lies_where_f1_is_highest():
    found = np.array([0.9, 0.8, 0.6, 0.2])
    has_label = np.array([True, False, True, False])
    # above 0.9: 2·1/(1+2); above 0.8: 2·1/(2+2); above 0.6: 2·2/(3+2) = 0.8; all: 2·2/(4+2)
    assert best_threshold(found, has_label, np.ones(4)) == pytest.approx(0.4)
    # where the text at 0.8 stands for ten: 2·1/(1+2) is best
    assert best_threshold(found, has_label, np.array([1.0, 10.0, 1.0, 1.0])) == pytest.approx(0.85)


def test_a_class_with_a_rule_of_its_own_does_not_follow_the_common_one():
    rules = LabelRules(
        common=LabelRule(slope=0.0, offset=0.0, threshold=0.6),
        classes={"own": LabelRule(slope=1.0, offset=0.0, threshold=0.4)},
    )
    found = label_probabilities(np.zeros((1, 2)), rules, ["own", "other"])
    assert found.tolist() == [[0.5, 0.5]]
    assert has_labels(found, rules, ["own", "other"]).tolist() == [[True, False]]
