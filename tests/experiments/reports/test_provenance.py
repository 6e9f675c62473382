"""The tables of how runs were made."""

import pytest

from repcl.experiments.reports.provenance import costs_table, origin_table, settings_table
from repcl.experiments.runs.result import Seconds
from tests.experiments.made_up import (
    cells,
    only,
    two_tasks,
    write_grid,
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


def timed(wall: float, processor: float | None, *, embeddings_read: int = 0) -> Seconds:
    return Seconds(
        tasks=[{"replay": wall}, {"replay": wall}],
        all=2 * wall,
        processor_tasks=[] if processor is None else [{"replay": processor}, {"replay": processor}],
        processor_all=None if processor is None else 2 * processor,
        embeddings_read=embeddings_read,
    )


def costs_of(out, **methods):
    for method, rounds in methods.items():
        for number, seconds in enumerate(rounds):
            write_run(
                out,
                method,
                two_tasks([True, True]),
                classes=[["old"], ["new"]],
                round=number,
                seconds=seconds,
            )
    return costs_table(only(out))


def test_cost_is_time_of_the_processor_where_every_run_has_it(tmp_path):
    shown = costs_of(tmp_path, fea=[timed(30, 10)], sequential=[timed(50, 5)])
    assert [row[1].values for row in shown.rows] == [(10.0,), (20.0,)]
    assert "Time of the processor." in shown.notes[0]


def test_cost_is_wall_time_where_a_run_has_no_other(tmp_path):
    shown = costs_of(tmp_path, fea=[timed(30, 10)], sequential=[timed(50, None)])
    assert [row[1].values for row in shown.rows] == [(100.0,), (60.0,)]
    assert "Wall time" in shown.notes[0]


def test_runs_that_read_stored_embeddings_do_not_count_beside_others(tmp_path):
    shown = costs_of(tmp_path, ncm=[timed(9, 1, embeddings_read=7), timed(9, 8)])
    assert [row[1].values for row in shown.rows] == [(16.0,)]
    assert "Stored embeddings" not in shown.notes[0]


def test_a_method_whose_runs_all_read_stored_embeddings_is_named(tmp_path):
    shown = costs_of(tmp_path, fea=[timed(9, 8)], ncm=[timed(9, 1, embeddings_read=7)])
    assert shown.notes[0].endswith("Stored embeddings were read, which saves time: ncm.")


def made_on(out, **rows):
    """Costs of rows whose rounds were made on these processors, each slower than the one before."""
    for row, processors in rows.items():
        for number, name in enumerate(processors):
            write_run(
                out,
                row,
                two_tasks([True, True]),
                classes=[["old"], ["new"]],
                round=number,
                processor=name,
                seconds=timed(9, 8 + number),
            )
    return costs_table(only(out))


def test_costs_name_the_processor_of_all_runs(tmp_path):
    assert made_on(tmp_path, fea=["Xeon", "Xeon"]).notes[1:] == ["Processor: Xeon."]


def test_costs_leave_out_rounds_on_another_processor_than_most(tmp_path):
    table = made_on(tmp_path, fea=[None, "Xeon"], crl=["Xeon"])
    assert cells(table, "fea")["total"] == "18 s"  # of its second round; of both it would be 17
    assert table.notes[1:] == [
        "Processor: Xeon.",
        "Times leave out rounds on another processor, or that read stored embeddings. "
        "Rounds timed: fea 1 of 2.",
    ]


def test_costs_warn_of_rows_that_were_made_on_another_processor(tmp_path):
    assert made_on(tmp_path, fea=["Xeon", "Xeon"], crl=[None]).notes[1:] == [
        "Made on several processors (one that is not known, Xeon): compare times with caution. "
        "Not on Xeon: crl."
    ]


def test_costs_say_how_many_rounds_were_timed_on_several_processors_too(tmp_path):
    table = made_on(tmp_path, fea=["Xeon", "EPYC"], crl=[None])
    assert table.notes[1:] == [
        "Made on several processors (one that is not known, Xeon): compare times with caution. "
        "Not on Xeon: crl.",
        "Times leave out rounds on another processor, or that read stored embeddings. "
        "Rounds timed: fea 1 of 2.",
    ]


def test_costs_of_earlier_runs_say_nothing_of_their_processor(tmp_path):
    assert made_on(tmp_path, fea=[None, None]).notes[1:] == []


def test_rows_say_in_how_many_rounds_their_predictions_are_stored(tmp_path):
    write_grid(tmp_path, {"fea": 0.5, "repcl": 0.5, "ncm": 0.5}, rounds=2)
    (tmp_path / "demo/fea/round-1/predictions.jsonl.gz").unlink()
    for round in range(2):
        (tmp_path / f"demo/ncm/round-{round}/predictions.jsonl.gz").unlink()
    table = origin_table(only(tmp_path))
    told = {row: cells(table, row)["predictions"] for row in ("fea", "repcl", "ncm")}
    assert told == {"fea": "stored in 1 of 2 rounds", "repcl": "stored", "ncm": "not stored"}
