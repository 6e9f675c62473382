"""The tables of how runs were made."""

import pytest

from repcl.experiments.reports.provenance import origin_table, settings_table
from tests.experiments.made_up import (
    cells,
    only,
    two_tasks,
    write_run,
)


def test_settings_are_shown_where_methods_or_defaults_differ(tmp_path):
    examples = two_tasks([True, True])
    write_run(tmp_path, "fea", examples, classes=[["old"], ["new"]], settings={"batch_size": 8})
    write_run(tmp_path, "sequential", examples, classes=[["old"], ["new"]], settings={"batch_size": 8})
    shown = settings_table(only(tmp_path))
    assert [row[0].text for row in shown.rows] == ["batch_size"]
    everything = settings_table(only(tmp_path), everything=True)
    assert cells(everything, "memory_per_class") == {
        "setting": "memory_per_class",
        "sequential": "–",
        "fea": "10",
    }


@pytest.mark.parametrize(
    ("benchmark", "complete", "is_noted"),
    [("banking77", True, True), ("banking77", False, False), ("demo", True, False)],
)
def test_complete_files_that_are_not_the_public_ones_are_noted(tmp_path, benchmark, complete, is_noted):
    write_run(
        tmp_path,
        "fea",
        two_tasks([True, True]),
        classes=[["old"], ["new"]],
        benchmark=benchmark,
        complete=complete,
    )
    notes = origin_table(only(tmp_path)).notes
    assert len(notes) == is_noted
    assert all(
        note.startswith("Not the public file byte for byte, by its hash: train.csv.") for note in notes
    )
