"""`repcl analyze` on tiny runs."""

import json

import pytest

from tests.conftest import toy_example
from tests.experiments.made_up import write_grid

CHEAP = ("--preset", "smoke", "--workers", 1, "--device", "cpu", "--max-test-per-class", 110)


@pytest.fixture(scope="module")
def many_texts(tmp_path_factory):
    """Two tasks of two classes with 110 test texts each: enough to estimate on."""
    rows = [
        toy_example("sentence", topic, n)
        for topic in ("fruit", "vehicle", "weather", "place")
        for n in range(8)
    ]
    tests = [
        toy_example("sentence", topic, n)
        for topic in ("fruit", "vehicle", "weather", "place")
        for n in range(110)
    ]
    folder = tmp_path_factory.mktemp("data")
    for name, examples in (("tickets.csv", rows), ("test.csv", tests)):
        lines = [f"{row.text} {n},{row.label}\n" for n, row in enumerate(examples)]
        (folder / name).write_text("text,label\n" + "".join(lines))
    return folder


def bench(repcl, data, encoder, out, *more):
    words = ("bench", "--benchmark", data / "tickets.csv", "--test-file", data / "test.csv", "--tasks", 2)
    output = repcl(*words, "--encoder", encoder, "--out", out, *CHEAP, *more)
    assert output.code == 0, output.err


def test_a_run_is_analyzed_with_tables_a_file_and_figures(repcl, many_texts, encoder_folder, tmp_path):
    bench(repcl, many_texts, encoder_folder, tmp_path, "--method", "fea", "--save-representations")
    folder = tmp_path / "tickets/fea/round-0"
    output = repcl("analyze", folder, "--steps", 50)
    assert output.code == 0, output.err
    for words in (
        "Mutual information, nats",
        "I(Z1;Z1+)",
        "Transfer between tasks",
        "effective rank",
        "Estimated with 1 critic, at most 50 steps",
        "Written: analysis.json and analysis-*.svg, *.png beside each result.",
    ):
        assert words in output.out
    analysis = json.loads((folder / "analysis.json").read_text())
    assert analysis["representations"]["inputs"]["value"] is not None
    assert analysis["representations"]["classes"]["class_ceiling"] == pytest.approx(1.386, abs=1e-3)
    for name in ("fitting-inputs", "fitting-classes", "fitting-same-class", "spectrum", "drift", "probes-5"):
        assert (folder / f"analysis-{name}.svg").is_file()
        assert (folder / f"analysis-{name}.png").is_file()


def test_an_analysis_is_not_made_twice_unless_asked(repcl, many_texts, encoder_folder, tmp_path):
    bench(repcl, many_texts, encoder_folder, tmp_path, "--method", "fea", "--save-representations")
    path = tmp_path / "tickets/fea/round-0/analysis.json"
    repcl("analyze", tmp_path, "--steps", 25)
    first = path.stat().st_mtime_ns
    repcl("analyze", tmp_path, "--steps", 25)
    assert path.stat().st_mtime_ns == first
    repcl("analyze", tmp_path, "--steps", 50)
    assert path.stat().st_mtime_ns > first


def test_a_folder_of_runs_gets_one_line_each(repcl, many_texts, encoder_folder, tmp_path):
    methods = ("--method", "fea", "--method", "joint")
    bench(repcl, many_texts, encoder_folder, tmp_path, *methods, "--save-representations")
    output = repcl("analyze", tmp_path, "--steps", 25, "--workers", 1)
    assert output.code == 0, output.err
    assert "Analysis of all runs" in output.out
    assert "tickets fea" in output.out
    assert "tickets joint" in output.out


def test_what_was_not_saved_is_said_with_what_to_type(repcl, data_file, encoder_folder, tmp_path):
    words = ("bench", "--benchmark", data_file, "--tasks", 2, "--method", "fea", "--encoder", encoder_folder)
    repcl(*words, "--out", tmp_path / "runs", "--preset", "smoke", "--workers", 1, "--device", "cpu")
    output = repcl("analyze", tmp_path / "runs/tickets/fea/round-0")
    assert output.code == 0, output.err
    assert "saved no representations: no mutual information, spectrum, drift or transfer" in output.out
    assert "add --save-representations --fresh to: repcl bench" in output.out
    assert "Classes with the largest drop" in output.out


