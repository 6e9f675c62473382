"""Which texts to label next."""

import numpy as np
import pytest

from repcl.classifier.suggestion import Suggestion, choose, suggest
from repcl.data import Example
from repcl.errors import InvalidSetting
from tests.classifier.conftest import toy


def best_by_hand(closeness, doubt, most, covered):
    """The greedy choice with plain loops."""
    chosen, covered = [], list(covered)
    for _ in range(most):
        gains = {
            candidate: sum(
                doubt[text] * max(0.0, closeness[text][candidate] - covered[text])
                for text in range(len(doubt))
            )
            for candidate in range(len(doubt))
            if candidate not in chosen
        }
        best = max(gains, key=lambda candidate: gains[candidate])
        chosen.append(best)
        covered = [max(old, closeness[text][best]) for text, old in enumerate(covered)]
    return chosen


def test_the_choice_is_that_of_plain_loops():
    draw = np.random.default_rng(0)
    closeness, doubt, covered = draw.random((12, 12)), draw.random(12), draw.random(12) / 2
    np.fill_diagonal(closeness, 1.0)
    assert choose(closeness, doubt, 5, covered) == best_by_hand(closeness, doubt, 5, covered)


def test_one_text_of_each_group_comes_before_the_second_of_any():
    groups = np.repeat([0, 1, 2], [6, 4, 2])
    closeness = np.where(groups[:, None] == groups, 0.9, 0.1)
    np.fill_diagonal(closeness, 1.0)
    chosen = choose(closeness, np.ones(12), 3, np.zeros(12))
    assert [groups[at] for at in chosen] == [0, 1, 2]


def test_texts_that_the_classifier_is_sure_about_do_not_count():
    closeness = np.eye(4)
    assert choose(closeness, np.array([0.1, 0.9, 0.0, 0.5]), 3, np.zeros(4)) == [1, 3, 0]


def test_texts_near_a_learned_one_come_last():
    assert choose(np.eye(3), np.ones(3), 3, np.array([0.5, 0.0, 0.9])) == [1, 0, 2]


@pytest.mark.parametrize("method", ["fea", "instant", "ncm"])
def test_each_suggestion_says_where_it_stands_and_why(make, method):
    classifier = make(method, holdout_per_class=2).fit(*toy("fruit", "vehicle", texts=12))
    texts = toy("weather", "place", texts=8, start=40)[0]
    found = classifier.suggest(texts, most=5)
    assert len(found) == 5 == len({one.index for one in found})
    assert all(texts[one.index] == one.text for one in found)
    assert all(0 <= one.confidence <= 1 and one.stands_for >= 1 for one in found)
    assert sum(one.stands_for for one in found) <= len(texts)
    assert set(found[0].likely) <= {"fruit", "vehicle"}


def test_no_more_is_suggested_than_there_is(make):
    classifier = make("ncm").fit(*toy("fruit", "vehicle"))
    assert len(classifier.suggest(["rain", "snow"], most=20)) == 2
    assert classifier.suggest([]) == []


def test_repetitions_empty_texts_and_learned_texts_are_left_out(make):
    learned, labels = toy("fruit", "vehicle")
    classifier = make("fea", memory_per_class=10).fit(learned, labels)
    assert learned[0] in {example.text for example in classifier.method_.memory}
    found = classifier.suggest(["rain", " ", learned[0], "rain", "snow"])
    assert sorted(one.index for one in found) == [0, 4]


def test_blanks_and_forms_of_unicode_make_no_other_text(make):
    learned, labels = toy("fruit", "vehicle")
    classifier = make("fea", memory_per_class=10).fit(learned, labels)
    found = classifier.suggest(["a caf\u00e9", f"{learned[0]} ", " a cafe\u0301"])
    assert [one.index for one in found] == [0]


def test_a_text_with_two_labels_is_suggested_once(make):
    classifier = make("ncm").fit(*toy("fruit", "vehicle"))
    state = classifier.fitted_state()
    assert len(suggest(state, [Example("rain", "a"), Example("rain", "b")])) == 1


def test_less_than_one_text_is_refused(make):
    classifier = make("ncm").fit(*toy("fruit", "vehicle"))
    with pytest.raises(InvalidSetting, match="at least 1 text to suggest, found 0"):
        classifier.suggest(["rain"], most=0)


@pytest.mark.parametrize(
    ("likely", "is_unknown", "stands_for", "reason"),
    [
        (("a",), False, 1, "probably a"),
        (("a", "b"), False, 3, "a or b; 2 more like it"),
        (("a", "b"), True, 2, "unknown, perhaps a; 1 more like it"),
    ],
)
def test_a_reason_is_a_few_words(likely, is_unknown, stands_for, reason):
    assert Suggestion(0, "text", likely, 0.4, is_unknown, stands_for).reason == reason


def test_every_kind_of_model_takes_what_was_suggested(make):
    classifier = make("ncm").fit(*toy("fruit", "vehicle"))
    pool = toy("weather", start=40)[0]
    chosen = [one.text for one in classifier.suggest(pool, most=3)]
    classifier.partial_fit(chosen, ["weather"] * 3)
    assert "weather" in classifier.classes_
