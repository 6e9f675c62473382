"""Runs the notebooks in examples/ and stores what they print and draw: `python docs/make_notebooks.py`."""

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"
SECONDS = 600
"""A cell may take so long."""


def run_notebook(path: Path) -> None:
    """Run a notebook in a folder that is thrown away, and keep its outputs."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.clear()  # the time of day would make every run another file
        if cell.cell_type == "code":
            # warnings and progress name folders of this machine
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ["PYTHONWARNINGS"] = "ignore"
    for example in sorted(EXAMPLES.glob("*.ipynb")):
        run_notebook(example)
