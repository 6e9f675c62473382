"""The report: one page with every section and its files, and nothing that a hostile name breaks."""

import base64
import hashlib
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from repcl.errors import MissingData, UnknownName
from repcl.experiments.reports.grouping import load_runs
from repcl.experiments.reports.write import write_report
from repcl.experiments.runs.wrong_texts import WrongText
from tests.experiments.made_up import (
    invent_predictions,
    write_grid,
    write_run,
)

SECTIONS = [
    "results",
    "significance",
    "curves",
    "matrices",
    "classes",
    "confusions",
    "every-class",
    "costs",
    "settings",
]
HOSTILE = ["<script>alert(1)</script>", "a&b_%$x^2", "=1+1|pipe*star*"]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """A page about two benchmarks, one of them with names chosen to do harm."""
    out = tmp_path_factory.mktemp("report")
    write_grid(out, {"repcl": 0.9, "fea": 0.7, "joint": 0.95}, benchmark="hwu64", rounds=3)
    classes = [HOSTILE[:1], HOSTILE[1:]]
    for row in ("repcl", "fea"):
        examples = invent_predictions(classes, round=1, keeps=0.3)
        wrong = [WrongText("<script>steal()</script>", 1, HOSTILE[1], HOSTILE[0])]
        write_run(
            out, row, examples, classes=classes, benchmark="my <b>data & $x_1$", capped=True, wrong=wrong
        )
    write_report(out, load_runs(out))
    return out


def test_the_page_is_well_formed_and_has_every_section(report):
    page = ElementTree.fromstring(report.joinpath("report.html").read_text(encoding="utf-8"))
    assert [section.get("id") for section in page.iter("section")] == SECTIONS
    assert [link.get("href") for link in page.find(".//nav").iter("a")] == [f"#{name}" for name in SECTIONS]


def test_verdict_command_and_duration_stand_above_everything_else(report):
    page = ElementTree.fromstring(report.joinpath("report.html").read_text(encoding="utf-8"))
    header = page.find(".//header")
    assert [verdict.text[:9] for verdict in header.iterfind("p[@class='verdict']")] == [
        "On hwu64,",
        "On my <b>",
    ]
    text = "".join(header.itertext())
    assert "All runs together took" in text
    assert "repcl bench --benchmark hwu64 --method fea" in text


def test_explanations_are_folded(report):
    page = ElementTree.fromstring(report.joinpath("report.html").read_text(encoding="utf-8"))
    folded = [found.findtext("summary") for found in page.iter("details")]
    assert folded.count("How to read this") == 6
    assert not page.findall(".//section[@id='results']/p")


def test_the_upper_bound_has_a_sentence_instead_of_a_matrix(report):
    page = ElementTree.fromstring(report.joinpath("report.html").read_text(encoding="utf-8"))
    told = [found.text for found in page.iterfind(".//section[@id='matrices']/p")]
    assert told == ["Tested after the last task only, so without a matrix: joint."]
    assert not report.joinpath("figures/hwu64-joint-matrix.svg").exists()


def test_rounds_and_texts_are_tested(report):
    page = ElementTree.fromstring(report.joinpath("report.html").read_text(encoding="utf-8"))
    section = page.find(".//section[@id='significance']")
    # three of hwu64: final accuracy, average accuracy, texts; the other benchmark has one round
    assert len(section.findall(".//table")) == 4


def test_a_single_method_has_a_sentence_instead_of_a_table_of_tests(tmp_path):
    write_grid(tmp_path, {"fea": 0.7}, rounds=2)
    write_report(tmp_path, load_runs(tmp_path))
    page = ElementTree.fromstring(tmp_path.joinpath("report.html").read_text(encoding="utf-8"))
    section = page.find(".//section[@id='significance']")
    assert "There is no second method to compare with." in "".join(section.itertext())


def test_one_round_without_predictions_has_a_sentence_about_what_a_test_needs(tmp_path):
    write_grid(tmp_path, {"repcl": 0.9, "fea": 0.7}, rounds=1)
    for path in tmp_path.rglob("predictions*"):
        path.unlink()
    write_report(tmp_path, load_runs(tmp_path))
    page = ElementTree.fromstring(tmp_path.joinpath("report.html").read_text(encoding="utf-8"))
    section = page.find(".//section[@id='significance']")
    assert "A test needs two rounds" in "".join(section.itertext())


def test_letters_of_figures_stay_readable_on_a_phone(report):
    page = ElementTree.fromstring(report.joinpath("report.html").read_text(encoding="utf-8"))
    figures = page.findall(".//div[@class='drawing']/{http://www.w3.org/2000/svg}svg")
    assert len(figures) > 5
    for figure in figures:
        points = float(figure.get("viewBox").split()[2])
        narrowest = float(re.search(r"min-width: ([0-9]+)pt", figure.get("style"))[1])
        letters = ElementTree.tostring(figure, encoding="unicode")
        sizes = [float(size) for size in re.findall(r"font(?:-size)?: (?:[a-z]+ )*([0-9.]+)px", letters)]
        assert min(sizes) * narrowest / points * 96 / 72 >= 11  # pixels


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


def test_the_page_loads_nothing_from_outside_and_runs_no_script_but_its_own(report):
    text = report.joinpath("report.html").read_text(encoding="utf-8")
    page = ElementTree.fromstring(text)
    assert not {"link", "img", "iframe"} & {element.tag for element in page.iter()}
    (script,) = page.iter("script")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'\"" in text
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
    assert text.count("<script>") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "my <b>" not in text
    assert "&lt;script&gt;steal()&lt;/script&gt;" in text


