"""What duets add to earlier learners: numbers worked out by hand."""

import runpy
from pathlib import Path

from tests.experiments.made_up import cells, only, two_tasks, write_run

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks/duet_gains.py"))


def write(folder, row, round, still_right) -> None:
    """Five old texts, so many of them right in the end, and five new ones, which all are."""
    tested = two_tasks(*[[True, number < still_right] for number in range(5)])
    write_run(folder, row, tested, classes=[["old"], ["new"]], round=round)


def row_of(folder, title) -> dict[str, str]:
    return cells(SCRIPT["gains_table"](only(folder)), title)


def test_a_duet_is_compared_with_the_best_strict_method_of_its_round(tmp_path):
    for row, still_right in (("duet", 5), ("repcl", 2), ("fea", 3), ("instant", 4)):
        write(tmp_path, row, 0, still_right)
    # 10 of 10 right against 8 of 10; two texts that only the duet has right: p = 2 * 0.5 ** 2
    assert row_of(tmp_path, "duet − the best strict method")["round 0"] == "+20.0 (fea; p = 0.500)"


def test_with_statistics_every_earlier_learner_is_a_rival(tmp_path):
    for row, still_right in (("duet@statistics", 5), ("repcl", 2), ("instant", 4), ("instant@vote", 5)):
        write(tmp_path, row, 0, still_right)
    found = row_of(tmp_path, "duet@statistics − the best earlier learner")
    assert found["round 0"].startswith("+10.0 (instant;")


def test_the_mean_is_taken_over_the_rounds_of_both(tmp_path):
    for round, still_right in ((0, 5), (1, 3)):
        write(tmp_path, "first_session", round, still_right)
        write(tmp_path, "instant", round, 2)
    write(tmp_path, "first_session", 2, 5)  # no rival
    found = row_of(tmp_path, "first_session − instant")
    assert found["mean"] == "+20.0"
    assert "round 2" not in found


def test_what_was_not_run_is_a_dash(tmp_path):
    write(tmp_path, "duet", 0, 5)
    write(tmp_path, "fea", 0, 5)
    assert row_of(tmp_path, "first_session − instant")["mean"] == "–"
