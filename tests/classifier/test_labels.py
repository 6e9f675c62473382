"""Labels that look alike."""

import numpy as np
import pytest

from repcl.classifier import LabelWarning
from repcl.classifier.labels import alike_but_for_case, settled
from repcl.errors import UnknownName
from tests.classifier.conftest import toy

APART = "cafe\u0301"
TEXTS = toy("fruit", "vehicle", texts=3)[0]


def test_blanks_and_forms_of_unicode_make_no_other_label():
    assert settled(["EMI", "EMI ", APART, "emi"], ()) == {
        "EMI": "EMI",
        "EMI ": "EMI",
        APART: "caf\u00e9",
        "emi": "emi",
    }


def test_a_class_that_is_known_keeps_the_name_it_has():
    assert settled(["a", "a ", "b", " b"], [" a", "b", "b "]) == {"a": " a", "a ": " a", "b": "b", " b": "b"}


def test_labels_that_differ_in_case_are_noticed_once_one_of_them_is_new():
    assert alike_but_for_case(["emi", "other", "Emi"], ["EMI"]) == [("EMI", "emi", "Emi")]
    assert alike_but_for_case(["emi", "x"], ["EMI", "emi"]) == []
    assert alike_but_for_case(["STRASSE", "stra\u00dfe"], []) == [("STRASSE", "stra\u00dfe")]


def test_labels_with_blanks_are_one_class_and_a_warning_says_so(make):
    with pytest.warns(LabelWarning, match="'EMI ' as 'EMI'"):
        classifier = make("ncm").fit(TEXTS, ["EMI", "EMI ", " EMI", "b", "b", "b"])
    assert classifier.classes_.tolist() == ["EMI", "b"]
    with pytest.warns(LabelWarning, match="' b' as 'b'"):
        classifier.partial_fit(["more"], [" b"], classes=["EMI", "b "])
    assert classifier.classes_.tolist() == ["EMI", "b"]


def test_labels_that_differ_in_case_are_two_classes_and_a_warning_says_so(make):
    classifier = make("ncm").fit(TEXTS, ["EMI", "EMI", "EMI", "b", "b", "b"])
    with pytest.warns(LabelWarning, match="'EMI', 'emi' differ in case only and are 2 classes"):
        classifier.partial_fit(["more"], ["emi"])
    assert classifier.classes_.tolist() == ["EMI", "b", "emi"]


def test_ordinary_labels_are_not_warned_about(make, recwarn):
    make("ncm").fit(TEXTS, ["a", "a", "a", "b", "b", "b"]).partial_fit(["more"], ["c"])
    make("ncm").fit(TEXTS, [1, 1, 1, 2, 2, 2])
    assert not [one for one in recwarn if one.category is LabelWarning]


def test_classes_are_named_with_or_without_blanks(make):
    classifier = make("ncm").fit(TEXTS, ["a", "a", "a", "b", "b", "b"])
    classifier.rename_class(" a", "c ")
    assert classifier.classes_.tolist() == ["b", "c"]
    with pytest.raises(UnknownName, match="No class 'a'"):
        classifier.remove_class("a")
    classifier.forget_texts([TEXTS[0]], ["c "])
    assert classifier.remove_class(" c").classes_.tolist() == ["b"]


def test_a_typed_number_may_have_blanks_around_it(make):
    classifier = make("ncm").fit(TEXTS, [1, 1, 1, 2, 2, 2])
    assert classifier.label_of(" 2 ") == 2


def test_a_score_does_not_depend_on_blanks_or_the_form_of_unicode(make):
    labels = ["caf\u00e9", "caf\u00e9", "caf\u00e9", "b", "b", "b"]
    classifier = make("ncm").fit(TEXTS, labels)
    typed = [APART, "caf\u00e9 ", " caf\u00e9", "b\t", " b", "b"]
    assert classifier.score(TEXTS, typed) == classifier.score(TEXTS, labels) > 0
    assert classifier.score(TEXTS, np.array(typed)) == classifier.score(TEXTS, labels)


def test_texts_are_learned_without_blanks_around_them(make):
    one = make("ncm").fit([f" {text}\n" for text in TEXTS], list("aaabbb"))
    other = make("ncm").fit(TEXTS, list("aaabbb"))
    np.testing.assert_array_equal(one.predict_proba(["x"]), other.predict_proba(["x"]))
    assert one.partial_fit([TEXTS[0]], ["a"]).last_update_.repeated == 1
