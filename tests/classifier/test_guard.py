"""Held-out texts: which are put aside, what counts as a loss, and when an update is refused."""

import time
import warnings

import pytest

from repcl.classifier import ForgettingWarning, guard, updates
from repcl.classifier.guard import compare, hold_out, mcnemar
from repcl.classifier.state import ClassifierState
from repcl.data import Example
from tests.classifier.conftest import toy


def texts(label, count, start=0):
    return [Example(f"{label} {number}", label) for number in range(start, start + count)]


@pytest.mark.parametrize(("given", "held"), [(1, 0), (4, 0), (5, 1), (10, 2), (24, 4), (25, 5), (100, 5)])
def test_at_most_one_text_in_five_and_five_in_all_are_held_out(given, held):
    train, kept = hold_out(texts("a", given), [], per_class=5, seed=0)
    assert (len(train), len(kept)) == (given - held, held)


def test_every_class_holds_back_by_itself():
    _, kept = hold_out([*texts("a", 10), *texts("b", 4)], [], per_class=5, seed=0)
    assert [example.label for example in kept] == ["a", "a"]


def test_all_classes_together_hold_out_no_more_than_can_be_compared(monkeypatch):
    monkeypatch.setattr(guard, "MOST_HELD_OUT", 7)
    given = [example for name in "abcde" for example in texts(name, 10)]
    train, kept = hold_out(given, [], per_class=5, seed=0)
    assert [example.label for example in kept] == ["a", "a", "b", "b", "c", "c", "d"]
    assert len(train) == 50 - 7
    train, later = hold_out(texts("f", 10), kept, per_class=5, seed=0)
    assert (len(train), later) == (10, kept)


def test_what_is_held_out_does_not_depend_on_the_order_but_on_the_seed():
    given = texts("a", 50)
    chosen = [set(hold_out(order, [], per_class=5, seed=0)[1]) for order in (given, given[::-1])]
    assert chosen[0] == chosen[1]
    assert set(hold_out(given, [], per_class=5, seed=1)[1]) != chosen[0]


def test_later_texts_fill_up_what_is_missing():
    _, first = hold_out(texts("a", 10), [], per_class=5, seed=0)
    _, second = hold_out(texts("a", 100, start=10), first, per_class=5, seed=0)
    assert len(second) == 5
    assert set(first) < set(second)


def test_a_held_out_text_that_comes_again_is_not_learned_from():
    given = texts("a", 10)
    _, held = hold_out(given, [], per_class=5, seed=0)
    train, again = hold_out([*given, held[0]], held, per_class=2, seed=0)
    assert not set(train) & set(held)
    assert again == held


def test_a_text_given_twice_is_not_on_both_sides():
    given = texts("a", 10) * 2
    train, held = hold_out(given, [], per_class=5, seed=0)
    assert not set(train) & set(held)


def test_a_held_out_text_that_comes_alone_is_learned_from():
    _, held = hold_out(texts("a", 10), [], per_class=5, seed=0)
    train, left = hold_out(held[:1], held, per_class=5, seed=0)
    assert train == held[:1]
    assert left == held[1:]


@pytest.mark.parametrize(
    ("lost", "gained", "p_value"),
    [(0, 0, 1.0), (1, 0, 1.0), (3, 0, 0.25), (5, 0, 0.0625), (5, 1, 0.21875), (2, 2, 1.0)],
)
def test_mcnemar_is_the_two_sided_sign_test(lost, gained, p_value):
    assert mcnemar(lost, gained) == pytest.approx(p_value)


def test_one_lost_text_of_each_of_two_classes_is_told_but_not_refused():
    told = compare(["a", "a", "b", "b"], [True] * 4, [True, False, True, False], tolerance=1.0)
    assert [(change.name, change.correct_before, change.correct_after) for change in told.regressed] == [
        ("a", 2, 1),
        ("b", 2, 1),
    ]
    assert told.reasons == ()


def test_two_lost_texts_of_one_class_are_refused():
    told = compare(["a", "a", "a"], [True] * 3, [True, False, False], tolerance=1.0)
    assert told.reasons == ("class 'a' lost 2 of its 3 held-out texts",)


def test_a_loss_counts_even_when_other_texts_of_the_class_are_gained():
    told = compare(["a"] * 4, [True, True, False, False], [False, False, True, True])
    assert told.regressed == ()
    assert told.reasons == ("class 'a' lost 2 of its 4 held-out texts",)


def test_a_small_certain_drop_over_many_classes_is_refused():
    labels = [f"class {number}" for number in range(100)]
    after = [number >= 5 for number in range(100)]
    told = compare(labels, [True] * 100, after)  # 5 of 100 lost: p = 2 / 2⁵ = 0.0625
    assert told.accuracy_after == pytest.approx(0.95)
    assert told.reasons == (
        "accuracy on held-out texts of old classes fell by 5.0 points (more than 2; p = 0.062)",
    )


