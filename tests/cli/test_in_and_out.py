"""What goes into `repcl predict` and `repcl learn`, and what comes out: every row in its place."""

import csv
import io
import json
import shutil
import sys
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from repcl import ContinualClassifier
from repcl.data import Example, Span
from tests.classifier.conftest import save_tiny_encoder
from tests.conftest import toy_task


@pytest.fixture(scope="module")
def taught(encoder_folder, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("taught") / "model"
    task = toy_task("sentence", "fruit", "vehicle", train=12)
    texts = [f"{one.text} {number}" for number, one in enumerate(task.train)]
    classifier = ContinualClassifier("ncm", str(encoder_folder), device="cpu")
    classifier.fit(texts, [one.label for one in task.train]).save(path)
    return path


@pytest.fixture
def model(taught, tmp_path) -> Path:
    return shutil.copytree(taught, tmp_path / "model")


@pytest.fixture
def piped(monkeypatch):
    """Put bytes on the standard input."""

    def put(content: str | bytes) -> None:
        data = content if isinstance(content, bytes) else content.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


def labels(output) -> list[str]:
    assert output.code == 0, output.err
    return [line.split("\t")[0] for line in output.out.splitlines()]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# ---- lines --------------------------------------------------------------------------------------


def test_each_line_gets_its_answer_and_an_empty_line_an_empty_one(repcl, model, piped):
    piped("\nthe apple\n\n  \nthe car\n")
    lines = repcl("predict", model).out.splitlines()
    assert [line.split("\t")[2] for line in lines] == ["", "the apple", "", "", "the car"]
    assert [lines[index] for index in (0, 2, 3)] == ["\t\t"] * 3


def test_an_empty_line_stays_empty_in_json(repcl, model, piped):
    piped("the apple\n\n")
    told = [json.loads(line) for line in repcl("predict", model, "--json", "--unknown").out.splitlines()]
    assert told[1] == {"text": "", "label": None, "confidence": 0.0, "is_unknown": True, "top": []}


def test_label_confidence_and_text_are_columns_also_for_labels_with_spaces(repcl, model):
    repcl("classes", "rename", model, "fruit", "fresh fruit 0.5")
    line = repcl("predict", model, "the apple", "--top", 2).out.rstrip("\n")
    first, share, second, other, text = line.split("\t")
    assert {first, second} == {"fresh fruit 0.5", "vehicle"}
    assert float(share) + float(other) == pytest.approx(1, abs=0.011)
    assert text == "the apple"


def test_an_unknown_text_names_its_best_classes_behind_that_word(repcl, model):
    words = ("--unknown", "--threshold", 1, "--top", 2)
    first, share, second, other, _ = repcl("predict", model, "the war", *words).out.rstrip("\n").split("\t")
    assert first == "unknown"
    assert second in ("fruit", "vehicle")
    assert share == other


@pytest.mark.parametrize("threshold", [0, 1])
def test_a_file_names_the_same_classes_as_the_pipe(repcl, model, tmp_path, threshold):
    data, out = tmp_path / "in.txt", tmp_path / "out.tsv"
    data.write_text("the war\n\nthe car\n")
    words = ("--unknown", "--threshold", threshold, "--top", 2)
    piped = [line.split("\t") for line in repcl("predict", model, "--file", data, *words).out.splitlines()]
    assert repcl("predict", model, "--file", data, "--output", out, *words).code == 0
    written = [line.split("\t") for line in out.read_text().splitlines()[1:]]
    assert [row[1::2] for row in written] == [row[:4:2] for row in piped]


@pytest.mark.parametrize("words", [(), ("--unknown",), ("--unknown", "--threshold", 0)])
def test_an_empty_typed_text_is_unknown(repcl, model, words):
    assert repcl("predict", model, "", *words).out == "unknown\t0.00\t\n"
    told = json.loads(repcl("predict", model, " ", *words, "--json").out)
    assert (told["label"], told["is_unknown"], told["top"]) == ("unknown", True, [])


def test_lines_of_windows_are_read_and_named(repcl, model, piped):
    piped("the café\nBücher\n".encode("cp1252"))
    output = repcl("predict", model)
    assert [line.split("\t")[2] for line in output.out.splitlines()] == ["the café", "Bücher"]
    assert output.err == "Note: the standard input is not UTF-8 and is read as Windows-1252 (cp1252).\n"


def test_lines_in_utf16_are_read_and_named(repcl, model, piped, tmp_path):
    content = "the café\r\n\r\nBücher\r\n".encode("utf-16")
    piped(content)
    output = repcl("predict", model)
    assert [line.split("\t")[2] for line in output.out.splitlines()] == ["the café", "", "Bücher"]
    assert "is read as UTF-16" in output.err
    (tmp_path / "a.txt").write_bytes(content)
    assert repcl("predict", model, "--file", tmp_path / "a.txt").out == output.out


def test_lines_that_only_begin_like_data_stay_lines(repcl, model, piped):
    for first in ("text, please", "{not json", "{", "some text", '"text'):
        piped(f"{first}\nthe apple\n")
        output = repcl("predict", model)
        assert (len(output.out.splitlines()), output.err) == (2, "")


# ---- data on the standard input -----------------------------------------------------------------


@pytest.mark.parametrize(("separator", "note"), [(",", ""), (";", "with semicolons"), ("\t", "with tabs")])
def test_csv_on_the_standard_input_is_known_by_its_header(repcl, model, piped, separator, note):
    piped(separator.join(["id", "text"]) + "\n" + separator.join(["1", "the apple"]) + "\n")
    output = repcl("predict", model)
    assert output.out.endswith("\tthe apple\n")
    assert "the standard input is read as CSV with the columns 'id', 'text'; --format lines" in output.err
    assert note in output.err


def test_rows_with_an_empty_text_keep_their_place(repcl, model, piped):
    piped("id,text\n1,the apple\n2,\n3,the car\n")
    assert labels(repcl("predict", model))[1] == "unknown"
    piped("text\nthe apple\n\nthe car\n")
    assert labels(repcl("predict", model))[1] == "unknown"


def test_jsonl_on_the_standard_input_takes_spans(repcl, tmp_path, piped):
    task = toy_task("event", "fruit", "vehicle", train=6)
    encoder = save_tiny_encoder(tmp_path / "encoder", "event")
    classifier = ContinualClassifier("ncm", str(encoder), device="cpu")
    classifier.fit(task.train, [one.label for one in task.train]).save(tmp_path / "model")
    asked = Example("the apple is in a car", "", trigger=Span(4, 9))
    rows = [{"text": asked.text, "trigger": [4, 9]}, {"text": ""}]
    piped("".join(f"{json.dumps(row)}\n" for row in rows) + "\n" + json.dumps(rows[0]))
    output = repcl("predict", tmp_path / "model")
    label = str(classifier.predict([asked]).item())
    assert labels(output) == [label, "unknown", "unknown", label]
    assert "is read as JSONL; --format lines reads it line by line" in output.err


def test_the_format_can_be_given(repcl, model, piped, tmp_path):
    piped("text\nthe apple\n")
    assert len(labels(repcl("predict", model, "--format", "lines"))) == 2
    (tmp_path / "export.dat").write_text("text;id\nthe apple;1\n")
    assert len(labels(repcl("predict", model, "--file", tmp_path / "export.dat", "--format", "csv"))) == 1
    output = repcl("predict", model, "a", "--format", "xml")
    assert (output.code, "Expected --format lines, csv, tsv, jsonl, found 'xml'" in output.err) == (2, True)


# ---- bad rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["learn", "evaluate", "predict"])
def test_all_bad_rows_are_shown_line_by_line(repcl, model, tmp_path, command):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "a", "label": "x"}\n' + "{\n" * 23)
    words = ("--file", path) if command == "predict" else (path,)
    output = repcl(command, model, *words)
    lines = output.err.splitlines()
    assert output.code == 2
    assert output.out == ""
    assert lines[0] == f"Error: {path} has 23 rows that cannot be used:"
    assert lines[1].startswith("  line 2 is not valid JSON")
    assert len(lines) == 22
    assert lines[-1] == "  and 3 more."


