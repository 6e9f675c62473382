"""What became of the classes: confusions, every class, and the classes of each task."""

from collections import Counter

from repcl.evaluation import TestedExample
from repcl.experiments.reports.classes import (
    all_guesses,
    every_class_table,
    most_confused,
    order_table,
    wrong_texts_table,
)
from repcl.experiments.runs.wrong_texts import WrongText
from tests.experiments.made_up import cells, only, two_tasks, write_run

CLASSES = [["old"], ["new"]]


def test_answers_of_all_rounds_are_counted_together(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=CLASSES, round=0)
    write_run(tmp_path, "fea", two_tasks([True, False]), classes=CLASSES, round=1)
    guesses = all_guesses(only(tmp_path).methods[0])
    assert guesses == {"old": Counter(old=1, new=1), "new": Counter(new=2)}


def test_the_classes_confused_for_the_largest_share_of_their_texts_come_first():
    guesses = {"a": Counter(a=90, b=10), "c": Counter(c=1, d=1), "e": Counter(e=5)}
    assert most_confused(guesses) == ["c", "d", "a", "b"]


def test_at_most_ten_classes_are_shown_as_confused():
    guesses = {str(number): Counter({str(number): 1, str(number + 1): 1}) for number in range(30)}
    assert len(most_confused(guesses)) == 10


def test_no_class_is_confused_where_every_answer_is_right():
    assert most_confused({"a": Counter(a=3)}) == []


def test_every_class_has_its_accuracy_with_each_method_hardest_first(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True], [True, False]), classes=CLASSES)
    write_run(tmp_path, "aca", two_tasks([True, False], [True, False]), classes=CLASSES)
    table = every_class_table(only(tmp_path))
    assert table is not None
    assert [row[0].text for row in table.rows] == ["old", "new"]
    assert cells(table, "old") == {"class": "old", "fea": "50.0", "aca": "0.0"}
    assert cells(table, "new") == {"class": "new", "fea": "100.0", "aca": "100.0"}


def test_without_predictions_there_is_no_table_of_every_class(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=CLASSES)
    next(tmp_path.rglob("predictions.jsonl.gz")).unlink()
    assert every_class_table(only(tmp_path)) is None


def test_wrong_texts_of_the_first_round_are_listed_with_class_and_answer(tmp_path):
    wrong = [WrongText("hello", 1, "new", "old")]
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=CLASSES, wrong=wrong)
    table = wrong_texts_table("demo", only(tmp_path).methods[0])
    assert table is not None
    assert cells(table, "new") == {"class": "new", "answer": "old", "task": "2", "text": "hello"}


def test_a_run_that_kept_no_wrong_texts_has_no_table_of_them(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=CLASSES)
    assert wrong_texts_table("demo", only(tmp_path).methods[0]) is None


def test_the_classes_of_each_task_are_named_round_by_round(tmp_path):
    swapped = [TestedExample("a", 0, "new", ("new", "new")), TestedExample("b", 1, "old", ("old",))]
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=CLASSES, round=0)
    write_run(tmp_path, "fea", swapped, classes=CLASSES[::-1], round=1)
    table = order_table(only(tmp_path))
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["0", "1", "old"],
        ["0", "2", "new"],
        ["1", "1", "new"],
        ["1", "2", "old"],
    ]
    assert table.notes == []


def test_a_round_in_which_methods_learned_other_classes_is_noted(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=CLASSES)
    swapped = [TestedExample("a", 0, "new", ("new", "new")), TestedExample("b", 1, "old", ("old",))]
    write_run(tmp_path, "aca", swapped, classes=CLASSES[::-1])
    assert order_table(only(tmp_path)).notes == ["Methods had other orders in round 0; one is shown."]
