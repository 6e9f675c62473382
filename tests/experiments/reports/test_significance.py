"""The table of paired tests: which method the others are compared with, and over which rounds."""

import pytest
from scipy import stats

from repcl.evaluation import TestedExample
from repcl.experiments.reports.significance import (
    choose_reference,
    significance_table,
    significance_tables,
    texts_table,
)
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
    final, average, texts = significance_tables(runs)
    assert [table.name for table in (final, average, texts)] == [
        "demo-significance",
        "demo-significance-average",
        "demo-significance-texts",
    ]
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


def write_answers(folder, row, right, *, round=0, label="a"):
    """A run of a hundred texts of which those are right that are named."""
    tested = [TestedExample(str(n), 0, label, (label if n in right else "b",)) for n in range(100)]
    write_run(folder, row, tested, classes=[["a", "b"]], round=round)


def test_one_round_is_tested_over_its_texts(tmp_path):
    write_answers(tmp_path, "repcl", range(20, 100))
    write_answers(tmp_path, "fea", [*range(4), *range(40, 100)])
    table = texts_table(only(tmp_path))
    assert table is not None
    found = cells(table, "fea")
    assert (found["test texts"], found["round"]) == ("100", "0")
    assert (found["only repcl right"], found["only the other right"]) == ("20", "4")
    assert found["difference"] == "16.0"
    p = next(
        cell.values[0]
        for cell, column in zip(table.rows[0], table.columns, strict=True)
        if column.title == "p (McNemar)"
    )
    assert p == pytest.approx(stats.binomtest(4, 24, 0.5).pvalue)
    assert found["at 5 %"] == "repcl better"


def test_tests_over_texts_are_corrected_for_their_number(tmp_path):
    write_answers(tmp_path, "repcl", range(50))
    write_answers(tmp_path, "fea", range(44))  # p = 2 / 2^6
    write_answers(tmp_path, "crl", range(43))  # p = 2 / 2^7
    table = texts_table(only(tmp_path))
    assert table is not None
    adjusted = {row[0].text: row[7].values[0] for row in table.rows}
    assert adjusted == {"crl": pytest.approx(2 * 2 / 2**7), "fea": pytest.approx(2 / 2**6)}


def test_the_first_round_in_which_both_answered_the_same_texts_is_tested(tmp_path):
    write_answers(tmp_path, "repcl", range(50), round=0)
    write_answers(tmp_path, "repcl", range(50), round=1)
    write_answers(tmp_path, "fea", range(40), round=0, label="b")  # other texts: they have other classes
    write_answers(tmp_path, "fea", range(40), round=1)
    table = texts_table(only(tmp_path))
    assert table is not None
    assert cells(table, "fea")["round"] == "1"


def test_without_predictions_no_texts_are_tested(tmp_path):
    write_answers(tmp_path, "repcl", range(50))
    write_answers(tmp_path, "fea", range(40))
    for path in tmp_path.rglob("predictions*"):
        path.unlink()
    assert texts_table(only(tmp_path)) is None
