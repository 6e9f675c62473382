"""The accuracy matrix."""

import json

import pytest

from repcl.evaluation import AccuracyMatrix, TestedExample

TESTED = [
    TestedExample("a", 0, "x", ("x", "x", "y")),
    TestedExample("b", 0, "x", ("x", "y", "y")),
    TestedExample("c", 2, "z", ("z",)),
]
MATRIX = AccuracyMatrix.from_predictions(TESTED, tasks=3)


def test_rows_are_moments_and_columns_are_tasks() -> None:
    assert MATRIX.rows == ((1.0, None, None), (0.5, None, None), (0.0, None, 1.0))


def test_an_accuracy_is_asked_for_by_name() -> None:
    assert MATRIX.accuracy(on=0, after=1) == 0.5
    assert MATRIX.accuracy(on=2, after=1) is None


def test_a_column_starts_when_its_task_was_learned() -> None:
    assert MATRIX.column(0) == (1.0, 0.5, 0.0)
    assert MATRIX.column(1) == (None, None)
    assert MATRIX.column(2) == (1.0,)


def test_the_matrix_counts_its_tasks() -> None:
    assert MATRIX.tasks == 3


def test_the_matrix_survives_json() -> None:
    rows = json.loads(json.dumps(MATRIX.as_lists()))
    assert AccuracyMatrix(tuple(tuple(row) for row in rows)) == MATRIX


def test_moments_that_were_not_evaluated_have_no_accuracy() -> None:
    joint = [TestedExample("a", 0, "x", (None, "x")), TestedExample("b", 1, "y", ("x",))]
    assert AccuracyMatrix.from_predictions(joint, tasks=2).rows == ((None, None), (1.0, 0.0))


def test_the_first_tasks_can_be_scored_alone() -> None:
    assert AccuracyMatrix.from_predictions(TESTED, tasks=2).rows == ((1.0, None), (0.5, None))


def test_thirds_are_exact() -> None:
    tested = [TestedExample(str(i), 0, "x", ("x" if i else "y",)) for i in range(3)]
    assert AccuracyMatrix.from_predictions(tested, tasks=1).accuracy(on=0, after=0) == pytest.approx(2 / 3)
