"""Encodings and separators are found out, and named where they are not the usual."""

import io
from pathlib import Path

import pytest

from repcl.data.encodings import decoded_lines
from repcl.data.examples import Example
from repcl.data.files import read_examples
from repcl.errors import InvalidData


def read(path: Path, content: str | bytes) -> tuple[list[Example], list[str]]:
    """The examples of a file with that content, and what was noted about it."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    notes: list[str] = []
    return read_examples(path, note=notes.append), notes


def lines_of(content: bytes) -> tuple[list[str], list[str]]:
    notes: list[str] = []
    return list(decoded_lines(io.BytesIO(content), "the input", notes.append, longest=100)), notes


# ---- separators ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("separator", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_another_separator_in_a_csv_file_is_found_and_named(tmp_path, separator, name):
    content = f"id{separator}text{separator}label\n1{separator}Hello, you; there{separator}greet\n"
    content = content.replace("Hello, you; there", '"Hello, you; there"')
    found, notes = read(tmp_path / "a.csv", content)
    assert found == [Example("Hello, you; there", "greet")]
    assert notes == [f"{tmp_path / 'a.csv'} is read with {name} between its columns."]


def test_a_tsv_file_with_commas_is_read_and_named(tmp_path):
    found, notes = read(tmp_path / "a.tsv", "text,label\nHello\tyou,greet\n")
    assert found == [Example("Hello\tyou", "greet")]
    assert "is read with commas" in notes[0]


@pytest.mark.parametrize(("name", "separator"), [("a.csv", ","), ("a.tsv", "\t")])
def test_the_usual_separator_is_not_worth_a_note(tmp_path, name, separator):
    content = f"text{separator}label;x{separator}label\na{separator}b{separator}c\n"
    assert read(tmp_path / name, content) == ([Example("a", "c")], [])


def test_a_column_with_a_semicolon_in_its_name_does_not_change_the_separator(tmp_path):
    assert read(tmp_path / "a.csv", "a;b;c;d,text,label\n1,Hello,greet\n") == (
        [Example("Hello", "greet")],
        [],
    )


def test_the_usual_separator_wins_where_both_find_the_columns(tmp_path):
    found, notes = read(tmp_path / "a.csv", "a;text;label;b,text,label\n1,Hello,greet\n")
    assert (found, notes) == ([Example("Hello", "greet")], [])


def test_the_separator_that_finds_most_columns_is_used_to_name_them(tmp_path):
    with pytest.raises(InvalidData, match=r"columns found: 'question', 'topic'\).*with --text-column"):
        read(tmp_path / "a.csv", "question;topic\nHello;greet\n")


def test_a_missing_label_column_is_named_with_its_option(tmp_path):
    with pytest.raises(
        InvalidData, match=r"no column 'label' .*with --label-column \(in Python label_column=\)"
    ):
        read(tmp_path / "a.csv", "text,topic\nHello,greet\n")


def test_without_a_listener_what_was_found_is_a_warning(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text;label\nHello;greet\n")
    with pytest.warns(UserWarning, match="is read with semicolons"):
        read_examples(path)


# ---- encodings of files -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_file_of_windows_is_read_and_named(tmp_path, name):
    lines = {
        "a.csv": "text,label\nCafé für 5 €,place\n",
        "a.jsonl": '{"text": "Café für 5 €", "label": "place"}',
    }
    found, notes = read(tmp_path / name, lines[name].encode("cp1252"))
    assert found == [Example("Café für 5 €", "place")]
    assert notes == [f"{tmp_path / name} is not UTF-8 and is read as Windows-1252 (cp1252)."]


def test_utf16_as_spreadsheets_write_it_is_read_and_named(tmp_path):
    found, notes = read(tmp_path / "a.csv", "text\tlabel\r\nCafé 日本\tplace\r\n".encode("utf-16"))
    assert found == [Example("Café 日本", "place")]
    assert "is read as UTF-16" in notes[0]
    assert "is read with tabs" in notes[1]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_utf8_is_not_worth_a_note(tmp_path, encoding):
    assert read(tmp_path / "a.csv", "text,label\nCafé,place\n".encode(encoding))[1] == []


def test_a_file_that_is_utf8_in_one_line_only_is_refused_by_the_other(tmp_path):
    content = "text,label\nCafé,place\n".encode() + "Bücher,place\n".encode("cp1252")
    with pytest.raises(
        InvalidData, match=r"line 3 is not UTF-8 \(byte 0xfc in 'Bücher,place'\), though other"
    ):
        read(tmp_path / "a.csv", content)
    content = "text,label\nBücher,place\n".encode("cp1252") + "Café,place\n".encode()
    with pytest.raises(
        InvalidData, match=r"line 2 is not UTF-8 .*, though other lines are: save the file as"
    ):
        read(tmp_path / "a.csv", content)


@pytest.mark.parametrize("other", [b"\x81", b"\xe9\0", b"\xe9\x01"])
def test_bytes_that_no_text_of_windows_has_are_refused(tmp_path, other):
    with pytest.raises(InvalidData, match=r"line 2 is not UTF-8 \(byte 0x"):
        read(tmp_path / "a.csv", b"text,label\nCaf" + other + b",place\n")


def test_a_character_cut_off_at_the_end_is_refused_by_its_line(tmp_path):
    with pytest.raises(InvalidData, match="line 3 is not UTF-8"):
        read(tmp_path / "a.csv", "text,label\nCafé,place\nCafé".encode()[:-1])


def test_a_long_line_of_windows_is_not_torn_at_a_letter(tmp_path):
    beginning = '{"label": "x", "text": "'
    text = "a" * ((1 << 16) - len(beginning) - 1) + "é"  # the letter is the last byte of a piece
    found, _ = read(tmp_path / "a.jsonl", f'{beginning}{text} and more"}}'.encode("cp1252"))
    assert found == [Example(f"{text} and more", "x")]


# ---- encodings of streams -----------------------------------------------------------------------


def test_lines_of_a_stream_keep_their_places():
    assert lines_of(b"one\n\n two \r\n\nthree") == (["one", "", " two ", "", "three"], [])


def test_a_mark_is_no_part_of_a_streams_first_line_only():
    assert lines_of("\ufeffone\n\ufefftwo\n".encode()) == (["one", "\ufefftwo"], [])


def test_a_stream_of_windows_is_noticed_at_its_first_letter():
    found, notes = lines_of("plain\nCafé\nBücher\n".encode("cp1252"))
    assert found == ["plain", "Café", "Bücher"]
    assert notes == ["the input is not UTF-8 and is read as Windows-1252 (cp1252)."]


@pytest.mark.parametrize("encodings", [("utf-8", "cp1252"), ("cp1252", "utf-8")])
def test_a_stream_of_two_encodings_is_refused_by_its_line(encodings):
    content = "Café\n".encode(encodings[0]) + "Bücher\n".encode(encodings[1])
    bad = 1 + encodings.index("cp1252")
    with pytest.raises(InvalidData, match=f"line {bad} is not UTF-8 .*, though other lines are"):
        lines_of(content)


def test_a_line_of_a_stream_without_an_end_is_refused():
    assert lines_of("é".encode() * 100)[0] == ["é" * 100]
    with pytest.raises(InvalidData, match="line 2 has over 100 characters"):
        lines_of(b"one\n" + "é".encode() * 101)
    with pytest.raises(InvalidData, match="line 1 has over 100 characters"):
        lines_of("é".encode() * 10_000)
