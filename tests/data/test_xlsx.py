"""Excel workbooks: read as CSV would be, refused in one sentence where they unpack to too much."""

import sys
import time
import zipfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from repcl.data.examples import Example, Span
from repcl.data.files import examples_of, read_examples, wanted_columns
from repcl.data.rows import read_rows
from repcl.errors import LONGEST_SENTENCE, BadRows, InvalidData
from tests.data.limited import read_limited

openpyxl = pytest.importorskip("openpyxl")

SHEET = "xl/worksheets/sheet1.xml"
STRINGS = "xl/sharedStrings.xml"


def write(path: Path, *rows: list[Any], more_sheets: int = 0) -> Path:
    book = openpyxl.Workbook()
    book.active.title = "Tickets"
    for row in rows:
        book.active.append(row)
    for _ in range(more_sheets):
        book.create_sheet()
    book.save(path)
    return path


def changed(path: Path, part: str, content: bytes, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """The workbook with another content in one of its parts."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in (parts | {part: content}).items():
            archive.writestr(name, data, compresslevel=1)
    return path


def good(path: Path) -> Path:
    return write(path, ["text", "label"], ["Hello", "greet"])


def refused(path: Path) -> str:
    with pytest.raises(InvalidData) as caught:
        read_examples(path)
    assert len(str(caught.value)) <= LONGEST_SENTENCE
    return str(caught.value)


# ---- reading ------------------------------------------------------------------------------------


def test_rows_become_examples_and_empty_rows_are_passed_over(tmp_path):
    path = write(
        tmp_path / "a.xlsx", [], ["id", "text", "label"], [1, "Hello", "greet"], [], [2, "Bye", 7], []
    )
    assert read_examples(path) == [Example("Hello", "greet"), Example("Bye", "7")]


def test_numbers_and_days_are_texts_as_in_csv(tmp_path):
    days = [date(2024, 2, 29), datetime(2024, 2, 29, 13, 5), True, 3.0, 2.5]
    path = write(tmp_path / "a.xlsx", ["text", "label"], *[[day, "x"] for day in days])
    assert [example.text for example in read_examples(path)] == [
        "2024-02-29",
        "2024-02-29 13:05:00",
        "True",
        "3",
        "2.5",
    ]


def test_spans_are_read_from_cells(tmp_path):
    path = write(tmp_path / "a.xlsx", ["text", "label", "trigger"], ["They fought", "war", "[5, 11]"])
    assert read_examples(path) == [Example("They fought", "war", trigger=Span(5, 11))]


def test_the_first_of_several_sheets_is_read_and_named(tmp_path):
    path = write(tmp_path / "a.xlsx", ["text", "label"], ["Hello", "greet"], more_sheets=2)
    notes: list[str] = []
    assert len(read_examples(path, note=notes.append)) == 1
    assert notes == [f"{path} has 3 sheets, of which the first, 'Tickets', is read."]


def test_bad_rows_are_named_by_the_sheets_own_numbers(tmp_path):
    rows = [["text", "label"], ["Hello", "greet"], [], [None, "greet"], ["Bye", None], ["Hi", "x", "y"]]
    with pytest.raises(BadRows) as caught:
        read_examples(write(tmp_path / "a.xlsx", *rows))
    assert [problem[:16] for problem in caught.value.problems] == [
        "row 2 (line 4), ",
        "row 3 (line 5), ",
        "row 4 (line 6) h",
    ]


def test_empty_rows_between_others_count_where_every_row_gets_an_answer(tmp_path):
    path = write(tmp_path / "a.xlsx", ["text", "n"], ["Hello", 1], [], [None, 2], ["Bye", 3], [], [])
    wanted = wanted_columns("text", blank_rows=True)
    found = list(examples_of("a", read_rows(path, wanted), wanted, has_labels=False))
    assert [read.example.text for read in found] == ["Hello", "", "", "Bye"]
    assert [dict(read.cells) for read in found] == [
        {"text": "Hello", "n": "1"},
        {},
        {"text": "", "n": "2"},
        {"text": "Bye", "n": "3"},
    ]


def test_columns_of_one_name_are_refused(tmp_path):
    assert "more than one column named 'text'" in refused(
        write(tmp_path / "a.xlsx", ["text", "text"], ["a", "b"])
    )


def test_without_openpyxl_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    path = good(tmp_path / "a.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    monkeypatch.delitem(sys.modules, "repcl.data.xlsx_rows", raising=False)
    assert "needs openpyxl: pip install 'repcl[xlsx]', or save the sheet as CSV" in refused(path)


# ---- what is no workbook, or too much of one ----------------------------------------------------


@pytest.mark.parametrize("content", [b"text,label\n", b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 18, b"\0" * 100])
def test_a_file_that_is_no_workbook_inside_is_refused(tmp_path, content):
    path = tmp_path / "a.xlsx"
    path.write_bytes(content)
    assert "cannot be read as an Excel workbook" in refused(path)


@pytest.mark.parametrize("share", [number / 20 for number in range(20)])
def test_a_workbook_that_ends_early_is_refused(tmp_path, share):
    path = good(tmp_path / "a.xlsx")
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    refused(path)


def sheet(rows: str) -> bytes:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'.encode()


def strings(items: str) -> bytes:
    return f'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{items}</sst>'.encode()


def cell(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


HEADER = f'<row r="1">{cell("A1", "text")}{cell("B1", "label")}</row>'


def far_row() -> bytes:
    return sheet(HEADER + f'<row r="99999999999">{cell("A99999999999", "x")}</row>')


def wide_rows() -> bytes:
    return sheet(HEADER + "".join(f'<row r="{n}"><c r="XFD{n}"/></row>' for n in range(2, 5000)))


def long_text() -> bytes:
    return sheet(HEADER + cell("A2", "x" * (257 << 20)))


def many_cells() -> bytes:
    return sheet(HEADER + "<row>" + "<c/>" * 2_000_000 + "</row>")


def many_texts() -> bytes:
    return strings("<si/>" * 3_000_000)


def entities(part: bytes) -> bytes:
    return b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]>' + part


BOMBS = [
    (SHEET, far_row, "rows with"),
    (SHEET, wide_rows, "cells, as no texts"),
    (SHEET, long_text, "bytes, as no texts"),
    (SHEET, many_cells, "pieces of markup"),
    (STRINGS, many_texts, "pieces of markup"),
    ("xl/styles.xml", many_texts, "pieces of markup"),
    ("xl/workbook.xml", many_texts, "pieces of markup"),
    (SHEET, lambda: entities(sheet(HEADER)), "a document type"),
    (SHEET, lambda: sheet(HEADER).decode().encode("utf-16"), "not in UTF-8"),
    (SHEET, lambda: b"<?xml version='1.0' encoding='cp037'?>" + sheet(HEADER), "not in UTF-8"),
]


@pytest.mark.parametrize(("part", "content", "sentence"), BOMBS)
def test_a_small_workbook_that_unpacks_to_much_is_refused(tmp_path, part, content, sentence):
    path = changed(good(tmp_path / "a.xlsx"), part, content())
    assert path.stat().st_size < 2_000_000
    code, said = read_limited(path)
    assert (code, sentence in said) == (2, True), said


def test_a_document_type_is_seen_where_pieces_meet(tmp_path):
    comment = b"<!--" + b"x" * ((1 << 20) - 10) + b"-->"
    path = changed(
        good(tmp_path / "a.xlsx"), SHEET, comment + entities(sheet(HEADER))[len('<?xml version="1.0"?>') :]
    )
    assert "a document type" in refused(path)


def test_a_part_packed_in_an_unusual_way_is_refused(tmp_path):
    path = good(tmp_path / "a.xlsx")
    assert "packed in an unusual way" in refused(changed(path, SHEET, sheet(HEADER), zipfile.ZIP_BZIP2))


def test_five_thousand_rows_are_read_within_seconds(tmp_path):
    path = write(
        tmp_path / "a.xlsx", ["text", "label"], *[[f"text {n} of many", n % 9] for n in range(5_000)]
    )
    start = time.monotonic()
    assert len(read_examples(path)) == 5_000
    assert time.monotonic() - start < 20


def test_a_title_above_the_names_of_columns_is_one_error_and_not_one_for_each_row(tmp_path):
    path = write(tmp_path / "a.xlsx", ["My export"], [], ["text", "label"], ["Hello", "greet"])
    assert "has no column 'text' and no column 'label' (columns found: 'My export')" in refused(path)
