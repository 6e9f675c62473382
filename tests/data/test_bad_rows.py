"""All rows that cannot be used are reported at once: the first twenty, and how many there are."""

import json
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from repcl.data.files import read_examples
from repcl.errors import BadRows


def refused(path) -> BadRows:
    with pytest.raises(BadRows) as caught:
        read_examples(path)
    return caught.value


def test_every_kind_of_bad_row_of_a_csv_file_is_named_at_once(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text,label,trigger\nHi,a,[0]\nHi,a,"[0, 1]"\n,a,"[0, 1]"\nHi,,x\nHi,a,x,y\n')
    error = refused(path)
    assert error.count == 4
    assert [problem.split(":")[0] for problem in error.problems] == [
        "row 1 (line 2), column 'trigger'",
        "row 3 (line 4), column 'text'",
        "row 4 (line 5), column 'label'",
        "row 5 has 4 cells where the header names 3 columns (the last is 'y')",
    ]
    assert error.summary == f"{path} has 4 rows that cannot be used:"
    assert all(problem in str(error) for problem in error.problems)


def test_broken_lines_of_a_jsonl_file_are_named_beside_bad_cells(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [
        '{"text": "Hi"',
        '{"text": "Hi", "label": "a"}',
        '{"text": "Hi"}',
        "[1]",
        '{"text": 5, "label": "a"}',
    ]
    path.write_text("\n".join(rows))
    assert [problem.split()[:2] for problem in refused(path).problems] == [
        ["line", "1"],
        ["row", "3"],
        ["line", "4"],
        ["row", "5,"],
    ]


def test_bad_rows_of_a_parquet_file_are_named_at_once(tmp_path):
    pq.write_table(pa.table({"text": ["Hi", None, ""], "label": ["a", "a", "a"]}), tmp_path / "a.parquet")
    assert [problem.split(",")[0] for problem in refused(tmp_path / "a.parquet").problems] == [
        "row 2",
        "row 3",
    ]


def test_twenty_bad_rows_are_shown_and_all_are_counted(tmp_path):
    path = tmp_path / "a.jsonl"
    good = json.dumps({"text": "Hi", "label": "a"})
    path.write_text("\n".join([good, *['{"text": "", "label": "a"}'] * 1234, good]))
    error = refused(path)
    assert (len(error.problems), error.count) == (20, 1234)
    assert error.problems[-1].startswith("row 21,")
    assert "has 1,234 rows that cannot be used" in str(error)
    assert len(str(error)) <= 2000


def test_a_single_bad_row_is_one_sentence(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\nHi,a\n,a\n")
    error = refused(path)
    assert (error.problems, error.count) == ((), 1)
    assert str(error).startswith(f"{path}, row 2 (line 3), column 'text': expected a text")


def test_rows_before_a_quote_that_is_never_closed_are_named_too(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text,label\n,a\nHi,a\n"Bye,a\n')
    assert [problem.split()[1] for problem in refused(path).problems] == ["1", "3"]


def test_a_bad_row_is_the_same_in_another_process(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n,a\n,b\n")
    error = refused(path)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.problems, copy.count) == (str(error), error.problems, 2)


def test_problems_are_lines_that_steer_no_terminal(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"text": "Hi", "label": "a", "x\\u001b": 1}\n{"text": "Hi", "x\\u001b": "\\u001b[2J"}\n{"text": ""}'
    )
    assert all(problem.isprintable() for problem in refused(path).problems)
