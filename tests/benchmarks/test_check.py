"""`check`, and the commands `repcl data get` and `repcl data check`."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from repcl.benchmarks import BENCHMARKS
from repcl.benchmarks.check import ClassCount, FileState, check
from repcl.cli.data import data_app
from repcl.errors import MissingData, UnknownName

FIXTURES = Path(__file__).parent / "fixtures"


def run(*words: str) -> str:
    result = CliRunner().invoke(data_app, [*words, "--data-dir", str(FIXTURES)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_check_counts_the_examples_of_each_class() -> None:
    result = check("hwu64", FIXTURES)
    assert result.classes == (ClassCount("alarm_set", 9, 1), ClassCount("general_joke", 9, 1))
    assert not result.complete


def test_check_gives_sizes_and_compares_hashes_where_known() -> None:
    train, val = check("fewrel", FIXTURES).files
    assert train == FileState(
        "train_wiki.json", os.path.getsize(FIXTURES / "fewrel/train_wiki.json"), "differs"
    )
    assert val.digest == "unknown"


def test_check_names_missing_files_and_what_to_do(tmp_path: Path) -> None:
    result = check("banking77", tmp_path)
    assert {file.size for file in result.files} == {None}
    assert result.classes == ()
    assert result.notes[0].startswith("train.csv, test.csv, categories.json not found in")
    assert "repcl data get banking77" in result.notes[0]


def test_check_refuses_unknown_names() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'clinc150'"):
        check("clinc15")


def test_the_check_command_prints_files_counts_and_license() -> None:
    output = run("check", "clinc150")
    for expected in (
        "data_full.json",
        "differs",
        "translate",
        "2 classes",
        "license: CC BY 3.0",
        "complete: no",
    ):
        assert expected in output


def test_the_check_command_says_when_complete_files_are_not_the_public_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train, test = BENCHMARKS["demo"].files
    other = replace(train, digest="sha256:" + "0" * 64)
    monkeypatch.setitem(BENCHMARKS, "demo", replace(BENCHMARKS["demo"], files=(other, test)))
    output = run("check", "demo")
    assert "Not the public file byte for byte, by its hash: train.csv. That it is complete is" in output
    assert "complete: yes" in output


def test_incomplete_files_are_not_also_said_to_have_other_bytes() -> None:
    result = check("hwu64", FIXTURES)
    assert result.files[0].digest == "differs"
    assert not any("byte for byte" in note for note in result.notes)


def test_the_check_command_says_when_everything_is_there() -> None:
    assert "complete: yes" in run("check", "demo")


def test_the_check_command_ends_with_code_2_where_files_are_missing(tmp_path: Path) -> None:
    words = ["check", "banking77", "--data-dir", str(tmp_path)]
    assert CliRunner().invoke(data_app, words).exit_code == 2


def test_the_get_command_prints_license_and_folder() -> None:
    output = run("get", "hwu64")
    assert "license: CC BY 4.0" in output
    assert f"hwu64 is in {FIXTURES / 'hwu64'}" in output


def test_the_get_command_explains_how_to_obtain_tacred(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="licensed by the Linguistic Data Consortium"):
        CliRunner().invoke(data_app, ["get", "tacred", "--data-dir", str(tmp_path)], catch_exceptions=False)


def test_the_get_command_refuses_unknown_names() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'fewrel'"):
        run("get", "fewrell")


def test_the_get_command_fetches_with_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (FIXTURES / "clinc150" / "data_full.json").as_uri()
    file = replace(BENCHMARKS["clinc150"].files[0], url=source, size=None, digest=None)
    monkeypatch.setitem(BENCHMARKS, "clinc150", replace(BENCHMARKS["clinc150"], files=(file,)))
    result = CliRunner().invoke(
        data_app, ["get", "clinc150", "--data-dir", str(tmp_path)], catch_exceptions=False
    )
    assert "data_full.json" in result.output
    assert (tmp_path / "clinc150" / "data_full.json").read_bytes().startswith(b"{")
