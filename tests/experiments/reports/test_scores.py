"""The tables of scores: means and spreads over rounds, tracks, the paper beside ours, forgotten classes."""

import pytest

from repcl.evaluation import TestedExample
from repcl.experiments.paper.numbers import load_paper
from repcl.experiments.paper.recipes import find_recipe
from repcl.experiments.reports.grouping import load_runs
from repcl.experiments.reports.scores import forgotten_table, overview_table, results_table, tasks_table
from repcl.experiments.reports.write import write_report
from tests.experiments.made_up import (
    cells,
    class_names,
    invent_predictions,
    only,
    two_tasks,
    write_grid,
    write_run,
)


def test_results_are_mean_deviation_and_interval_over_rounds(tmp_path):
    classes = [["old"], ["new"]]
    write_run(tmp_path, "fea", two_tasks([True, True], [True, True]), classes=classes, round=0)
    write_run(tmp_path, "fea", two_tasks([True, True], [True, False]), classes=classes, round=1)
    row = cells(results_table(only(tmp_path), load_paper()), "fea")
    # 100 and 75 percent: mean 87.5, sd 25 / √2 = 17.7, half width 12.706 · 17.68 / √2 = 158.8: cut at 0, 100
    assert row["rounds"] == "2"
    assert row["accuracy"] == "87.5 ± 17.7"
    assert row["95 % interval"] == "[0.0, 100.0]"
    # the old task fell from 100 to 100 and from 100 to 50
    assert row["forgetting"] == "25.0 ± 35.4"
    # (100 + 100) / 2 and (100 + 75) / 2
    assert row["average accuracy"] == "93.8 ± 8.8"


def test_one_round_has_neither_deviation_nor_interval(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=[["old"], ["new"]])
    row = cells(results_table(only(tmp_path), load_paper()), "fea")
    assert (row["accuracy"], row["95 % interval"]) == ("100.0", "–")


def test_incomplete_and_capped_data_are_marked_and_explained(tmp_path):
    write_run(
        tmp_path, "fea", two_tasks([True, True]), classes=[["old"], ["new"]], complete=False, capped=True
    )
    table = results_table(only(tmp_path), load_paper())
    assert cells(table, "fea")["accuracy"] == "100.0†‡"
    assert [note[0] for note in table.notes] == ["†", "‡"]


def test_tracks_are_strict_statistics_and_all_data_with_the_bytes(tmp_path):
    classes = [["old"], ["new"]]
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=classes)
    write_run(tmp_path, "instant", two_tasks([True, True]), classes=classes, statistics_bytes=2_500_000)
    write_run(tmp_path, "joint", two_tasks([True, True]), classes=classes)
    table = results_table(only(tmp_path), load_paper())
    tracks = [[(row[0].text, row[1].text) for row in group] for group in table.groups]
    assert tracks == [[("fea", "strict")], [("instant", "statistics, 2.5 MB")], [("joint", "all data")]]


def test_methods_whose_means_read_the_same_are_best_together(tmp_path):
    many = [[True, True]] * 1999
    classes = [["old"], ["new"]]
    write_run(tmp_path, "fea", two_tasks(*many, [True, True]), classes=classes)
    write_run(tmp_path, "aca", two_tasks(*many, [True, False]), classes=classes)
    write_run(tmp_path, "emar", two_tasks([True, True], [True, False]), classes=classes)
    table = results_table(only(tmp_path), load_paper())
    # 100.00 and 99.975 percent both read 100.0, 75 does not
    assert {row[0].text for row in table.rows if row[3].is_best} == {"fea", "aca"}


def test_joint_has_dashes_where_it_was_not_evaluated(tmp_path):
    write_grid(tmp_path, {"joint": 0.9, "fea": 0.9})
    row = cells(results_table(only(tmp_path), load_paper()), "joint")
    assert row["accuracy"] != "–"
    assert (row["forgetting"], row["average accuracy"]) == ("–", "–")


def test_only_methods_that_were_run_on_a_benchmark_have_rows(tmp_path):
    write_grid(tmp_path, {"fea": 0.9, "aca": 0.8}, benchmark="one")
    write_grid(tmp_path, {"fea": 0.9}, benchmark="two")
    tables = [results_table(runs, load_paper()) for runs in load_runs(tmp_path)]
    assert [[row[0].text for row in table.rows] for table in tables] == [["fea", "aca"], ["fea"]]


def test_the_papers_values_stand_beside_ours_with_a_caution_about_the_encoder(tmp_path):
    write_grid(tmp_path, {"repcl": 0.9, "repcl@no-adv": 0.8, "sequential": 0.5}, benchmark="hwu64", tasks=10)
    table = results_table(only(tmp_path), load_paper())
    assert cells(table, "repcl")["paper Acc"] == "84.8"
    assert cells(table, "repcl")["paper FR"] == "8.0"
    assert (cells(table, "repcl@no-adv")["paper Acc"], cells(table, "repcl@no-adv")["paper FR"]) == (
        "83.8",
        "–",
    )
    assert cells(table, "sequential")["paper Acc"] == "–"
    assert any("minilm-l6" in note and "bert-base-uncased" in note for note in table.notes)


@pytest.mark.parametrize(
    ("preset", "notes"),
    [
        ("paper", []),
        (
            "cpu",
            [
                "Compare ranks and trends, not numbers, with the paper's: here settings are those of preset "
                "cpu, not of preset paper."
            ],
        ),
    ],
)
def test_there_is_no_caution_with_the_papers_encoder_tasks_and_settings(tmp_path, preset, notes):
    classes = class_names(10, 1)
    examples = invent_predictions(classes, round=0, keeps=0.9)
    same = {"benchmark": "hwu64", "encoder": "bert-base-uncased", "preset": preset}
    write_run(tmp_path, "fea", examples, classes=classes, **same)
    assert results_table(only(tmp_path), load_paper()).notes == notes


