"""What the README names exists, and its numbers come from stored results; test_pages.py runs its blocks."""

import re
from pathlib import Path
from statistics import mean, stdev

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


def test_the_demo_table_of_the_readme_is_made_from_the_stored_results():
    for method in ("repcl", "fea", "sequential", "joint"):
        results = [run.result for run in RunStore(ROOT / "results/demo" / method).runs()]
        assert len(results) == 3
        row = next(line for line in README.splitlines() if line.startswith(f"| `{method}` |"))
        final = [100 * result.final_accuracy for result in results]
        assert f"| {mean(final):.1f} ± {stdev(final):.1f} |" in row
        after = [[result.accuracy_after_task[task] for result in results] for task in range(10)]
        cells = ["–" if None in values else f"{100 * mean(values):.1f}" for values in after]
        assert row.startswith(f"| `{method}` | {' | '.join(cells)} |")
