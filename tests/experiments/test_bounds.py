"""The table of methods between the bounds."""

from repcl.evaluation import TestedExample
from repcl.experiments.paper import load_paper
from repcl.experiments.reporting.bounds import bounds_table
from repcl.experiments.reporting.runs import load_runs
from tests.experiments.made_up import write_run

CLASSES = [["a", "b"]]


def write(folder, row: str, right: int, *, benchmark: str = "hwu64", round: int = 0) -> None:
    """A run that names so many of ten texts rightly."""
    tested = [TestedExample(str(number), 0, "a", ("a" if number < right else "b",)) for number in range(10)]
    write_run(folder, row, tested, classes=CLASSES, benchmark=benchmark, round=round)


def table_of(folder):
    return bounds_table(load_runs(folder)[0], load_paper())


def cells(table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_methods_stand_by_accuracy_with_both_places_and_whether_they_are_within(tmp_path):
    for row, right in {"sequential": 1, "joint": 8, "fea": 7, "repcl": 5, "kcn": 2, "instant": 9}.items():
        write(tmp_path, row, right)
    # from 10 + 20 to 80 + 1.5; the paper has repcl 84.8 before fea 83.3 before kcn 81.9, and no instant
    assert cells(table_of(tmp_path)) == [
        ["instant", "90.0", "no", "–", "–", "–"],
        ["fea", "70.0", "yes", "1", "2", "83.3"],
        ["repcl", "50.0", "yes", "2", "1", "84.8"],
        ["kcn", "20.0", "no", "3", "3", "81.9"],
    ]


def test_only_the_first_round_that_both_bounds_have_is_used(tmp_path):
    for row, round, right in [
        ("sequential", 0, 1),
        ("sequential", 1, 1),
        ("joint", 1, 9),
        ("fea", 0, 5),
        ("fea", 1, 6),
    ]:
        write(tmp_path, row, right, round=round)
    assert cells(table_of(tmp_path))[0][:2] == ["fea", "60.0"]
    assert "round 1" in table_of(tmp_path).title


def test_without_both_bounds_there_is_no_table(tmp_path):
    write(tmp_path, "sequential", 1)
    write(tmp_path, "fea", 5)
    assert table_of(tmp_path) is None


def test_a_benchmark_that_the_paper_does_not_have_shows_no_places(tmp_path):
    for row, right in {"sequential": 1, "joint": 8, "fea": 7}.items():
        write(tmp_path, row, right, benchmark="demo")
    assert cells(table_of(tmp_path)) == [["fea", "70.0", "yes", "–", "–", "–"]]
