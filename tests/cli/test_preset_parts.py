"""A preset that chooses the parts of a duet: every command with --set knows their settings."""

from pathlib import Path

import pytest


@pytest.fixture
def preset(tmp_path) -> Path:
    path: Path = tmp_path / "mine.toml"
    path.write_text('extends = "cpu"\n[methods.duet]\ntrained = "kdrk"\n')
    return path


@pytest.mark.parametrize("command", ["bench", "tune", "learn"])
def test_a_wrong_value_of_a_parts_setting_is_refused_as_a_value(
    repcl, data_file, encoder_folder, preset, tmp_path, command
):
    data = (tmp_path / "model", data_file) if command == "learn" else ("--benchmark", data_file)
    out = () if command == "learn" else ("--tasks", 4, "--out", tmp_path / "out")
    words = ("--method", "duet", "--preset", preset, "--encoder", encoder_folder, "--set", "gate=7")
    output = repcl(command, *data, *words, *out)
    assert output.code == 2
    assert "gate = 7" in " ".join(output.err.split())


def test_improve_knows_the_parts_that_the_models_preset_chooses(
    repcl, data_file, encoder_folder, preset, tmp_path
):
    model = tmp_path / "model"
    made = repcl("learn", model, data_file, "--encoder", encoder_folder, "--preset", preset)
    assert made.code == 0, made.err
    output = repcl("improve", model, "--data", data_file, "--set", "gate=7")
    assert output.code == 2
    assert "gate = 7" in " ".join(output.err.split())
