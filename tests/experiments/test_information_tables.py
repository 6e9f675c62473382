"""The paper's tables of mutual information, made of invented analyses."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from repcl.analysis.drift import Movement
from repcl.analysis.estimator_settings import EstimatorSettings
from repcl.analysis.mutual_information import MutualInformation
from repcl.analysis.spectrum import Spectrum
from repcl.errors import ResultMismatch
from repcl.experiments.analyses import estimator_of
from repcl.experiments.paper import load_paper
from repcl.experiments.presets import load_preset
from repcl.experiments.recipes import RECIPES
from repcl.experiments.reporting.information_cells import analysed_rows
from repcl.experiments.reporting.information_tables import first_task_table
from repcl.experiments.reporting.runs import load_runs
from repcl.experiments.run_analysis import ANALYSIS, Representations, RunAnalysis, read_analysis
from tests.experiments.made_up import invent_predictions, write_run

CLASSES = [["a", "b"], ["c", "d"]]


def estimated(value: float | None) -> MutualInformation:
    if value is None:
        return MutualInformation(
            None, None, None, None, 44, 3.78, note="too few texts: 88, an estimate needs 200"
        )
    curve = [0.5 * value, value]
    return MutualInformation(value, 0.1, value + 0.2, 4.85, 440, 6.09, 1.39, [25, 50], curve, [value, 9.0])


def analysed(inputs: float | None, classes: float | None) -> RunAnalysis:
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
    seed: int = 0,
    fingerprint: str | None = None,
) -> None:
    """A run with its analysis, or with that of another run where a fingerprint is given."""
    tested = invent_predictions(CLASSES, seed=seed, keeps=0.9)
    write_run(out, row, tested, classes=CLASSES, benchmark=benchmark, seed=seed)
    if analysis is not None:
        analysis = replace(analysis, fingerprint=fingerprint or f"{benchmark}-{row}-{seed}")
        path = out / benchmark / row / f"seed-{seed}" / ANALYSIS
        path.write_text(json.dumps(TypeAdapter(RunAnalysis).dump_python(analysis, mode="json")))


def tables(out: Path, recipe: str):
    return RECIPES[recipe].make_tables(load_runs(out), RECIPES[recipe].methods, load_paper())


def cells(table, row: str) -> list[str]:
    return next([cell.text for cell in line] for line in table.rows if line[0].text == row)


def test_an_analysis_is_read_as_it_was_written(tmp_path):
    write(tmp_path, "fea", analysed(2.0, 1.0))
    assert read_analysis(tmp_path / "fewrel/fea/seed-0") == analysed(2.0, 1.0)


def test_ours_stand_beside_the_papers_and_beside_fano(tmp_path):
    for seed, value in enumerate((2.0, 2.2)):
        write(tmp_path, "fea", analysed(value, 1.0), seed=seed)
    table, _ = tables(tmp_path, "bias")
    assert [column.title for column in table.columns] == [
        "method", "I(X1;Z1)", "InfoNCE", "paper", "I(Z;Y)", "InfoNCE", "paper", "Fano", "Acc",
    ]  # fmt: skip
    assert cells(table, "fea")[:8] == [
        "fea",
        "2.10 ± 0.14",
        "2.30",
        "2.35",
        "1.00 ± 0.00",
        "1.20",
        "2.34",
        "0.90 ± 0.00",
    ]
    assert cells(table, "crl")[3] == "2.12"
    assert cells(table, "crl")[1] == "–"


def test_data_that_the_paper_does_not_have_get_no_paper_column(tmp_path):
    write(tmp_path, "fea", analysed(2.0, 1.0), benchmark="hwu64")
    table, _ = tables(tmp_path, "bias")
    assert "paper" not in [column.title for column in table.columns]


def test_the_order_of_rows_is_compared_with_the_papers(tmp_path):
    write(tmp_path, "fea", analysed(2.0, 1.3))
    write(tmp_path, "joint", analysed(2.0, 1.1))
    table, _ = tables(tmp_path, "bias")
    assert "Order by I(Z;Y): fea > joint; the paper's: joint > fea." in table.notes


def test_ceilings_and_too_few_texts_are_said_below_the_table(tmp_path):
    write(tmp_path, "fea", analysed(None, 1.0))
    table, _ = tables(tmp_path, "bias")
    assert "I(X1;Z1): too few texts: 88, an estimate needs 200." in table.notes
    assert any("at most ln of the classes, 1.39" in note and "ln 6.09" in note for note in table.notes)


def test_runs_that_were_not_analysed_are_named(tmp_path):
    write(tmp_path, "fea", None)
    [table] = tables(tmp_path, "bias")
    assert any(note.startswith("Not analysed: fea") for note in table.notes)


def test_the_table_of_representations_has_the_papers_accuracy_and_figures(tmp_path):
    for row in ("fea", "fea@infomax", "repcl"):
        write(tmp_path, row, analysed(2.0, 1.0))
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


def test_the_table_of_the_first_task_joins_both_tables_of_the_paper(tmp_path):
    write(tmp_path, "fea", analysed(2.0, 1.0))
    write(tmp_path, "repcl", analysed(1.9, 1.0))
    write(tmp_path, "crl", analysed(2.1, 1.1))
    [runs] = load_runs(tmp_path)
    table = first_task_table(runs, analysed_rows(runs), load_paper())
    # method, rounds, I(X1;Z1) by two bounds and the paper's, I(Z1;Z1+) likewise, effective rank
    assert cells(table, "crl") == ["crl", "1", "2.10", "2.30", "2.12", "1.10", "1.30", "–", "1.8"]
    assert cells(table, "repcl") == ["repcl", "1", "1.90", "2.10", "2.41", "1.00", "1.20", "2.01", "1.8"]
    assert "Order by I(X1;Z1): crl > fea > repcl; the paper's: repcl > fea > crl." in table.notes
    assert "Order by I(Z1;Z1+): crl > fea = repcl; the paper's: repcl > fea." in table.notes


def test_rows_without_an_analysis_are_left_out_of_the_pages_tables(tmp_path):
    write(tmp_path, "fea", analysed(2.0, 1.0))
    write(tmp_path, "repcl", None)
    [runs] = load_runs(tmp_path)
    assert analysed_rows(runs) == ["fea"]


def test_preset_smoke_estimates_with_one_critic_and_300_steps(tmp_path):
    estimator = load_preset("smoke").estimator
    assert (estimator.critics, estimator.steps) == (1, 300)
    assert load_preset("cpu").estimator == EstimatorSettings()
    write(tmp_path, "fea", None)
    [runs] = load_runs(tmp_path)
    gone = runs.results[0].model_copy(update={"preset": str(tmp_path / "gone.toml")})
    assert estimator_of(gone) == EstimatorSettings()


def test_the_analysis_of_another_run_is_not_reported(tmp_path):
    write(tmp_path, "fea", analysed(2.0, 1.0), fingerprint="an earlier run")
    [runs] = load_runs(tmp_path)
    assert analysed_rows(runs) == []


def test_a_damaged_analysis_is_named(tmp_path):
    write(tmp_path, "fea", analysed(2.0, 1.0))
    path = tmp_path / "fewrel/fea/seed-0" / ANALYSIS
    path.write_text(path.read_text()[:50])
    with pytest.raises(ResultMismatch, match=r"analysis\.json is damaged"):
        load_runs(tmp_path)
