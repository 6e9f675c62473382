"""What the README names exists, and its numbers come from stored results; test_pages.py runs its blocks."""

import re
from pathlib import Path

import pytest

from repcl.experiments import RunStore

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", re.findall(r"\]\(((?!http)[^)#]+)\)", README))
def test_files_that_the_readme_names_exist(path):
    assert (ROOT / path).is_file()


def test_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make ([a-z-]+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_the_comparison_of_the_readme_is_made_from_stored_results():
    runs = RunStore(ROOT / "results/compare").runs()
    assert len(runs) == 6
    for result in (run.result for run in runs):
        row = next(line for line in README.splitlines() if line.startswith(f"│ {result.row} "))
        lost = "–" if result.forgetting_rate is None else f"{100 * result.forgetting_rate:.1f}"
        expected = [result.row, "1", f"{100 * result.final_accuracy:.1f}", lost]
        assert [cell.strip() for cell in row.strip("│").split("│")] == expected


def test_the_comparison_takes_as_long_as_the_readme_and_make_say():
    minutes = sum(run.result.seconds.processor_all for run in RunStore(ROOT / "results/compare").runs()) / 60
    said = "4 to 7 minutes of processor time"
    assert 4 <= minutes <= 7
    assert said in README
    assert said in (ROOT / "Makefile").read_text(encoding="utf-8")
