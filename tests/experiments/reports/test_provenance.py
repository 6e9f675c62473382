"""The tables of how runs were made."""

from repcl.experiments.reports.provenance import settings_table
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