def test_other_tasks_and_other_memory_than_the_papers_are_told(tmp_path):
    classes = class_names(2, 1)
    examples = invent_predictions(classes, round=0, keeps=0.9)
    write_run(
        tmp_path,
        "fea",
        examples,
        classes=classes,
        benchmark="hwu64",
        encoder="bert-base-uncased",
        settings={"memory_per_class": 3},
    )
    (note,) = results_table(only(tmp_path), load_paper()).notes
    assert "2 tasks, in the paper 10" in note
    assert "3 exemplars" in note


def test_data_that_the_paper_does_not_have_get_no_paper_column(tmp_path):
    write_grid(tmp_path, {"repcl": 0.9})
    columns = results_table(only(tmp_path), load_paper()).columns
    assert not any("paper" in column.title for column in columns)


def test_rounds_with_different_settings_are_pointed_out(tmp_path):
    classes = [["old"], ["new"]]
    for round, epochs in enumerate((5, 6)):
        examples = two_tasks([True, True])
        write_run(
            tmp_path, "fea", examples, classes=classes, round=round, settings={"initial_epochs": epochs}
        )
    notes = results_table(only(tmp_path), load_paper()).notes
    assert any("different settings" in note and "fea" in note for note in notes)


def test_every_table_of_scores_points_out_rounds_with_different_settings(tmp_path):
    for round, epochs in enumerate((5, 50)):
        tested = two_tasks([True, True])
        settings = {"initial_epochs": epochs}
        write_run(tmp_path, "fea", tested, classes=[["old"], ["new"]], round=round, settings=settings)
    told = "Rounds run with different settings or data: fea. Their mean means little."
    assert told in tasks_table(only(tmp_path)).notes
    assert f"demo: {told}" in overview_table([only(tmp_path)], ["fea"]).notes
    (full,) = find_recipe("full").make_tables([only(tmp_path)], ["fea"], load_paper())
    assert f"demo: {told}" in full.notes


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"encoder": "bert"}, "the encoder is bert in crl, and minilm-l6 in the others"),
        ({"preset": "paper"}, "the preset is paper in crl, and cpu in the others"),
        (
            {"settings": {"memory_per_class": 40}},
            "the number of exemplars per class is 40 in crl, and 10 in the others",
        ),
    ],
)
def test_rows_that_are_not_alike_are_pointed_out(tmp_path, changed, told):
    for row in ("fea", "repcl", "crl", "joint"):
        more = changed if row == "crl" else {}
        write_run(tmp_path, row, two_tasks([True, True]), classes=[["old"], ["new"]], **more)
    notes = results_table(only(tmp_path), load_paper()).notes
    assert f"Not alike: {told}. Compare only rows that are alike." in notes


def test_rows_named_after_the_size_of_their_memory_are_alike(tmp_path):
    for row, kept in (("fea", 10), ("fea@memory-20", 20)):
        settings = {"memory_per_class": kept}
        write_run(tmp_path, row, two_tasks([True, True]), classes=[["old"], ["new"]], settings=settings)
    assert not [note for note in results_table(only(tmp_path), load_paper()).notes if "alike" in note]


def test_rounds_with_different_numbers_of_tasks_are_pointed_out(tmp_path):
    for round, tasks in enumerate((2, 3)):
        classes = class_names(tasks, 1)
        write_run(
            tmp_path, "fea", invent_predictions(classes, round=round, keeps=1), classes=classes, round=round
        )
    notes = results_table(only(tmp_path), load_paper()).notes
    assert "Rounds run with different settings or data: fea. Their mean means little." in notes


def test_equal_rounds_get_a_note_and_no_interval(tmp_path):
    for round in (0, 1):
        write_run(tmp_path, "fea", two_tasks([True, True]), classes=[["old"], ["new"]], round=round)
    table = results_table(only(tmp_path), load_paper())
    assert cells(table, "fea")["95 % interval"] == "–"
    assert any(
        note.startswith("The same accuracy in every round, so no interval: fea.") for note in table.notes
    )


def test_the_best_of_a_track_is_marked(tmp_path):
    write_grid(tmp_path, {"repcl": 0.99, "fea": 0.4, "joint": 0.9})
    table = results_table(only(tmp_path), load_paper())
    assert [row[0].text for row in table.rows for cell in row if cell.is_best] == ["repcl"]


def test_forgotten_classes_show_the_drop_and_the_commonest_mistake(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, False], [True, True]), classes=[["old"], ["new"]])
    table = forgotten_table("demo", only(tmp_path).methods[0])
    assert table is not None
    (row,) = table.rows
    assert [cell.text for cell in row] == ["old", "50.0", "50.0", "1", "new (50\u00a0%)"]


def test_forgotten_classes_are_judged_by_the_rounds_in_which_they_were_not_learned_last(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, False]), classes=[["old"], ["new"]])
    last = [TestedExample("a0", 1, "old", ("old",)), TestedExample("b0", 0, "new", ("new", "new"))]
    write_run(tmp_path, "fea", last, classes=[["new"], ["old"]], round=1)
    table = forgotten_table("demo", only(tmp_path).methods[0])
    assert table is not None
    # lost all in round 0; right in round 1, where it was learned last and could not be forgotten
    assert [cell.text for cell in table.rows[0]] == ["old", "100.0", "0.0", "1", "new (100\u00a0%)"]


def test_without_predictions_no_classes_are_listed(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, False]), classes=[["old"], ["new"]])
    next(tmp_path.rglob("predictions.jsonl.gz")).unlink()
    assert forgotten_table("demo", only(tmp_path).methods[0]) is None
    assert write_report(tmp_path, load_runs(tmp_path)).is_file()
