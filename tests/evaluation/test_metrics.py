"""Metrics against worked examples, their known relations, and plain loops."""

import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcl.evaluation import (
    AccuracyMatrix,
    TestedExample,
    accuracy_after_task,
    average_incremental_accuracy,
    backward_transfer,
    class_forgetting,
    final_accuracy,
    forgetting_rate,
    forgetting_rate_f1,
    score_predictions,
)


def triangle(*rows: list[float | None]) -> AccuracyMatrix:
    return AccuracyMatrix(tuple((*row, *[None] * (len(rows) - len(row))) for row in rows))


FADING = triangle([0.95], [0.90, 0.92], [0.80, 0.85, 0.90])
LATE_BLOOMER = triangle([0.80], [0.90, 0.92], [0.70, 0.85, 0.90])
IMPROVING = triangle([0.8], [0.9, 0.9])
SINGLE = triangle([0.9])
JOINT = triangle([None], [None, None], [0.7, 0.8, 0.9])
SECOND_TASK_UNTESTED = triangle([0.9], [0.8, None], [0.6, None, 0.9])


@pytest.mark.parametrize(("matrix", "expected"), [(FADING, 0.11), (LATE_BLOOMER, 0.135), (IMPROVING, -0.1)])
def test_forgetting_is_the_drop_from_the_best_earlier_accuracy(
    matrix: AccuracyMatrix, expected: float
) -> None:
    assert forgetting_rate(matrix) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("first_task", "expected"), [((0.90, 0.80, 0.85), 0.075), ((0.80, 0.70, 0.85), 0.025)]
)
def test_a_task_that_improved_lowers_the_forgetting_rate(
    first_task: tuple[float, float, float], expected: float
) -> None:
    one, two, three = first_task
    assert forgetting_rate(triangle([one], [two, 0.7], [three, 0.6, 1.0])) == pytest.approx(expected)


@pytest.mark.parametrize(("matrix", "expected"), [(FADING, -0.11), (LATE_BLOOMER, -0.085), (IMPROVING, 0.1)])
def test_backward_transfer_divides_by_the_number_of_old_tasks(
    matrix: AccuracyMatrix, expected: float
) -> None:
    assert backward_transfer(matrix) == pytest.approx(expected)


@pytest.mark.parametrize(("matrix", "expected"), [(FADING, 0.903333), (LATE_BLOOMER, 0.842222)])
def test_average_incremental_accuracy_is_the_mean_over_moments(
    matrix: AccuracyMatrix, expected: float
) -> None:
    accuracies = [fmean(accuracy for accuracy in row if accuracy is not None) for row in matrix.rows]
    assert average_incremental_accuracy(accuracies) == pytest.approx(expected, abs=1e-6)


def test_a_single_task_has_neither_forgetting_nor_transfer() -> None:
    assert forgetting_rate(SINGLE) is None
    assert backward_transfer(SINGLE) is None
    assert forgetting_rate_f1([TestedExample("a", 0, "x", ("x",))], tasks=1) is None


def test_a_method_evaluated_only_at_the_end_has_no_history() -> None:
    assert forgetting_rate(JOINT) is None
    assert backward_transfer(JOINT) is None
    assert average_incremental_accuracy([None, None, 0.8]) is None


def test_a_task_without_test_examples_is_skipped() -> None:
    assert forgetting_rate(SECOND_TASK_UNTESTED) == pytest.approx(0.3)
    assert backward_transfer(SECOND_TASK_UNTESTED) == pytest.approx(-0.3)


def matrices() -> st.SearchStrategy[AccuracyMatrix]:
    accuracies = st.floats(0, 1)
    return st.integers(2, 6).flatmap(
        lambda tasks: st.tuples(
            *(st.lists(accuracies, min_size=size, max_size=size) for size in range(1, tasks + 1))
        ).map(lambda rows: triangle(*rows))
    )


@given(matrices())
def test_forgetting_is_at_least_the_negated_backward_transfer(matrix: AccuracyMatrix) -> None:
    forgetting, transfer = forgetting_rate(matrix), backward_transfer(matrix)
    assert forgetting is not None
    assert transfer is not None
    assert forgetting >= -transfer - 1e-12


@given(matrices())
def test_the_last_row_is_the_diagonal_plus_backward_transfer(matrix: AccuracyMatrix) -> None:
    last = fmean(matrix.accuracy(on=task, after=matrix.tasks - 1) or 0.0 for task in range(matrix.tasks))
    diagonal = fmean(matrix.accuracy(on=task, after=task) or 0.0 for task in range(matrix.tasks))
    transfer, tasks = backward_transfer(matrix), matrix.tasks
    assert transfer is not None
    assert last == pytest.approx(diagonal + (tasks - 1) / tasks * transfer, abs=1e-12)


@given(matrices())
def test_forgetting_lies_between_minus_one_and_one(matrix: AccuracyMatrix) -> None:
    forgetting = forgetting_rate(matrix)
    assert forgetting is not None
    assert -1 <= forgetting <= 1