def test_a_wrong_column_is_said_with_its_option(repcl, model, tmp_path):
    (tmp_path / "a.csv").write_text("question;topic\nHello;greet\n")
    output = repcl("learn", model, tmp_path / "a.csv")
    assert output.code == 2
    assert "is read with semicolons between its columns" in output.err
    assert (
        "columns found: 'question', 'topic'): name the right column with --text-column and --label-column"
        in output.err
    )


# ---- a file of answers --------------------------------------------------------------------------


def test_all_other_columns_are_kept_beside_the_answers(repcl, model, tmp_path):
    data, out = tmp_path / "in.csv", tmp_path / "out.csv"
    data.write_text('id;text;"a, b"\n7;the apple;x\n8;;"y\n;"\n9;the car;\n')
    output = repcl("predict", model, "--file", data, "--output", out)
    assert output.code == 0, output.err
    assert f"Wrote 3 rows to {out}, with the columns predicted and confidence." in output.out
    assert "1 of them is unknown." in output.out
    rows = rows_of(out)
    assert list(rows[0]) == ["id", "text", "a, b", "predicted", "confidence"]
    assert [(row["id"], row["text"], row["a, b"]) for row in rows] == [
        ("7", "the apple", "x"),
        ("8", "", "y\n;"),
        ("9", "the car", ""),
    ]
    assert [row["predicted"] for row in rows] == labels(repcl("predict", model, "--file", data))
    assert rows[1]["confidence"] == "0.0"


