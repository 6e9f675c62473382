"""The figures of scores: which methods have colors, and that none is dropped without a word."""

from collections import Counter
from xml.etree import ElementTree

from repcl.experiments.reports.figures import (
    MOST_HIGHLIGHTED,
    draw_confusions,
    draw_costs,
    draw_curves,
    method_styles,
)
from repcl.experiments.reports.grouping import TRACKS, row_names
from repcl.experiments.reports.provenance import total_seconds
from tests.experiments.made_up import only, two_tasks, write_run

SVG = "{http://www.w3.org/2000/svg}"
MANY = ("sequential", "idbr", "kcn", "kdrk", "emar", "rp_cre", "crl", "crecl", "fea", "aca")


def write_ranked(out, rows):
    """Each row keeps one text more than the row before, of as many texts as there are rows."""
    for kept, row in enumerate(rows, start=1):
        right = [[True, number < kept] for number in range(len(rows))]
        write_run(out, row, two_tasks(*right), classes=[["old"], ["new"]])
    return only(out)


def texts_of(drawing) -> list[str]:
    return [text.text for text in ElementTree.fromstring(drawing.svg).iter(f"{SVG}text")]


def titles_of(drawing) -> list[str]:
    page = ElementTree.fromstring(drawing.svg)
    return [
        group.findtext(f"{SVG}title")
        for group in page.iter(f"{SVG}g")
        if group.find(f"{SVG}title") is not None
    ]


def test_the_eight_methods_that_end_best_are_highlighted(tmp_path):
    runs = write_ranked(tmp_path, MANY)
    assert list(method_styles(runs, row_names([runs]))) == list(MANY[2:])
    assert MOST_HIGHLIGHTED == 8


def test_few_methods_are_all_highlighted_in_different_colors(tmp_path):
    runs = write_ranked(tmp_path, MANY[:8])
    styles = method_styles(runs, row_names([runs]))
    assert len({style["color"] for style in styles.values()}) == 8


def test_every_curve_is_named_where_it_is_pointed_at_and_gray_ones_are_explained(tmp_path):
    runs = write_ranked(tmp_path, MANY)
    drawing = draw_curves(runs, method_styles(runs, row_names([runs])))
    assert set(titles_of(drawing)) == set(MANY)
    assert "The 8 that end best have colors; point at a gray one for its name" in drawing.description
    legend = {text.text for text in ElementTree.fromstring(drawing.svg).iter(f"{SVG}text")}
    assert not {"sequential", "idbr"} & legend


def test_the_panel_of_the_best_says_what_it_shows_and_what_it_leaves_out(tmp_path):
    classes = [["old"], ["new"]]
    for row, right in (("sequential", False), ("fea", True), ("aca", True)):
        write_run(tmp_path, row, two_tasks([True, right]), classes=classes)
    runs = only(tmp_path)
    drawing = draw_curves(runs, method_styles(runs, row_names([runs])))
    assert "Those within 15 points of the best" in drawing.svg
    assert drawing.description.endswith("The lower panel leaves out sequential")
    assert titles_of(drawing) == ["sequential", "fea", "aca", "fea", "aca"]


def test_a_hostile_name_stays_text_where_it_is_pointed_at(tmp_path):
    write_run(tmp_path, "a<script>&", two_tasks([True, True]), classes=[["old"], ["new"]])
    runs = only(tmp_path)
    assert titles_of(draw_curves(runs, method_styles(runs, ["a<script>&"]))) == ["a<script>&"]


def test_accuracy_against_time_has_both_axes_named_and_a_dot_for_each_method(tmp_path):
    runs = write_ranked(tmp_path, MANY)
    drawing = draw_costs(runs, *total_seconds(runs))
    assert sorted(titles_of(drawing)) == sorted(MANY)
    assert "wall time of one run, seconds" in drawing.svg
    assert "final accuracy, percent" in drawing.svg


def test_in_accuracy_against_time_the_name_of_each_method_is_written_once(tmp_path):
    runs = write_ranked(tmp_path, MANY)
    written = texts_of(draw_costs(runs, *total_seconds(runs)))
    assert sorted(text for text in written if text in MANY) == sorted(MANY)


def test_a_name_without_room_beside_its_dot_is_left_to_pointing(tmp_path):
    rows = [f"fea@{number}" for number in range(12)]
    for row in rows:  # all dots on one place: eight names fit around it
        write_run(tmp_path, row, two_tasks([True, True]), classes=[["old"], ["new"]])
    runs = only(tmp_path)
    drawing = draw_costs(runs, *total_seconds(runs))
    assert 1 <= len([text for text in texts_of(drawing) if text in rows]) <= 8
    assert sorted(titles_of(drawing)) == sorted(rows)
    assert drawing.description.endswith("Point at a dot without a name to see it")


def test_the_legend_of_accuracy_against_time_names_the_tracks_that_occur(tmp_path):
    runs = write_ranked(tmp_path, ["fea", "joint"])
    legend = set(texts_of(draw_costs(runs, *total_seconds(runs)))) & set(TRACKS.values())
    assert legend == {TRACKS["strict"], TRACKS["all data"]}


def test_a_class_without_test_texts_of_its_own_can_be_confused_with_another():
    guesses = {"a<b": Counter({"a<b": 1, "c": 3})}
    drawing = draw_confusions("demo", "fea", ["a<b", "c"], guesses)
    shown = texts_of(drawing)
    assert {"a<b", "c", "25", "75"} <= set(shown)
