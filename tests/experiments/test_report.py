"""The report: one page with every section, its numbers and files, and nothing that a hostile name breaks."""

import csv
import shutil
from collections import Counter
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from scipy import stats

from repcl.errors import MissingData, ResultMismatch
from repcl.evaluation import TestedExample
from repcl.experiments import RunStore
from repcl.experiments.paper import load_paper
from repcl.experiments.report import write_report
from repcl.experiments.reporting.classes import forgotten_table
from repcl.experiments.reporting.formats import to_csv, to_latex, to_markdown
from repcl.experiments.reporting.runs import BenchmarkRuns, load_runs
from repcl.experiments.reporting.scores import results_table
from repcl.experiments.reporting.settings import settings_table
from repcl.experiments.reporting.significance import choose_reference, significance_table
from repcl.experiments.reporting.table import Cell, Column, Table, duration, file_name, word
from tests.experiments.made_up import class_names, invent_predictions, write_grid, write_run

SECTIONS = ["results", "significance", "curves", "matrices", "classes", "costs", "settings"]
HOSTILE = ["<script>alert(1)</script>", "a&b_%$x^2", "=1+1|pipe*star*"]


def two_tasks(*right: list[bool]) -> list[TestedExample]:
    """Two tasks of one class; for each text of the first task whether it was right after both tasks."""
    first = [
        TestedExample(f"a{n}", 0, "old", tuple("old" if one else "new" for one in texts))
        for n, texts in enumerate(right)
    ]
    return [*first, *(TestedExample(f"b{n}", 1, "new", ("new",)) for n in range(len(right)))]


def only(folder: Path) -> BenchmarkRuns:
    (runs,) = load_runs(folder)
    return runs


def cells(table: Table, row: str) -> dict[str, str]:
    (found,) = (line for line in table.rows if line[0].text == row)
    return {column.title: cell.text for column, cell in zip(table.columns, found, strict=True)}


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """A page about two benchmarks, one of them with names chosen to do harm."""
    out = tmp_path_factory.mktemp("report")
    write_grid(out, {"repcl": 0.9, "fea": 0.7, "joint": 0.95}, benchmark="hwu64", rounds=3)
    classes = [HOSTILE[:1], HOSTILE[1:]]
    for row in ("repcl", "fea"):
        examples = invent_predictions(classes, round=1, keeps=0.3)
        write_run(out, row, examples, classes=classes, benchmark="my <b>data & $x_1$", capped=True)
    write_report(out)
    return out


def test_the_page_is_well_formed_and_has_every_section(report):
    page = ElementTree.fromstring(report.joinpath("report.html").read_text(encoding="utf-8"))
    assert [section.get("id") for section in page.iter("section")] == SECTIONS
    assert [link.get("href") for link in page.find(".//nav").iter("a")] == [f"#{name}" for name in SECTIONS]


def test_no_id_stands_twice_on_the_page(report):
    page = ElementTree.fromstring(report.joinpath("report.html").read_text(encoding="utf-8"))
    ids = Counter(found for element in page.iter() if (found := element.get("id")))
    assert ids.most_common(1)[0][1] == 1


def test_parts_of_figures_refer_to_parts_of_the_same_page(report):
    page = ElementTree.fromstring(report.joinpath("report.html").read_text(encoding="utf-8"))
    ids = {element.get("id") for element in page.iter()}
    targets = [
        value[1:]
        for element in page.iter()
        for name, value in element.items()
        if name.endswith("href") and value.startswith("#")
    ]
    assert len(targets) > len(SECTIONS)
    assert set(targets) <= ids
    assert not any("%" in target for target in targets)  # which a browser would decode


def test_the_page_loads_nothing_from_outside_and_runs_no_script(report):
    text = report.joinpath("report.html").read_text(encoding="utf-8")
    page = ElementTree.fromstring(text)
    assert not {"script", "link", "img", "iframe"} & {element.tag for element in page.iter()}
    addresses = [value for element in page.iter() for name, value in element.items() if name.endswith("href")]
    assert all(address.startswith(("#", "tables/", "figures/")) for address in addresses)
    assert "default-src 'none'" in text
    assert "@import" not in text
    assert "url(http" not in text