def test_more_classes_get_columns_of_their_own(repcl, model, tmp_path):
    data, out = tmp_path / "in.txt", tmp_path / "out.tsv"
    data.write_text("the apple\n\nthe car\n")
    assert repcl("predict", model, "--file", data, "--output", out, "--top", 2).code == 0
    lines = [line.split("\t") for line in out.read_text().splitlines()]
    assert lines[0] == ["text", "predicted", "confidence", "top_2", "top_2_confidence"]
    assert sorted([lines[1][1], lines[1][3]]) == ["fruit", "vehicle"]
    assert lines[2] == ["", "", "0.0", "", ""]


def test_values_of_jsonl_stay_as_they_are_in_jsonl_and_become_json_in_csv(repcl, model, tmp_path):
    data = tmp_path / "in.jsonl"
    row = {"text": "the apple", "tags": ["a", 1], "n": 5, "none": None}
    data.write_text(json.dumps(row) + '\n{"text": "the car", "more": true}\n')
    assert repcl("predict", model, "--file", data, "--output", tmp_path / "out.jsonl").code == 0
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert {key: first[key] for key in row} == row
    assert second["more"] is True
    assert repcl("predict", model, "--file", data, "--output", tmp_path / "out.csv").code == 0
    cells = rows_of(tmp_path / "out.csv")
    assert (cells[0]["tags"], cells[0]["n"], cells[0]["none"], cells[1]["more"]) == (
        '["a", 1]',
        "5",
        "",
        "true",
    )


def test_columns_of_parquet_are_kept_also_those_of_days(repcl, model, tmp_path):
    table = {"text": ["the apple", None], "day": [datetime(2024, 2, 29), None], "n": [1.5, 2.0]}
    pq.write_table(pa.table(table), tmp_path / "in.parquet")
    out = tmp_path / "out.csv"
    assert repcl("predict", model, "--file", tmp_path / "in.parquet", "--output", out).code == 0
    rows = rows_of(out)
    assert [(row["text"], row["day"][:10], row["n"]) for row in rows] == [
        ("the apple", "2024-02-29", "1.5"),
        ("", "", "2.0"),
    ]
    assert rows[1]["predicted"] == "unknown"


