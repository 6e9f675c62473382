"""The examples run: scripts and notebooks, from their first line to their last."""

import runpy
import warnings
from pathlib import Path

import nbformat
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_a_script_runs_and_says_something(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run_in_order(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, object] = {"__name__": path.stem}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few texts are worth notes, which are shown to people
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, path.name, "exec"), names)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_prints_and_names_no_folder_of_a_machine(path):
    outputs = [
        output for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])
    ]
    assert outputs
    assert not any(output.output_type == "error" or output.get("name") == "stderr" for output in outputs)
    assert "/tmp/" not in path.read_text(encoding="utf-8")