def answers(task: int, label: str, count: int, *correct: int) -> list[TestedExample]:
    """As many examples of one class, of which the given numbers are right after each task."""
    return [
        TestedExample(
            f"{label}-{i}", task, label, tuple(label if i < right else "wrong" for right in correct)
        )
        for i in range(count)
    ]


UNEQUAL_TASKS = [*answers(0, "big", 100, 95, 90), *answers(1, "small", 50, 30)]


def test_accuracy_counts_each_example_the_same() -> None:
    assert accuracy_after_task(UNEQUAL_TASKS, tasks=2) == pytest.approx([0.95, 0.80])
    assert final_accuracy(UNEQUAL_TASKS, tasks=2) == pytest.approx(0.80)


def test_every_score_follows_from_the_predictions() -> None:
    scores = score_predictions(UNEQUAL_TASKS, tasks=2)
    assert scores.accuracy_matrix.rows == ((0.95, None), (0.90, 0.60))
    assert scores.accuracy_after_task == pytest.approx((0.95, 0.80))
    assert scores.final_accuracy == pytest.approx(0.80)
    assert scores.forgetting_rate == pytest.approx(0.05)
    assert scores.backward_transfer == pytest.approx(-0.05)
    assert scores.average_incremental_accuracy == pytest.approx(0.875)
    assert scores.forgetting_rate_f1 == pytest.approx(2 * 95 / 195 - 2 * 90 / 190)


def test_no_test_examples_give_no_scores() -> None:
    scores = score_predictions([], tasks=2)
    assert scores.accuracy_after_task == (None, None)
    assert (scores.final_accuracy, scores.forgetting_rate, scores.forgetting_rate_f1) == (None, None, None)


def test_the_f1_variant_takes_the_best_value_with_the_last_included() -> None:
    # F1 = 2·right / (100 + right): 50 right of 100 give 2/3, 25 right give 0.4
    improved, faded = answers(0, "a", 100, 25, 25, 50), answers(1, "b", 100, 50, 25)
    tested = [*improved, *faded, *answers(2, "c", 1, 1)]
    assert forgetting_rate_f1(tested, tasks=3) == pytest.approx((0 + (2 / 3 - 0.4)) / 2)
    assert forgetting_rate(AccuracyMatrix.from_predictions(tested, 3)) == pytest.approx((-0.25 + 0.25) / 2)


def test_the_f1_variant_needs_an_earlier_evaluation() -> None:
    joint = [TestedExample("a", 0, "x", (None, "x")), TestedExample("b", 1, "y", ("x",))]
    assert forgetting_rate_f1(joint, tasks=2) is None


def random_predictions(seed: int, tasks: int) -> list[TestedExample]:
    generator = random.Random(seed)
    classes_of = [[f"{task}{letter}" for letter in "abc"] for task in range(tasks)]
    tested = []
    for number in range(120):
        task = generator.randrange(tasks)
        seen = [[name for names in classes_of[: after + 1] for name in names] for after in range(task, tasks)]
        predicted = tuple(generator.choice(names) for names in seen)
        tested.append(TestedExample(str(number), task, generator.choice(classes_of[task]), predicted))
    return tested


def f1_of(name: str, pairs: list[tuple[str, str | None]]) -> float:
    """F1 of one class, counted pair by pair."""
    hits = sum(true == predicted == name for true, predicted in pairs)
    misses = sum((true == name) != (predicted == name) for true, predicted in pairs)
    return 2 * hits / (2 * hits + misses)


@pytest.mark.parametrize("seed", range(5))
def test_the_f1_variant_equals_a_plain_loop(seed: int) -> None:
    tasks = 4
    tested = random_predictions(seed, tasks)
    drops = []
    for task in range(tasks - 1):
        classes = sorted({example.label for example in tested if example.task == task})
        history = []
        for after in range(task, tasks):
            seen = [example for example in tested if example.task <= after]
            true = [example.label for example in seen]
            predicted = [example.predicted[after - example.task] for example in seen]
            pairs = list(zip(true, predicted, strict=True))
            history.append(fmean(f1_of(name, pairs) for name in classes))
        drops.append(max(history) - history[-1])
    assert forgetting_rate_f1(tested, tasks) == pytest.approx(sum(drops) / len(drops))


def test_class_forgetting_is_the_drop_of_each_class() -> None:
    tested = [*answers(0, "a", 10, 8, 9, 5), *answers(0, "b", 10, 6, 6, 7), *answers(1, "c", 4, 4, 1)]
    assert class_forgetting(tested) == pytest.approx({"a": 0.4, "b": -0.1, "c": 0.75})


def test_class_forgetting_leaves_out_classes_that_are_new_or_have_no_history() -> None:
    joint = [TestedExample("a", 0, "x", (None, "x")), TestedExample("b", 1, "y", ("x",))]
    assert class_forgetting(joint) == {}
    assert class_forgetting([]) == {}


def test_a_class_that_returns_in_a_later_task_is_followed_over_all_its_examples() -> None:
    tested = [*answers(0, "a", 2, 2, 1), *answers(1, "a", 2, 0), *answers(1, "b", 1, 1)]
    assert class_forgetting(tested) == pytest.approx({"a": 1 - 1 / 4})