def test_links_lead_to_files(report):
    page = ElementTree.fromstring(report.joinpath("report.html").read_text(encoding="utf-8"))
    links = [link.get("href", "") for link in page.iter("a")]
    files = [unquote(link) for link in links if not link.startswith("#")]
    assert len(files) > 50
    assert all((report / file).is_file() for file in files)


def test_hostile_names_stay_text(report):
    text = report.joinpath("report.html").read_text(encoding="utf-8")
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "my <b>" not in text


def test_hostile_names_cannot_leave_the_folder():
    assert file_name("../../etc/passwd-results") == "..%2f..%2fetc%2fpasswd-results"
    assert file_name("a b") != file_name("a-b") != file_name("a%20b")


def test_figures_are_written_as_svg_and_png(report):
    figures = {path.name for path in report.joinpath("figures").iterdir()}
    assert {"hwu64-curves.svg", "hwu64-curves.png", "hwu64-repcl-matrix.svg"} <= figures
    for path in report.joinpath("figures").glob("*.svg"):
        ElementTree.fromstring(path.read_text(encoding="utf-8"))
        assert "data:image" not in path.read_text(encoding="utf-8")


def test_the_same_results_give_the_same_report(report, tmp_path):
    again = tmp_path / "again"
    shutil.copytree(report, again)
    write_report(again)
    files = [path.relative_to(report) for path in report.rglob("*") if path.is_file()]
    assert all(report.joinpath(file).read_bytes() == again.joinpath(file).read_bytes() for file in files)


def test_tables_and_figures_that_a_report_no_longer_has_are_deleted_and_own_files_stay(tmp_path):
    write_grid(tmp_path, {"fea": 0.9}, benchmark="demo")
    write_grid(tmp_path, {"fea": 0.9}, benchmark="my <b>data")
    write_report(tmp_path)
    own = tmp_path / "tables/thesis.tex"
    own.write_text("mine")
    shutil.rmtree(tmp_path / "my <b>data")
    write_report(tmp_path)
    files = [path.name for part in ("tables", "figures") for path in (tmp_path / part).iterdir()]
    assert [name for name in files if name.startswith("my")] == []
    assert "demo-results.csv" in files
    assert own.is_file()


def test_a_folder_without_results_is_an_error(tmp_path):
    with pytest.raises(MissingData, match="No finished run"):
        write_report(tmp_path)


# ---- the numbers ------------------------------------------------------------------------------------


def test_results_are_mean_deviation_and_interval_over_rounds(tmp_path):
    classes = [["old"], ["new"]]
    write_run(tmp_path, "fea", two_tasks([True, True], [True, True]), classes=classes, round=0)
    write_run(tmp_path, "fea", two_tasks([True, True], [True, False]), classes=classes, round=1)
    row = cells(results_table(only(tmp_path), ["fea"], load_paper()), "fea")
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
    row = cells(results_table(only(tmp_path), ["fea"], load_paper()), "fea")
    assert (row["accuracy"], row["95 % interval"]) == ("100.0", "–")


def test_incomplete_and_capped_data_are_marked_and_explained(tmp_path):
    write_run(
        tmp_path, "fea", two_tasks([True, True]), classes=[["old"], ["new"]], complete=False, capped=True
    )
    table = results_table(only(tmp_path), ["fea"], load_paper())
    assert cells(table, "fea")["accuracy"] == "100.0†‡"
    assert [note[0] for note in table.notes] == ["†", "‡"]


def test_tracks_are_strict_statistics_and_all_data_with_the_bytes(tmp_path):
    classes = [["old"], ["new"]]
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=classes)
    write_run(tmp_path, "instant", two_tasks([True, True]), classes=classes, statistics_bytes=2_500_000)
    write_run(tmp_path, "joint", two_tasks([True, True]), classes=classes)
    table = results_table(only(tmp_path), ["fea", "instant", "joint"], load_paper())
    tracks = [[(row[0].text, row[1].text) for row in group] for group in table.groups]
    assert tracks == [[("fea", "strict")], [("instant", "statistics, 2.5 MB")], [("joint", "all data")]]


