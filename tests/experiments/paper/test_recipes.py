"""Recipes: the rows of the paper's tables, how users choose among them, and the tables made of runs."""

import pytest

from repcl.benchmarks import BENCHMARKS
from repcl.errors import ResultMismatch, UnknownName
from repcl.experiments.paper.numbers import load_paper
from repcl.experiments.paper.recipes import RECIPES, find_recipe, note_recipe, noted_recipes
from repcl.experiments.reports.grouping import load_runs
from repcl.experiments.reports.write import write_report
from repcl.methods import METHODS
from repcl.methods.variants import split_variant, variant_settings
from tests.experiments.made_up import write_grid

# the recipes whose tables are made of results alone
every_recipe = pytest.mark.parametrize("name", ["main", "full", "ablation", "memory"])


def tables(folder, recipe):
    return RECIPES[recipe].make_tables(load_runs(folder), RECIPES[recipe].methods, load_paper())


def texts(table, row):
    return next([cell.text for cell in line] for line in table.rows if line[0].text == row)


@every_recipe
def test_rows_and_benchmarks_exist(name):
    recipe = RECIPES[name]
    assert recipe.rounds == 5
    assert set(recipe.benchmarks) <= BENCHMARKS.keys()
    assert len(set(recipe.methods)) == len(recipe.methods)
    for row in recipe.methods:
        method, variant = split_variant(row)
        if method in METHODS:
            variant_settings(method, variant)


@every_recipe
def test_every_row_of_a_recipe_is_published_on_its_first_benchmark(name):
    recipe = RECIPES[name]
    assert all(load_paper().published(recipe.benchmarks[0], row) for row in recipe.methods)


@every_recipe
def test_every_method_of_a_recipe_has_a_known_cost(name):
    assert {split_variant(row)[0] for row in RECIPES[name].methods} <= METHODS.keys()


def test_main_has_the_ten_methods_in_the_papers_order():
    assert list(RECIPES["main"].methods) == list(load_paper().main["fewrel"])
    assert RECIPES["full"].methods == RECIPES["main"].methods


def test_memory_of_ten_is_the_plain_method():
    assert RECIPES["memory"].methods[-3:] == ("repcl@memory-5", "repcl", "repcl@memory-20")


def test_choosing_a_method_takes_its_variants_too():
    recipe = RECIPES["memory"]
    assert recipe.choose([]) == recipe.methods
    assert recipe.choose(["fea"]) == ("fea@memory-5", "fea", "fea@memory-20")
    assert recipe.choose(["fea@memory-5"]) == ("fea@memory-5",)


def test_choosing_what_a_recipe_does_not_have_is_an_error():
    with pytest.raises(UnknownName, match="Did you mean 'repcl@no-con'"):
        RECIPES["ablation"].choose(["repcl@nocon"])
    with pytest.raises(UnknownName, match=r"No recipe 'mian'\. Did you mean 'main'"):
        find_recipe("mian")


def test_a_folder_remembers_its_recipes_once_each(tmp_path):
    for name in ("main", "full", "main"):
        note_recipe(tmp_path / "new", RECIPES[name])
    assert [recipe.name for recipe in noted_recipes(tmp_path / "new")] == ["main", "full"]


def test_a_folder_of_plain_runs_has_no_recipes(tmp_path):
    assert noted_recipes(tmp_path) == []


def test_a_damaged_list_of_recipes_is_an_error(tmp_path):
    (tmp_path / "recipes.json").write_text('["mian"]')
    with pytest.raises(ResultMismatch, match=r"recipes\.json"):
        noted_recipes(tmp_path)


def test_main_sets_accuracy_and_forgetting_beside_the_papers_and_dashes_what_was_not_run(tmp_path):
    write_grid(tmp_path, {"repcl": 1.0}, benchmark="hwu64", tasks=10, each=1)
    (table,) = tables(tmp_path, "main")
    titles = [column.title for column in table.columns]
    assert titles == ["method", "hwu64 Acc", "paper", "hwu64 FR", "paper"]
    assert texts(table, "repcl") == ["repcl", "100.0 ± 0.0", "84.8", "0.0 ± 0.0", "8.0"]
    assert texts(table, "idbr") == ["idbr", "–", "76.1", "–", "19.0"]
    assert texts(table, "aca") == ["aca", "–", "–", "–", "–"]
    assert any("76.2" in note for note in table.notes)
    assert any("minilm-l6" in note for note in table.notes)


@every_recipe
def test_data_that_the_paper_does_not_have_get_no_paper_column(tmp_path, name):
    write_grid(tmp_path, {"repcl": 0.9, "fea": 0.8})
    for table in tables(tmp_path, name):
        assert not any("paper" in column.title for column in table.columns)
        assert not any("paper" in row[0].text for row in table.rows)
        assert table.notes == []


def test_full_sets_the_papers_row_below_ours(tmp_path):
    write_grid(tmp_path, {"repcl": 1.0}, benchmark="hwu64", tasks=10, each=1)
    (table,) = tables(tmp_path, "full")
    assert texts(table, "repcl") == ["repcl", *["100.0"] * 10, "0.0 ± 0.0"]
    assert texts(table, "repcl, paper")[1:] == [
        f"{value:.1f}" for value in load_paper().full["hwu64"]["repcl"]
    ]


def test_ablation_has_one_column_for_each_benchmark(tmp_path):
    write_grid(tmp_path, {"repcl": 1.0, "repcl@no-con": 1.0}, benchmark="hwu64", tasks=10, each=1)
    write_grid(tmp_path, {"repcl": 1.0})
    (table,) = tables(tmp_path, "ablation")
    assert [column.title for column in table.columns] == ["method", "hwu64 Acc", "paper", "demo Acc"]
    assert texts(table, "repcl@no-con") == ["repcl@no-con", "100.0 ± 0.0", "84.5", "–"]


def test_memory_has_one_row_for_each_method_and_one_column_for_each_size(tmp_path):
    write_grid(tmp_path, {"repcl": 1.0, "repcl@memory-5": 1.0}, benchmark="fewrel", tasks=10, each=1)
    (table,) = tables(tmp_path, "memory")
    assert [row[0].text for row in table.rows] == ["fea", "aca", "repcl"]
    ours = ["repcl", "100.0 ± 0.0", "83.3", "100.0 ± 0.0", "85.6", "–", "86.4"]
    assert texts(table, "repcl") == ours


def test_memory_on_other_data_of_the_paper_tells_what_the_paper_has_instead(tmp_path):
    write_grid(tmp_path, {"repcl": 1.0}, benchmark="hwu64", tasks=10, each=1)
    (table,) = tables(tmp_path, "memory")
    assert table.notes[-1] == (
        "The paper has this table for fewrel only: fea 81.8, 84.3, 85.0; aca 82.7, 84.7, 85.5; "
        "repcl 83.3, 85.6, 86.4."
    )


def test_the_report_of_a_recipe_begins_with_its_table(tmp_path):
    write_grid(tmp_path, {"repcl": 0.9}, rounds=1)
    note_recipe(tmp_path, RECIPES["ablation"])
    page = write_report(tmp_path, load_runs(tmp_path)).read_text(encoding="utf-8")
    assert page.index('<section id="recipe-ablation">') < page.index('<section id="results">')
    assert (tmp_path / "tables/paper-ablation.tex").is_file()