def test_columns_that_no_table_can_hold_are_refused_where_they_would_be_kept(repcl, model, tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["the apple"], "deep": [{"a": 1}]}), path)
    assert repcl("predict", model, "--file", path).code == 0
    output = repcl("predict", model, "--file", path, "--output", tmp_path / "out.csv")
    assert output.code == 2
    assert "column 'deep': values of the type 'struct<a: int64>' cannot be kept" in output.err


def test_a_workbook_is_answered_row_by_row(repcl, model, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "text"], [1, "the apple"], [], [3, "the car"]):
        book.active.append(row)
    book.save(tmp_path / "in.xlsx")
    out = tmp_path / "out.csv"
    assert repcl("predict", model, "--file", tmp_path / "in.xlsx", "--output", out).code == 0
    assert [row["id"] for row in rows_of(out)] == ["1", "", "3"]


def test_an_output_speaks_json(repcl, model, tmp_path):
    out = tmp_path / "out.csv"
    told = json.loads(repcl("predict", model, "the apple", "", "--output", out, "--json").out)
    assert told == {"output": str(out), "rows": 2, "unknown": 1}
    assert [row["text"] for row in rows_of(out)] == ["the apple", ""]


@pytest.mark.parametrize(
    ("content", "out", "sentence"),
    [
        ("text,predicted\nthe apple,x\n", "out.csv", "a column 'predicted' in the data already"),
        ("text\nthe apple\n", "out.xlsx", "Expected --output to end in .csv, .tsv, .jsonl"),
        ("text\nthe apple\n", "in.csv", "is what is read here: give another --output"),
        ("text\nthe apple\n", "old.csv", "exists: give another --output, or --force"),
        ("text\nthe apple\n", "no/out.csv", "There is no folder"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work(
    repcl, model, tmp_path, monkeypatch, content, out, sentence
):
    (tmp_path / "in.csv").write_text(content)
    (tmp_path / "old.csv").write_text("old")
    monkeypatch.setattr(ContinualClassifier, "load", lambda *_, **__: pytest.fail("worked before refusing"))
    output = repcl("predict", model, "--file", tmp_path / "in.csv", "--output", tmp_path / out)
    assert (output.code, sentence in output.err) == (2, True), output.err
    assert (tmp_path / "old.csv").read_text() == "old"


def test_an_output_is_replaced_with_force(repcl, model, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    assert repcl("predict", model, "the apple", "--output", out, "--force").code == 0
    assert rows_of(out)[0]["text"] == "the apple"


# ---- learn --------------------------------------------------------------------------------------


def test_texts_that_are_nearly_the_same_are_noted_or_dropped(repcl, encoder_folder, tmp_path):
    data = tmp_path / "a.csv"
    rows = ["the apple,fruit", "The  apple!,fruit", "the apple,vehicle", "a pear,fruit", "a car,vehicle"]
    data.write_text("text,label\n" + "\n".join(rows) + "\n")
    words = (data, "--method", "ncm", "--encoder", encoder_folder, "--device", "cpu")
    noted = repcl("learn", tmp_path / "all", *words)
    assert "Note: 1 text nearly the same as another of its class" in noted.err
    assert "from 5 texts" in noted.out
    dropped = repcl("learn", tmp_path / "single", *words, "--drop-duplicates")
    assert "Note: 1 text left out" in dropped.err
    assert "from 4 texts" in dropped.out


def test_learn_reads_what_a_spreadsheet_of_windows_saves(repcl, encoder_folder, tmp_path):
    data = tmp_path / "a.csv"
    data.write_bytes("text;label\nein Café;Ort\neine Straße;Ort\nÄpfel;Obst\n".encode("cp1252"))
    words = (data, "--method", "ncm", "--encoder", encoder_folder, "--device", "cpu")
    output = repcl("learn", tmp_path / "model", *words)
    assert "Learned 2 new classes (Obst, Ort) from 3 texts" in output.out
    assert "cp1252" in output.err
    assert "semicolons" in output.err