def test_joint_has_dashes_where_it_was_not_evaluated(tmp_path):
    write_grid(tmp_path, {"joint": 0.9, "fea": 0.9})
    row = cells(results_table(only(tmp_path), ["joint", "fea"], load_paper()), "joint")
    assert row["accuracy"] != "–"
    assert (row["forgetting"], row["average accuracy"]) == ("–", "–")


def test_a_method_that_was_skipped_has_dashes_only(tmp_path):
    write_grid(tmp_path, {"fea": 0.9})
    row = cells(results_table(only(tmp_path), ["fea", "aca"], load_paper()), "aca")
    assert set(row.values()) == {"aca", "–"}


def test_the_papers_values_stand_beside_ours_with_a_caution_about_the_encoder(tmp_path):
    write_grid(tmp_path, {"repcl": 0.9, "repcl@no-adv": 0.8, "sequential": 0.5}, benchmark="hwu64", tasks=10)
    table = results_table(only(tmp_path), ["repcl", "repcl@no-adv", "sequential"], load_paper())
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
    assert results_table(only(tmp_path), ["fea"], load_paper()).notes == notes


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
    (note,) = results_table(only(tmp_path), ["fea"], load_paper()).notes
    assert "2 tasks, in the paper 10" in note
    assert "3 exemplars" in note


def test_data_that_the_paper_does_not_have_get_no_paper_column(tmp_path):
    write_grid(tmp_path, {"repcl": 0.9})
    columns = results_table(only(tmp_path), ["repcl"], load_paper()).columns
    assert not any("paper" in column.title for column in columns)


def test_rounds_with_different_settings_are_pointed_out(tmp_path):
    classes = [["old"], ["new"]]
    for round, epochs in enumerate((5, 6)):
        examples = two_tasks([True, True])
        write_run(
            tmp_path, "fea", examples, classes=classes, round=round, settings={"initial_epochs": epochs}
        )
    notes = results_table(only(tmp_path), ["fea"], load_paper()).notes
    assert any("different settings" in note and "fea" in note for note in notes)


def test_rounds_with_different_numbers_of_tasks_are_pointed_out(tmp_path):
    for round, tasks in enumerate((2, 3)):
        classes = class_names(tasks, 1)
        write_run(
            tmp_path, "fea", invent_predictions(classes, round=round, keeps=1), classes=classes, round=round
        )
    notes = results_table(only(tmp_path), ["fea"], load_paper()).notes
    assert "Rounds run with different settings or data: fea. Their mean means little." in notes


def test_equal_rounds_get_a_note_and_no_interval(tmp_path):
    for round in (0, 1):
        write_run(tmp_path, "fea", two_tasks([True, True]), classes=[["old"], ["new"]], round=round)
    table = results_table(only(tmp_path), ["fea"], load_paper())
    assert cells(table, "fea")["95 % interval"] == "–"
    assert any(note.startswith("The same accuracy in every round: fea.") for note in table.notes)


def test_the_best_of_a_track_is_marked(tmp_path):
    write_grid(tmp_path, {"repcl": 0.99, "fea": 0.4, "joint": 0.9})
    table = results_table(only(tmp_path), [], load_paper())
    assert [row[0].text for row in table.rows for cell in row if cell.is_best] == ["repcl"]


# ---- tests between methods --------------------------------------------------------------------------


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
    runs = only(tmp_path)
    table = significance_table(runs)
    assert table is not None
    assert cells(table, "fea")["at 5 %"] == "no test"


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


# ---- classes and settings ---------------------------------------------------------------------------


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
    next(tmp_path.rglob("predictions.jsonl")).unlink()
    assert forgotten_table("demo", only(tmp_path).methods[0]) is None
    assert write_report(tmp_path).is_file()


