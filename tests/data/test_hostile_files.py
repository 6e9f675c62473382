"""Data files that are damaged, made with malice, or no files at all: one sentence each."""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from repcl.data.files import LONGEST_LABEL, read_examples
from repcl.errors import LONGEST_SENTENCE, InvalidData

ENDINGS = ["csv", "tsv", "jsonl", "parquet"]  # Excel's is in test_xlsx.py


def refused(path: Path) -> str:
    """The sentence that a file is refused with."""
    with pytest.raises(InvalidData) as caught:
        read_examples(path, note=lambda _: None)
    sentence = str(caught.value)
    assert len(sentence) <= LONGEST_SENTENCE
    return sentence


# ---- columns of one name ------------------------------------------------------------------------


@pytest.mark.parametrize("twice", ["text", "label", "id", "größe", "a b"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_columns_of_one_name_are_refused_and_named(tmp_path, ending, twice):
    names = [*dict.fromkeys(["text", "label", twice]), twice]
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * len(names), names=names), path)
    elif ending == "jsonl":
        path.write_text("{" + ", ".join(f"{json.dumps(name)}: 1" for name in names) + "}\n")
    else:
        separator = "," if ending == "csv" else "\t"
        path.write_text(f"{separator.join(names)}\n{separator.join('a' for _ in names)}\n")
    assert f"named {twice!r}" in refused(path)


def test_every_column_that_stands_twice_is_named_once(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,text,label,text,text\na,b,c,d,e\n")
    assert "more than one column named 'label', 'text': rename" in refused(path)


def test_columns_without_a_name_may_be_many(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label,,\nHello,greet,,\n")
    assert read_examples(path)[0].label == "greet"


# ---- texts and labels that are none -------------------------------------------------------------


@pytest.mark.parametrize("half", ["\\ud800", "\\udfff", "a\\ud83d", "\\ude00\\ud83d"])
@pytest.mark.parametrize("column", ["text", "label"])
def test_half_a_surrogate_pair_is_refused_with_its_row(tmp_path, column, half):
    good = {"text": "Hello", "label": "greet"}
    bad = json.dumps(good | {column: "HERE"}).replace("HERE", half)
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(good)}\n{bad}\n")
    assert f"row 2, column {column!r}: expected valid Unicode" in refused(path)


@pytest.mark.parametrize("label", ["a\\u0000", "\\u0000"])
def test_a_label_with_a_nul_is_refused(tmp_path, label):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "Hello", "label": "{label}"}}\n')
    assert "column 'label'" in refused(path)


@pytest.mark.parametrize("label", ["1e999", "-Infinity", "Infinity", "NaN", "{}", "[[]]", "9" * 5000])
def test_what_is_no_label_is_refused(tmp_path, label):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "Hello", "label": {label}}}\n')
    refused(path)


def test_a_label_as_long_as_a_text_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"text,label\nHello,{'x' * LONGEST_LABEL}\nHello,{'x' * (LONGEST_LABEL + 1)}\n")
    assert "row 2 (line 3), column 'label': expected a label of at most 1,000 characters" in refused(path)


def test_labels_with_line_breaks_and_escapes_are_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text,label\nHello,"two\nlines"\nBye,\x1b[31mred\n', newline="")
    assert [example.label for example in read_examples(path)] == ["two\nlines", "\x1b[31mred"]


# ---- Parquet ------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["text", "label"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**62], pa.timestamp("ns")),
        pa.array([-(2**62)], pa.timestamp("ms")),
        pa.array([2**62], pa.timestamp("us", tz="Nowhere/Nothing")),
        pa.array([datetime(2024, 1, 1)]),
        pa.array([2**31 - 1], pa.date32()),
        pa.array([2**60], pa.duration("s")),
        pa.array([b"\xff\xfe"]),
        pa.array([{"a": 1}]),
        pa.array([[["deep"]]]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([None], pa.list_(pa.int64(), 100_000)),
    ],
    ids=lambda values: str(values.type),
)
def test_columns_of_types_that_are_no_texts_are_refused_by_type(tmp_path, column, values):
    good = {"text": pa.array(["Hello"]), "label": pa.array(["greet"])}
    pq.write_table(pa.table(good | {column: values}), tmp_path / "a.parquet")
    assert f"column {column!r}: expected text or numbers, found values of the type" in refused(
        tmp_path / "a.parquet"
    )


def test_a_column_name_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["Hello"], "label": ["greet"], "qqqq": ["x"]})
    pq.write_table(table, path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"qqqq", b"q\xff\xfeq"))
    assert "cannot be read as Parquet" in refused(path)


def test_a_text_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["qqqq"], "label": ["greet"]}), path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"qqqq", b"q\xff\xfeq"))
    refused(path)


@pytest.mark.parametrize("share", [number / 20 for number in range(20)])
def test_a_parquet_file_that_ends_early_is_refused(tmp_path, share):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["Hello"] * 20, "label": ["greet"] * 20}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    refused(path)


def test_an_unread_column_may_be_of_any_type(tmp_path):
    table = pa.table({"text": ["Hello"], "label": ["greet"], "when": pa.array([2**62], pa.timestamp("ns"))})
    pq.write_table(table, tmp_path / "a.parquet")
    assert len(read_examples(tmp_path / "a.parquet")) == 1


# ---- what is no file ----------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("length", [255, 300, 5000])
def test_a_path_that_is_too_long_is_refused(tmp_path, ending, length):
    refused(tmp_path / f"{'x' * length}.{ending}")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_folder_an_empty_file_and_a_pipe_are_refused(tmp_path, ending):
    folder, empty, pipe = (tmp_path / f"{name}.{ending}" for name in ("folder", "empty", "pipe"))
    folder.mkdir()
    empty.touch()
    os.mkfifo(pipe)
    assert "is a folder" in refused(folder)
    assert "is empty" in refused(empty)
    assert "is a pipe or a device" in refused(pipe)
    assert "There is no file" in refused(empty / "a.csv")


@pytest.mark.parametrize("ending", ENDINGS)
def test_links_in_a_circle_are_refused(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    path.symlink_to(path)
    assert "cannot be read" in refused(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_path_with_a_nul_is_refused(tmp_path, ending):
    refused(tmp_path / f"a\0.{ending}")


AS_NOBODY = """
import os, sys
from repcl.data.files import read_examples
from repcl.errors import InvalidData
import repcl.data.parquet_rows
os.setuid(65534)
try:
    read_examples(sys.argv[1])
except InvalidData as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_may_not_be_read_is_said(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    path.write_text("text,label\nHello,greet\n")
    path.chmod(0)
    ended = subprocess.run([sys.executable, "-c", AS_NOBODY, path], capture_output=True, text=True)
    assert "read" in ended.stdout
    assert ended.stderr == ""


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "content",
    [
        b"\0",
        b"\0" * 1000,
        b"\xff\xfe\x00",
        b"\xfe\xff\xd8\x00\x00,",
        b"\xef\xbb\xbf",
        b"\n",
        b"\r\r",
    ],
    ids=repr,
)
def test_bytes_that_are_no_data_are_refused(tmp_path, ending, content):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(content)
    refused(path)
