"""The paper's tables of mutual information, made of invented analyses."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from repcl.analysis.drift import Movement
from repcl.analysis.estimator_settings import AUTHORS, EstimatorSettings
from repcl.analysis.mutual_information import MutualInformation
from repcl.analysis.spectrum import Spectrum
from repcl.errors import ResultMismatch
from repcl.experiments.paper.information import analyzed_rows, first_task_table
from repcl.experiments.paper.numbers import load_paper
from repcl.experiments.paper.recipes import RECIPES
from repcl.experiments.paper.verdicts import verdict_table
from repcl.experiments.reports.analysis_tables import analyses_table, run_tables
from repcl.experiments.reports.figures import draw_fitting, draw_probes, draw_spectra, run_drawings
from repcl.experiments.reports.grouping import load_runs
from repcl.experiments.representations.analysis import (
    AUTHORS_ANALYSIS,
    Representations,
    RunAnalysis,
    estimator_of,
    read_analysis,
)
from repcl.experiments.runs.store import ANALYSIS
from repcl.presets import load_preset
from tests.experiments.made_up import invent_predictions, write_run

CLASSES = [["a", "b"], ["c", "d"]]


def estimated(value: float | None, ceiling: float = 1.39) -> MutualInformation:
    if value is None:
        return MutualInformation(
            None, None, None, None, 44, 3.78, note="too few texts: 88, an estimate needs 200"
        )
    curve = [0.5 * value, value]
    return MutualInformation(value, 0.1, value + 0.2, 4.85, 440, 6.09, ceiling, [25, 50], curve, [value, 9.0])


def analyzed(inputs: float | None, classes: float | None) -> RunAnalysis:
    spectrum = Spectrum([2.0, 1.0], [0.2, 0.1], [0.7, 0.3], 1.8, 1.7, 0.7, texts=880)
    matrix = [[0.9, 0.8], [None, 0.6]]
    known = Representations(
        inputs=estimated(inputs),
        classes=estimated(classes),
        same_class=estimated(classes),
        fano=0.9,
        untouched=spectrum,
        first=spectrum,
        last=spectrum,
        movements=[Movement(1, 0.25, 0.5, classes=2)],
        probes={1: matrix, 5: matrix, 10: matrix},
        forward_transfer={1: -0.2, 5: -0.2, 10: -0.2},
        masked_backward_transfer=-0.01,
        steps_to_halve=[7, None],
    )
    return RunAnalysis("fewrel-fea-0", EstimatorSettings(), [], {}, known)


def write(
    out: Path,
    row: str,
    analysis: RunAnalysis | None,
    *,
    benchmark: str = "fewrel",
    round: int = 0,
    fingerprint: str | None = None,
    classes: Sequence[Sequence[str]] = CLASSES,
) -> None:
    """A run with its analysis, or with that of another run where a fingerprint is given."""
    tested = invent_predictions(classes, round=round, keeps=0.9)
    write_run(out, row, tested, classes=classes, benchmark=benchmark, round=round)
    if analysis is not None:
        analysis = replace(analysis, fingerprint=fingerprint or f"{benchmark}-{row}-{round}")
        path = out / benchmark / row / f"round-{round}" / ANALYSIS
        path.write_text(json.dumps(TypeAdapter(RunAnalysis).dump_python(analysis, mode="json")))


def tables(out: Path, recipe: str):
    return RECIPES[recipe].make_tables(load_runs(out), RECIPES[recipe].methods, load_paper())


def cells(table, row: str) -> list[str]:
    return next([cell.text for cell in line] for line in table.rows if line[0].text == row)


def test_an_analysis_is_read_as_it_was_written(tmp_path):
    write(tmp_path, "fea", analyzed(2.0, 1.0))
    assert read_analysis(tmp_path / "fewrel/fea/round-0" / ANALYSIS) == analyzed(2.0, 1.0)


def test_ours_stand_beside_the_papers_and_beside_fano(tmp_path):
    for round, value in enumerate((2.0, 2.2)):
        write(tmp_path, "fea", analyzed(value, 1.0), round=round)
    table, _ = tables(tmp_path, "bias")
    assert [column.title for column in table.columns] == [
        "method", "I(X1;Z1)", "MINE", "paper", "I(Z;Y)", "MINE", "paper", "Fano", "Acc",
    ]  # fmt: skip
    assert cells(table, "fea")[:8] == [
        "fea",
        "2.30 ± 0.14",
        "2.10",
        "2.35",
        "1.20 ± 0.00",
        "1.00",
        "2.34",
        "0.90 ± 0.00",
    ]
    assert cells(table, "crl")[3] == "2.12"
    assert cells(table, "crl")[1] == "–"


def test_data_that_the_paper_does_not_have_get_no_paper_column(tmp_path):
    write(tmp_path, "fea", analyzed(2.0, 1.0), benchmark="hwu64")
    table, _ = tables(tmp_path, "bias")
    assert "paper" not in [column.title for column in table.columns]


def test_the_order_of_rows_is_compared_with_the_papers(tmp_path):
    write(tmp_path, "fea", analyzed(2.0, 1.3))
    write(tmp_path, "joint", analyzed(2.0, 1.1))
    table, _ = tables(tmp_path, "bias")
    assert "Order by I(Z;Y): fea > joint; by MINE: fea > joint; the paper's: joint > fea." in table.notes


def test_ceilings_and_too_few_texts_are_said_below_the_table(tmp_path):
    write(tmp_path, "fea", analyzed(None, 1.0))
    table, _ = tables(tmp_path, "bias")
    assert "I(X1;Z1): too few texts: 88, an estimate needs 200." in table.notes
    assert any("at most ln of the classes, 1.39" in note and "ln 6.09" in note for note in table.notes)


def test_runs_that_were_not_analyzed_are_named(tmp_path):
    write(tmp_path, "fea", None)
    [table] = tables(tmp_path, "bias")
    assert any(note.startswith("Not analyzed: fea") for note in table.notes)


def test_the_table_of_representations_has_the_papers_accuracy_and_figures(tmp_path):
    for row in ("fea", "fea@infomax", "repcl"):
        write(tmp_path, row, analyzed(2.0, 1.0))
    table, transfer = tables(tmp_path, "representation")
    assert cells(table, "fea@infomax")[3] == "2.44"
    assert cells(table, "fea@infomax")[6] == "1.99"
    assert cells(table, "fea@infomax")[8:] == ["84.7", "1.8"]
    assert cells(transfer, "repcl") == ["repcl", "-20.0", "-20.0", "-20.0", "-1.0", "0.250"]
    recipe = RECIPES["representation"]
    figures = recipe.make_figures(load_runs(tmp_path), recipe.methods)
    assert [figure.name for figure in figures] == [
        "fewrel-fitting-same-class",
        "fewrel-fitting-inputs",
        "fewrel-spectra",
    ]


def test_a_spectrum_within_one_power_of_ten_has_plain_numbers_at_its_axis():
    narrow = Spectrum([3.0, 2.0, 0.4], [0.3, 0.2, 0.1], [0.5, 0.3, 0.2], 2.0, 2.0, 0.5, texts=24)
    assert "mathdefault" not in draw_spectra("spectra", {"fea": [narrow]}).svg


def test_the_table_of_the_first_task_joins_both_tables_of_the_paper(tmp_path):
    write(tmp_path, "fea", analyzed(2.0, 1.0))
    write(tmp_path, "repcl", analyzed(1.9, 1.0))
    write(tmp_path, "crl", analyzed(2.1, 1.1))
    [runs] = load_runs(tmp_path)
    table = first_task_table(runs, analyzed_rows(runs), load_paper())
    # method, rounds, I(X1;Z1) by two bounds and the paper's, I(Z1;Z1+) likewise, effective rank
    assert cells(table, "crl") == ["crl", "1", "2.30", "2.10", "2.12", "1.30", "1.10", "–", "1.8"]
    assert cells(table, "repcl") == ["repcl", "1", "2.10", "1.90", "2.41", "1.20", "1.00", "2.01", "1.8"]
    by_both = "crl > fea > repcl; by MINE: crl > fea > repcl"
    assert f"Order by I(X1;Z1): {by_both}; the paper's: repcl > fea > crl." in table.notes
    by_both = "crl > fea = repcl; by MINE: crl > fea = repcl"
    assert f"Order by I(Z1;Z1+): {by_both}; the paper's: repcl > fea." in table.notes


def test_rows_with_different_numbers_of_rounds_are_told(tmp_path):
    for round in (0, 1):
        write(tmp_path, "fea", analyzed(2.0, 1.0), round=round)
    write(tmp_path, "crl", analyzed(2.0, 1.0))
    table, _ = tables(tmp_path, "bias")
    assert "Rounds analyzed: crl 1, fea 2." in table.notes


def test_rows_without_an_analysis_are_left_out_of_the_pages_tables(tmp_path):
    write(tmp_path, "fea", analyzed(2.0, 1.0))
    write(tmp_path, "repcl", None)
    [runs] = load_runs(tmp_path)
    assert analyzed_rows(runs) == ["fea"]


def test_preset_smoke_estimates_with_one_critic_and_300_steps(tmp_path):
    estimator = load_preset("smoke").estimator
    assert (estimator.critics, estimator.steps) == (1, 300)
    assert load_preset("cpu").estimator == EstimatorSettings()
    write(tmp_path, "fea", None)
    [runs] = load_runs(tmp_path)
    gone = runs.results[0].model_copy(update={"preset": str(tmp_path / "gone.toml")})
    assert estimator_of(gone) == EstimatorSettings()


def test_the_analysis_of_another_run_is_not_reported(tmp_path):
    write(tmp_path, "fea", analyzed(2.0, 1.0), fingerprint="an earlier run")
    [runs] = load_runs(tmp_path)
    assert analyzed_rows(runs) == []


def test_the_authors_estimate_is_not_reported(tmp_path):
    write(tmp_path, "fea", analyzed(2.0, 1.0))
    folder = tmp_path / "fewrel/fea/round-0"
    (folder / ANALYSIS).rename(folder / AUTHORS_ANALYSIS)
    [runs] = load_runs(tmp_path)
    assert analyzed_rows(runs) == []


def settled(**settings: object) -> RunAnalysis:
    """An analysis with other settings of the estimator."""
    return replace(analyzed(2.0, 1.0), settings=replace(EstimatorSettings(), **settings))


@pytest.mark.parametrize(
    ("recipe", "other", "ways"),
    [
        ("bias", "crl", "critics = 5, steps = 5000 (crl, fea); critics = 1, steps = 300 (fea)."),
        (
            "representation",
            "repcl",
            "critics = 1, steps = 300 (fea); critics = 5, steps = 5000 (fea, repcl).",
        ),
    ],
)
def test_rows_that_were_not_estimated_alike_are_pointed_out(tmp_path, recipe, other, ways):
    write(tmp_path, "fea", settled(critics=1, steps=300), round=0)
    write(tmp_path, "fea", settled(), round=1)
    write(tmp_path, other, settled())
    table, _ = tables(tmp_path, recipe)
    assert any(
        f"Not estimated alike, which alone makes values differ: {ways}" in note for note in table.notes
    )


def test_rows_of_the_first_task_that_were_not_estimated_alike_are_pointed_out(tmp_path):
    write(tmp_path, "fea", settled(steps=300))
    write(tmp_path, "crl", settled())
    [runs] = load_runs(tmp_path)
    notes = first_task_table(runs, analyzed_rows(runs), load_paper()).notes
    assert any("steps = 5000 (crl); steps = 300 (fea)" in note for note in notes)


def test_rows_that_were_estimated_alike_need_no_note(tmp_path):
    for row in ("fea", "crl"):
        write(tmp_path, row, settled())
    table, _ = tables(tmp_path, "bias")
    assert not any("estimated alike" in note or "too high" in note for note in table.notes)


def test_values_read_off_the_texts_fitted_on_are_pointed_out(tmp_path):
    write(tmp_path, "fea", settled(is_held_out=False))
    table, _ = tables(tmp_path, "bias")
    assert "Judged by the texts that were fitted on, so too high: fea." in table.notes


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            EstimatorSettings(),
            "5 critics, at most 5,000 steps, fitted on one half of the texts and read off the other.",
        ),
        (AUTHORS, "1 critic, 5,000 steps, in-sample: read off the texts that were fitted on, so too high."),
    ],
)
def test_the_tables_of_a_run_name_the_estimator(settings, words):
    information = run_tables(replace(analyzed(2.0, 1.0), settings=settings))[0]
    assert f"Estimated with {words}" in information.notes


def test_the_table_of_all_runs_names_the_estimators(tmp_path):
    write(tmp_path, "fea", None)
    write(tmp_path, "crl", None)
    [runs] = load_runs(tmp_path)
    pairs = [*zip(runs.results, (settled(), settled(critics=1)), strict=True)]
    assert any("(fewrel crl); critics = 1 (fewrel fea)" in note for note in analyses_table(pairs).notes)
    assert any("Estimated with 5 critics" in note for note in analyses_table(pairs[:1]).notes)


def test_figures_of_the_authors_estimate_have_names_of_their_own():
    drawings = run_drawings("fea", analyzed(2.0, 1.0), prefix="analysis-authors")
    assert all(drawing.name.startswith("analysis-authors-") for drawing in drawings)


def test_a_fitting_curve_of_an_estimate_in_sample_says_so():
    drawing = draw_fitting("curve", "I(Z;Y)", {"fea": [estimated(1.0)]}, is_held_out=False)
    assert drawing.description == "I(Z;Y) on the texts fitted on, had the fit ended at that step"


def test_a_probe_from_one_text_is_named_so():
    drawing = draw_probes("probes", "fea", [[[0.9, 0.8], [None, 0.6]]], shots=1)
    assert "fea, 1 text per class" in drawing.svg


def write_mixed(out: Path) -> None:
    """Two rounds of one row: two tasks in one, three in the other."""
    longer = analyzed(2.0, 1.0)
    known = longer.representations
    assert known is not None
    matrix = [[0.9, 0.8, 0.7], [None, 0.6, 0.5], [None, None, 0.4]]
    known = replace(known, probes=dict.fromkeys((1, 5, 10), matrix), same_class=estimated(1.0, 1.79))
    write(out, "fea", analyzed(2.0, 1.0), round=0)
    write(
        out, "fea", replace(longer, representations=known), round=1, classes=[["a", "b"], ["c", "d"], ["e"]]
    )


def test_probes_of_rounds_with_fewer_tasks_are_left_out_of_the_figure(tmp_path):
    write_mixed(tmp_path)
    recipe = RECIPES["bias"]
    [folded] = recipe.make_figures(load_runs(tmp_path), recipe.methods)
    [drawing] = folded.parts[0].parts
    shown = [f">{percent}<" in drawing.svg for percent in (90, 80, 70, 60, 50, 40)]
    assert all(shown)


def test_different_ceilings_are_given_as_a_range(tmp_path):
    write_mixed(tmp_path)
    table, _ = tables(tmp_path, "representation")
    assert any("I(Z1;Z1+): at most ln of the classes, 1.39 to 1.79;" in note for note in table.notes)


@pytest.mark.parametrize("recipe", ["bias", "representation"])
def test_mixed_rounds_are_pointed_out_below_both_tables(tmp_path, recipe):
    write_mixed(tmp_path)
    information, transfer = tables(tmp_path, recipe)
    note = "Rounds run with different settings or data: fea. Their mean means little."
    assert note in information.notes
    assert note in transfer.notes


def test_a_damaged_analysis_is_named(tmp_path):
    write(tmp_path, "fea", analyzed(2.0, 1.0))
    path = tmp_path / "fewrel/fea/round-0" / ANALYSIS
    path.write_text(path.read_text()[:50])
    with pytest.raises(ResultMismatch, match=r"analysis\.json is damaged"):
        load_runs(tmp_path)


@pytest.mark.parametrize("of_joint", [["a", "b"], ["a", "b", "c"]])
def test_information_about_classes_is_compared_only_where_both_learned_the_same_classes(tmp_path, of_joint):
    for round in range(3):
        write(tmp_path, "fea", analyzed(2.0, 1.0 + round), round=round, classes=[["a", "b"]])
        write(tmp_path, "joint", analyzed(2.0, 2.0 + 2 * round), round=round, classes=[of_joint])
    table = verdict_table(["bias"], load_runs(tmp_path), load_paper())
    claims = [row[1].text for row in table.rows if "joint" in row[4].text]
    assert any("I(X1;Z1)" in claim for claim in claims)  # of the same texts there is as much to know
    assert any("I(Z;Y)" in claim for claim in claims) == (of_joint == ["a", "b"])