def test_figures_are_written_as_svg_and_png(report):
    figures = {path.name for path in report.joinpath("figures").iterdir()}
    assert {"hwu64-curves.svg", "hwu64-curves.png", "hwu64-repcl-matrix.svg"} <= figures
    for path in report.joinpath("figures").glob("*.svg"):
        ElementTree.fromstring(path.read_text(encoding="utf-8"))
        assert "data:image" not in path.read_text(encoding="utf-8")


def test_the_same_results_give_the_same_report(report, tmp_path):
    again = tmp_path / "again"
    shutil.copytree(report, again)
    write_report(again, load_runs(again))
    files = [path.relative_to(report) for path in report.rglob("*") if path.is_file()]
    assert all(report.joinpath(file).read_bytes() == again.joinpath(file).read_bytes() for file in files)


def test_tables_and_figures_that_a_report_no_longer_has_are_deleted_and_own_files_stay(tmp_path):
    write_grid(tmp_path, {"fea": 0.9}, benchmark="demo")
    write_grid(tmp_path, {"fea": 0.9}, benchmark="my <b>data")
    write_report(tmp_path, load_runs(tmp_path))
    own = tmp_path / "tables/thesis.tex"
    own.write_text("mine")
    shutil.rmtree(tmp_path / "my <b>data")
    write_report(tmp_path, load_runs(tmp_path))
    files = [path.name for part in ("tables", "figures") for path in (tmp_path / part).iterdir()]
    assert [name for name in files if name.startswith("my")] == []
    assert "demo-results.csv" in files
    assert own.is_file()


def test_long_names_may_be_broken_behind_an_underscore(report):
    assert "a&amp;b_<wbr/>%$x^2" in report.joinpath("report.html").read_text(encoding="utf-8")


def test_matplotlib_is_not_loaded_before_a_figure_is_drawn():
    code = "import sys, repcl.experiments.reports.write; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_testing_against_a_method_that_was_not_run_is_an_error(tmp_path):
    write_grid(tmp_path, {"repcl": 0.9, "fea": 0.7}, rounds=1)
    with pytest.raises(UnknownName, match=r"No method in this folder 'fae'\. Did you mean 'fea'"):
        write_report(tmp_path, load_runs(tmp_path), against="fae")


def test_an_option_is_never_broken_behind_its_hyphens(report):
    page = ElementTree.parse(report / "report.html").getroot()
    options = {span.text for span in page.iter("span") if span.get("class") == "option"}
    assert "--method" in options
    assert all(option.startswith("--") for option in options)


def test_a_folder_without_results_is_an_error(tmp_path):
    with pytest.raises(MissingData, match="No finished run"):
        write_report(tmp_path, load_runs(tmp_path))


@pytest.fixture
def phone(report):
    """The page in a browser on a phone; whatever its console says fails the test."""
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
        yield page
        browser.close()
    assert messages == []


@pytest.mark.slow
def test_a_browser_shows_every_section_without_a_console_error(phone):
    for name in SECTIONS:
        section = phone.locator(f"section#{name}")
        section.scroll_into_view_if_needed()
        assert section.is_visible()
        assert section.bounding_box()["height"] > 100
    assert phone.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.slow
def test_the_first_table_fits_a_phone_and_says_what_it_leaves_out(phone):
    table = phone.locator("#results table").first
    assert table.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")
    assert phone.locator("#results .narrow").first.inner_text() == (
        "A wider screen shows track, 95 % interval, average accuracy, paper Acc, paper FR."
    )


@pytest.mark.slow
def test_a_table_of_classes_is_sorted_from_the_keyboard(phone):
    table = phone.locator("#every-class table[data-sortable]").first
    names = table.locator("tbody th")
    first = table.locator("thead button").first
    first.focus()
    phone.keyboard.press("Enter")
    rising = names.all_inner_texts()
    assert rising == sorted(rising, key=str.lower)
    assert table.locator("thead th").first.get_attribute("aria-sort") == "ascending"
    phone.keyboard.press("Enter")
    assert names.all_inner_texts() == rising[::-1]


def test_many_matrices_are_folded_but_the_best_six(tmp_path):
    names = ("repcl", "fea", "emar", "rp_cre", "crl", "crecl", "kcn", "kdrk")
    write_grid(tmp_path, {name: 0.9 - 0.1 * index for index, name in enumerate(names)}, rounds=1, each=10)
    page = ElementTree.parse(write_report(tmp_path, load_runs(tmp_path))).getroot()
    section = page.find(".//section[@id='matrices']")
    shown, folded = section.find("div[@class='grid']"), section.find("details/div[@class='grid']")
    assert [len(part.findall("figure")) for part in (shown, folded)] == [6, 2]
    assert "repcl on demo" in "".join(shown.itertext())


def test_files_of_an_earlier_page_go_even_if_the_first_try_to_write_the_next_one_breaks(
    tmp_path, monkeypatch
):
    write_grid(tmp_path, {"repcl": 0.9, "emar": 0.7}, rounds=1)
    write_report(tmp_path, load_runs(tmp_path))
    shutil.rmtree(tmp_path / "demo/emar")
    remove, removed = Path.unlink, []

    def remove_one(path, **options):
        if removed:
            raise OSError("the machine stops")
        removed.append(path)
        remove(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", remove_one)
        with pytest.raises(OSError, match="stops"):
            write_report(tmp_path, load_runs(tmp_path))
    write_report(tmp_path, load_runs(tmp_path))
    assert [path for path in tmp_path.rglob("*emar*") if path.is_file()] == []
