"""`repcl reproduce` and `repcl report`, in this process with the tiny encoder."""

import json
import re

import pytest

from repcl.cli.reproduce import RECIPE_NAMES
from repcl.experiments import RunStore
from repcl.experiments.paper.recipes import RECIPES

CHEAP = ("--preset", "smoke", "--workers", 1, "--device", "cpu")
ABLATION = ["repcl", "repcl@mlm", "repcl@no-adv", "repcl@no-con", "repcl@no-xmlm"]


def reproduce(repcl, data_file, encoder_folder, out, *more, recipe="ablation"):
    words = ("reproduce", recipe, "--benchmark", data_file, "--encoder", encoder_folder, "--out", out)
    return repcl(*words, "--rounds", 1, *CHEAP, *more)


def test_ablation_runs_all_rows_and_writes_its_table_and_the_report(
    repcl, data_file, encoder_folder, tmp_path
):
    out = tmp_path / "runs"
    output = reproduce(repcl, data_file, encoder_folder, out)
    assert output.code == 0, output.err
    assert output.out.index("5 of 5 runs to make, 1 at a time: about ") < output.out.index("task 1 of")
    assert "estimated" in output.out
    assert sorted(path.name for path in out.joinpath("tickets").iterdir()) == ABLATION
    assert '<section id="recipe-ablation">' in out.joinpath("report.html").read_text(encoding="utf-8")
    assert (
        out.joinpath("tables/paper-ablation.csv")
        .read_text()
        .startswith("method,tickets Acc,tickets Acc sd\n")
    )
    assert [run.has_predictions for run in RunStore(out).runs()] == [True] * 5

    again = reproduce(repcl, data_file, encoder_folder, out)
    assert "All 5 runs are finished already." in again.out
    assert "task 1 of" not in again.out

    out.joinpath("report.html").unlink()
    assert repcl("report", out, "--against", "repcl@mlm").code == 0
    page = out.joinpath("report.html").read_text(encoding="utf-8")
    assert '<section id="recipe-ablation">' in page
    assert "last answers of repcl@mlm against every other" in page

    assert repcl("report", out, "--against", "mlm").code == 2
    path = out / "tickets/repcl/round-0/result.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(stored | {"final_accuracy": 0.123}))
    changed = repcl("report", out)
    assert changed.code == 2
    assert "final_accuracy = 0.123, its predictions give" in changed.err
    assert "Traceback" not in changed.err


def test_methods_restrict_a_recipe_and_one_that_cannot_be_run_is_skipped(
    repcl, data_file, encoder_folder, tmp_path
):
    chosen = ("--method", "fea", "--method", "aca")  # which takes relations only
    output = reproduce(repcl, data_file, encoder_folder, tmp_path, *chosen, recipe="main")
    assert output.code == 0, output.err
    assert "Skipped: " in output.out
    assert re.search(r"│ aca +│ +– │ +– │", output.out)
    assert [path.parent.name for path in tmp_path.rglob("round-0")] == ["fea"]


@pytest.mark.parametrize("recipe", ["main", "full", "ablation", "memory"])
def test_without_any_data_one_sentence_says_how_to_get_them(repcl, tmp_path, recipe):
    output = repcl("reproduce", recipe, "--out", tmp_path / "runs", "--data-dir", tmp_path)
    assert output.code == 2
    assert "repcl data get fewrel" in output.err
    assert "--benchmark" in output.err
    assert not (tmp_path / "runs").exists()


def test_a_benchmark_named_by_the_user_must_be_there(repcl, tmp_path):
    output = repcl(
        "reproduce", "main", "--benchmark", "hwu64", "--out", tmp_path / "runs", "--data-dir", tmp_path
    )
    assert output.code == 2
    assert "repcl data get hwu64" in output.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("mian",), "No recipe 'mian'. Did you mean 'main'?"),
        (("ablation", "--method", "fea"), "No row of recipe ablation 'fea'."),
        (("ablation", "--benchmark", "dmo"), "No benchmark 'dmo'. Did you mean 'demo'?"),
        (("ablation", "--benchmark", "demo", "--preset", "cpuu"), "Did you mean 'cpu'?"),
        (
            ("ablation", "--benchmark", "demo", "--ray", "127.0.0.1:1"),
            "No Ray cluster answers at 127.0.0.1:1",
        ),
    ],
)
def test_bad_words_get_one_sentence(repcl, tmp_path, words, sentence):
    output = repcl("reproduce", *words, "--out", tmp_path / "runs")
    assert output.code == 2
    assert sentence in output.err
    assert not (tmp_path / "runs").exists()


def test_the_help_names_every_recipe():
    named = RECIPE_NAMES.removesuffix(".").replace(" or ", ", ").split(", ")
    assert set(named) == set(RECIPES)


def test_all_recipes_end_with_whole_reports(repcl, data_file, encoder_folder, tmp_path):
    for recipe in RECIPES:  # in one folder, where a run that several of them need is made once
        output = reproduce(
            repcl, data_file, encoder_folder, tmp_path, "--save-representations", recipe=recipe
        )
        assert output.code == 0, output.err
    page = tmp_path.joinpath("report.html").read_text(encoding="utf-8")
    assert [name for name in RECIPES if f'<section id="recipe-{name}">' not in page] == []
    made = {run.result.row for run in RunStore(tmp_path).runs()}
    wanted = {row for recipe in RECIPES.values() for row in recipe.methods}
    assert wanted - made == {"aca", "aca@memory-5", "aca@memory-20"}  # which take relations only
    tables = {path.stem for path in tmp_path.joinpath("tables").iterdir()}
    expected = {
        *("paper-main", "paper-ablation", "paper-full-tickets", "paper-memory-tickets"),
        *("paper-bias-tickets", "paper-representation-tickets"),
        *(f"paper-{name}-verdicts" for name in ("main", "full", "ablation", "memory", "representation")),
    }
    assert expected - tables == set()
