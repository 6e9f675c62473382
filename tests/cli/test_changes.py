"""What is printed about regressed classes: who took their texts, what to do, and never too wide."""

import io

import pytest

from repcl.classifier.store.records import ClassChange, LostText, Update
from repcl.cli.changes import CLASSES_SHOWN, DOUBTFUL_SHOWN, advice, print_changes
from repcl.cli.console import PlainConsole


def change(name="refund", taken_by="chargeback", lost=3, **more):
    return ClassChange(
        name=name,
        texts=10,
        correct_before=9,
        correct_after=9 - lost,
        lost=lost,
        taken_by=taken_by,
        taken=2,
        **more,
    )


def update(*changes, **more):
    return Update(
        action="learn",
        when="now",
        compared=100,
        accuracy_before=0.9,
        accuracy_after=0.87,
        recall_before=0.8,
        recall_after=0.75,
        p_value=0.25,
        regressed=changes,
        **more,
    )


def printed(told, width=80):
    out = io.StringIO()
    print_changes(PlainConsole(file=out, width=width, markup=False, emoji=False), told)
    return out.getvalue()


def test_accuracy_and_the_mean_over_classes_stand_side_by_side():
    lines = printed(update()).splitlines()
    assert lines == [
        "Texts of old classes: 90.0% right before, 87.0% after (100 texts, p = 0.25).",
        "Mean over old classes: 80.0% before, 75.0% after.",
    ]


def test_a_row_says_how_many_were_lost_and_who_took_most():
    shown = " ".join(printed(update(change()), width=200).split())
    assert "refund │ 9 of 10 │ 6 │ 3 │ chargeback (2)" in shown


def test_lines_fit_a_terminal_of_80_columns():
    long = "a_class_with_a_name_that_goes_on_and_on_and_on_and_on"
    lost = LostText(text="where is the money that " * 9, label=long, answer=long)
    told = update(change(name=long, taken_by=long), new_classes=(long,), lost_texts=(lost,))
    assert max(map(len, printed(told).splitlines())) <= 80


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ({"new_classes": ("chargeback",)}, "merge the two, or teach it more texts"),
        ({"more_of": ("chargeback",)}, "check the new texts of chargeback"),
        ({}, "teach it more texts"),
    ],
)
def test_what_to_do_depends_on_who_took_the_texts(told, what):
    assert advice(change(), update(**told)) == what


def test_a_change_of_an_older_folder_has_nobody_who_took_texts():
    old = change(taken_by=None)
    assert advice(old, update()) == "teach it more texts"
    assert "–" in printed(update(old))


def test_lost_texts_cannot_steer_the_terminal():
    lost = LostText(text="evil \x1b[2J text", label="a", answer="b")
    shown = printed(update(lost_texts=(lost,)))
    assert "\x1b" not in shown
    assert "lost: 'evil \\x1b[2J text' (a, now b)" in shown


def test_of_many_regressed_classes_the_first_are_shown_and_the_rest_counted():
    many = [change(name=f"class {number}", lost=1) for number in range(CLASSES_SHOWN + 3)]
    shown = printed(update(*many))
    assert f"class {CLASSES_SHOWN - 1} " in shown
    assert f"class {CLASSES_SHOWN} " not in shown
    assert "and 3 classes more, each with 1 lost or fewer." in shown


def test_texts_of_a_refused_update_that_look_mislabeled_are_shown_and_the_rest_counted():
    doubtful = [
        LostText(text=f"text {number}", label="a", answer="b") for number in range(DOUBTFUL_SHOWN + 2)
    ]
    shown = printed(update(reasons=("labels",), doubtful_texts=tuple(doubtful)))
    assert "  check: 'text 0' (a, or b)" in shown
    assert f"'text {DOUBTFUL_SHOWN}'" not in shown
    assert "  and 2 texts more to check" in shown


def test_doubtful_texts_of_an_update_that_is_used_are_not_shown():
    doubtful = LostText(text="text", label="a", answer="b")
    assert "check" not in printed(update(doubtful_texts=(doubtful,)))