def test_a_drop_that_may_be_chance_is_not_refused():
    labels = [f"class {number}" for number in range(100)]
    after = [number >= 4 for number in range(100)]  # 4 of 100 lost: p = 2 / 2⁴ = 0.125
    assert compare(labels, [True] * 100, after).reasons == ()


def test_a_drop_within_the_tolerance_is_not_refused():
    labels = [f"class {number}" for number in range(400)]
    after = [number >= 5 for number in range(400)]
    assert compare(labels, [True] * 400, after).reasons == ()


def test_a_drop_of_exactly_the_tolerance_is_not_refused():
    labels = [f"class {number}" for number in range(250)]
    after = [number >= 5 for number in range(250)]  # 0.02, of which floating point makes 0.020000000000000018
    told = compare(labels, [True] * 250, after)
    assert told.p_value == 0.0625
    assert told.reasons == ()


def test_learning_removing_and_merging_are_judged_by_the_classifiers_own_tolerance(make, monkeypatch):
    given = []
    monkeypatch.setattr(
        updates, "compare", lambda *_, tolerance: given.append(tolerance) or compare([], [], [])
    )
    classifier = make("ncm", tolerance=0.3).fit(*toy("fruit", "vehicle", "weather", "place"))
    classifier.remove_class("fruit").merge_classes(["vehicle", "weather"], "thing")
    assert given == [0.3, 0.3, 0.3]


def test_held_out_texts_are_never_seen_in_training(make):
    classifier = make(holdout_per_class=5).fit(*toy("fruit", "vehicle", texts=25))
    held = {example.text for example in classifier.fitted_state().held_out}
    assert len(held) == 10
    assert classifier.last_update_.held_out == 10
    assert classifier.last_update_.examples == 40
    assert not held & {example.text for example in classifier.method_.memory}


def test_an_update_that_harms_is_applied_with_a_warning_and_leaves_the_comparison(make):
    classifier = make("sequential", holdout_per_class=5, settings={"initial_epochs": 12})
    classifier.partial_fit(*toy("fruit", "vehicle", texts=25))
    assert classifier.last_update_.accuracy_before is None
    with pytest.warns(ForgettingWarning, match="harms old classes: class '(fruit|vehicle)' lost") as caught:
        classifier.partial_fit(*toy("weather", "place", texts=25, start=100))
    assert [warning.filename for warning in caught] == [__file__]  # it points at the caller
    update = classifier.last_update_
    assert classifier.classes_.tolist() == ["fruit", "place", "vehicle", "weather"]
    assert update.is_refused
    assert update.compared == 10
    assert update.accuracy_after < update.accuracy_before
    assert {change.name for change in update.regressed} <= {"fruit", "vehicle"}
    assert update.new_classes == ("place", "weather")


def test_held_out_texts_are_asked_about_once_per_update(make, monkeypatch):
    classifier = make("ncm", holdout_per_class=5).fit(*toy("fruit", "vehicle", texts=25))
    asked = []
    scores = ClassifierState.scores
    monkeypatch.setattr(
        ClassifierState,
        "scores",
        lambda self, examples: asked.append(len(examples)) or scores(self, examples),
    )
    classifier.partial_fit(*toy("weather", texts=25))
    assert asked == [15]  # after the update; what was before is known


def test_before_and_after_a_rename_are_compared_under_the_new_name(make):
    classifier = make("ncm", holdout_per_class=5).fit(*toy("fruit", "vehicle", texts=25))
    right = sum(classifier.fitted_state().correct.values())
    classifier.rename_class("fruit", "food").partial_fit(*toy("weather", texts=25))
    assert classifier.last_update_.compared == 10
    assert classifier.last_update_.accuracy_before == right / 10


def test_an_update_without_held_out_texts_is_never_refused(make):
    classifier = make("sequential", holdout_per_class=0, settings={"initial_epochs": 3})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.partial_fit(*toy("fruit", "vehicle")).partial_fit(*toy("weather", start=50))
    assert classifier.last_update_.accuracy_before is None
    assert not classifier.last_update_.is_refused


def test_comparing_a_hundred_thousand_classes_takes_seconds():
    labels = [f"class {number}" for number in range(100_000)]
    right = [True] * len(labels)
    start = time.monotonic()
    found = compare(labels, right, [False, *right[1:]])
    assert time.monotonic() - start < 20  # quadratic, it took hours
    assert [change.name for change in found.regressed] == ["class 0"]
