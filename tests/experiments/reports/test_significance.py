"""The table of paired tests: which method the others are compared with, and over which rounds."""

import pytest
from scipy import stats

from repcl.experiments.reports.significance import choose_reference, significance_table, significance_tables
from tests.experiments.made_up import (
    cells,
    class_names,
    invent_predictions,
    only,
    write_grid,
    write_run,
)


def test_paired_tests_agree_with_scipy_and_are_corrected(tmp_path):
    write_grid(tmp_path, {"repcl": 0.98, "fea": 0.8, "sequential": 0.5}, rounds=5, each=3)
    runs = only(tmp_path)
    table = significance_table(runs)
    assert table is not None
    values = {method.name: [result.final_accuracy for result in method.results] for method in runs.methods}
    p_values = {name: stats.ttest_rel(values["repcl"], values[name]).pvalue for name in ("fea", "sequential")}
    for row in table.rows:
        assert row[3].values[0] == pytest.approx(p_values[row[0].text], rel=1e-6)
        assert row[4].values[0] >= row[3].values[0]
    assert "Below 6 rounds Wilcoxon's test cannot reach 5 %: read the t test." in table.notes


def test_two_methods_with_one_round_are_not_tested(tmp_path):
    write_grid(tmp_path, {"repcl": 0.9, "fea": 0.5}, rounds=1)
    assert significance_table(only(tmp_path)) is None


def test_the_reference_is_the_wanted_method_else_repcl_else_the_best_fair_one(tmp_path):
    write_grid(tmp_path / "a", {"repcl": 0.5, "fea": 0.9})
    write_grid(tmp_path / "b", {"sequential": 0.2, "fea": 0.9, "joint": 0.99})
    assert choose_reference(only(tmp_path / "a")).name == "repcl"
    assert choose_reference(only(tmp_path / "a"), "fea").name == "fea"
    assert choose_reference(only(tmp_path / "b")).name == "fea"


def test_rounds_in_which_two_methods_learned_different_classes_are_not_compared(tmp_path):
    two, three = class_names(2, 1), class_names(3, 1)
    for round, (ours, theirs) in enumerate([(two, two), (two, two), (two, three)]):
        for row, classes in (("repcl", ours), ("fea", theirs)):
            tested = invent_predictions(classes, round=round, keeps=0.6)
            write_run(tmp_path, row, tested, classes=classes, round=round)
    table = significance_table(only(tmp_path))
    assert table is not None
    assert cells(table, "fea")["shared rounds"] == "2"
    assert "Rounds left out for other data, classes, tasks or encoder: 1 of fea." in table.notes


def test_a_reference_that_is_the_best_of_the_same_data_or_not_the_wanted_one_is_told(tmp_path):
    write_grid(tmp_path, {"sequential": 0.2, "fea": 0.9})
    table = significance_table(only(tmp_path), "emar")
    assert table is not None
    assert table.notes[0] == "emar was not run here: compared with fea instead."
    assert table.notes[1].startswith("fea was chosen because it is the best here")
    chosen = significance_table(only(tmp_path), "fea")
    assert chosen is not None
    assert not any("chosen" in note or "not run" in note for note in chosen.notes)


def test_a_single_method_has_no_table_of_tests(tmp_path):
    write_grid(tmp_path, {"fea": 0.9})
    assert significance_table(only(tmp_path)) is None


def test_average_accuracy_over_tasks_has_a_table_of_its_own_without_methods_tested_at_the_end(tmp_path):
    write_grid(tmp_path, {"repcl": 0.98, "fea": 0.8, "joint": 0.99}, rounds=5, each=3)
    runs = only(tmp_path)
    final, average = significance_tables(runs)
    assert (final.name, average.name) == ("demo-significance", "demo-significance-average")
    assert [row[0].text for row in final.rows] == ["fea", "joint"]
    assert [row[0].text for row in average.rows] == ["fea"]
    values = {
        method.name: [result.average_incremental_accuracy for result in method.results]
        for method in runs.methods
    }
    expected = stats.ttest_rel(values["repcl"], values["fea"]).pvalue
    assert average.rows[0][3].values[0] == pytest.approx(expected, rel=1e-6)


def test_rounds_for_80_percent_stand_only_where_a_test_shows_nothing(tmp_path):
    write_grid(tmp_path, {"repcl": 0.9, "fea": 0.88, "sequential": 0.3}, rounds=5, each=3)
    table = significance_table(only(tmp_path))
    assert table is not None
    told = {row: cells(table, row) for row in ("fea", "sequential")}
    assert told["fea"]["at 5 %"] == "no difference shown"
    assert told["fea"]["rounds for 80 %"].removeprefix("over ").isdigit()
    assert told["sequential"]["rounds for 80 %"] == "–"
    assert any(note.startswith("Rounds for 80 %: ") for note in table.notes)