def test_the_authors_estimate_is_written_to_a_file_of_its_own(repcl, tmp_path):
    write_grid(tmp_path, {"fea": 0.9}, rounds=1)
    output = repcl("analyze", tmp_path, "--authors")
    assert output.code == 0, output.err
    assert [path.name for path in tmp_path.glob("*/*/*/analysis*")] == ["analysis-authors.json"]


def test_figures_that_were_not_drawn_are_not_named(repcl, tmp_path):
    write_grid(tmp_path, {"fea": 0.9}, rounds=1)
    output = repcl("analyze", tmp_path)
    assert "Written: analysis.json beside each result." in output.out


def test_too_few_texts_are_said_instead_of_a_number_once_the_run_is_made_again(
    repcl, data_file, encoder_folder, tmp_path
):
    words = ("bench", "--benchmark", data_file, "--tasks", 2, "--method", "fea", "--encoder", encoder_folder)
    more = ("--preset", "smoke", "--workers", 1, "--device", "cpu", "--out", tmp_path / "runs")
    repcl(*words, *more)
    repcl("analyze", tmp_path / "runs/tickets/fea/round-0")
    repcl(*words, *more, "--save-representations", "--fresh")
    output = repcl("analyze", tmp_path / "runs/tickets/fea/round-0")
    assert output.code == 0, output.err
    assert "too few texts" in output.out


def test_a_folder_without_runs_ends_with_2_and_advice(repcl, tmp_path):
    output = repcl("analyze", tmp_path)
    assert output.code == 2
    assert "No finished run in" in output.err
    assert "--save-representations" in output.err


@pytest.mark.parametrize(("recipe", "methods"), [("bias", ("joint", "fea")), ("representation", ("fea",))])
def test_recipes_about_representations_analyze_their_runs_for_the_report(
    repcl, data_file, encoder_folder, tmp_path, recipe, methods
):
    chosen = [word for method in methods for word in ("--method", method)]
    words = ("reproduce", recipe, "--benchmark", data_file, "--rounds", 1, "--encoder", encoder_folder)
    more = ("--preset", "smoke", "--workers", 1, "--device", "cpu", "--out", tmp_path / "out")
    output = repcl(*words, *chosen, *more)
    assert output.code == 0, output.err
    assert (tmp_path / "out/tickets/fea/round-0/analysis.json").is_file()
    page = (tmp_path / "out/report.html").read_text()
    assert f'id="recipe-{recipe}"' in page
    assert "I(X1;Z1)" in page
    assert "too few texts" in page


@pytest.fixture
def damaged(data_file, encoder_folder, tmp_path, repcl):
    """The words of a recipe about representations that was run, one of its two runs damaged since then."""
    words = ("reproduce", "bias", "--benchmark", data_file, "--rounds", 1, "--encoder", encoder_folder)
    more = ("--preset", "smoke", "--workers", 1, "--device", "cpu", "--out", tmp_path / "out")
    words = (*words, *more, "--method", "joint", "--method", "fea")
    assert repcl(*words).code == 0
    for path in tmp_path.rglob("analysis.json"):
        path.unlink()
    (tmp_path / "out/tickets/joint/round-0/representations/after-0.safetensors").write_bytes(b"[/] nothing")
    return words


def test_an_analysis_that_fails_stops_neither_the_others_nor_the_report(repcl, damaged, tmp_path):
    (tmp_path / "out/report.html").unlink()
    output = repcl(*damaged)
    assert output.code == 2
    assert "Failed: analysis of " in output.out
    assert "after-0.safetensors is damaged" in output.out
    assert (tmp_path / "out/report.html").is_file()
    assert (tmp_path / "out/tickets/fea/round-0/analysis.json").is_file()


def test_analyze_lists_what_it_could_not_analyze(repcl, damaged, tmp_path):
    output = repcl("analyze", tmp_path / "out", "--workers", 1)
    assert output.code == 2
    assert "Analysis of all runs" not in output.out  # one is left, which is shown as a whole
    assert "Transfer between tasks" in output.out
    assert "after-0.safetensors is damaged" in output.out
    assert (tmp_path / "out/tickets/joint/round-0/analysis.error.txt").is_file()