def test_settings_are_shown_where_methods_or_defaults_differ(tmp_path):
    examples = two_tasks([True, True])
    write_run(tmp_path, "fea", examples, classes=[["old"], ["new"]], settings={"batch_size": 8})
    write_run(tmp_path, "sequential", examples, classes=[["old"], ["new"]], settings={"batch_size": 8})
    shown = settings_table(only(tmp_path))
    assert [row[0].text for row in shown.rows] == ["batch_size"]
    everything = settings_table(only(tmp_path), everything=True)
    assert cells(everything, "memory_per_class") == {
        "setting": "memory_per_class",
        "sequential": "–",
        "fea": "10",
    }


# ---- formats ----------------------------------------------------------------------------------------


def nasty() -> Table:
    rows = [[word("a_b & 5 % <x> {y} \\z|"), Cell("1.0 ± 0.5", (1.0, 0.5), is_best=True)]]
    more = [[word("=SUM(A1)"), Cell("–", (None, None))]]
    columns = [Column("class", is_text=True), Column("accuracy", ("accuracy", "accuracy sd"))]
    return Table("nasty", "50 % of a_b & c", columns, [rows, more], ["100 % sure"])


def test_latex_escapes_and_uses_booktabs():
    text = to_latex(nasty())
    assert r"a\_b \& 5 \% \textless{}x\textgreater{} \{y\} \textbackslash{}z\textbar{}" in text
    assert r"\textbf{1.0 $\pm$ 0.5} \\" in text
    assert r"\caption{50 \% of a\_b \& c. 100 \% sure}" in text
    assert text.count(r"\midrule") == 2
    assert [text.count(rule) for rule in (r"\toprule", r"\bottomrule", r"\begin{tabular}{lr}")] == [1, 1, 1]


def test_markdown_escapes_and_keeps_one_line_a_row():
    lines = to_markdown(nasty()).splitlines()
    assert r"| a_b &amp; 5 % &lt;x&gt; {y} \\z\| | **1.0 ± 0.5** |" in lines
    assert "| --- | ---: |" in lines
    assert lines[-1] == "100 % sure"


def test_csv_holds_bare_numbers_and_no_formulas():
    rows = list(csv.reader(to_csv(nasty()).splitlines()))
    assert rows[0] == ["class", "accuracy", "accuracy sd"]
    assert rows[1][1:] == ["1", "0.5"]
    assert rows[2] == ["'=SUM(A1)", "", ""]


def test_durations_have_the_unit_that_people_use():
    assert [duration(s) for s in (0.25, 42, 119, 150, 7200)] == ["0.2 s", "42 s", "119 s", "2.5 min", "2.0 h"]


# ---- stored metrics ---------------------------------------------------------------------------------


def test_stored_metrics_are_those_of_the_stored_predictions(report):
    verified = RunStore(report).verify()
    assert verified.checked == len(list(report.rglob("result.json"))) == 11
    assert verified.without_predictions == 0


def test_a_changed_metric_is_found(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=[["old"], ["new"]])
    path = next(tmp_path.rglob("result.json"))
    path.write_text(path.read_text().replace('"final_accuracy": 1.0', '"final_accuracy": 0.9'))
    with pytest.raises(ResultMismatch, match=r"final_accuracy = 0\.9, its predictions give 1\.0"):
        RunStore(tmp_path).verify()


def test_lost_predictions_are_found(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True], [True, True]), classes=[["old"], ["new"]])
    path = next(tmp_path.rglob("predictions.jsonl"))
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(ResultMismatch, match="number of test examples = 4, its predictions give 3"):
        RunStore(tmp_path).verify()


def test_results_without_predictions_are_counted_not_refused(tmp_path):
    write_run(tmp_path, "fea", two_tasks([True, True]), classes=[["old"], ["new"]])
    next(tmp_path.rglob("predictions.jsonl")).unlink()
    assert RunStore(tmp_path).verify().without_predictions == 1


# ---- in a browser -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_browser_shows_every_section_without_a_console_error(report):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    messages: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(report.joinpath("report.html").as_uri())
        for name in SECTIONS:
            section = page.locator(f"section#{name}")
            section.scroll_into_view_if_needed()
            assert section.is_visible()
            assert section.bounding_box()["height"] > 100
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        browser.close()
    assert messages == []
