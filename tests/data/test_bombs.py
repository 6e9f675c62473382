"""Small files that unpack to much, and files without an end: a sentence in seconds, under one gigabyte."""

import io
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from repcl.data.files import read_examples
from repcl.data.parquet_pages import pages
from repcl.data.rows import LONGEST_CELL, LONGEST_ROW, MOST_COLUMNS
from repcl.errors import InvalidData
from tests.data.limited import read_limited

SAME = "the same words "


def repeated(text: str, rows: int) -> pa.Array:
    """One text in many rows, held once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))


def write_parquet(path: Path, text: pa.Array, **options: object) -> Path:
    table = pa.table({"text": text, "label": pa.array(["x"] * len(text))})
    pq.write_table(table, path, compression="zstd", write_statistics=False, **options)
    return path


def dictionary_bomb(path: Path) -> Path:
    """A long text in a dictionary, and 4,096 rows that point to it: 40 GB if a batch of rows is unpacked."""
    return write_parquet(
        path, repeated("x" * (LONGEST_CELL - 1), 4096), dictionary_pagesize_limit=1 << 30, store_schema=False
    )


def rows_bomb(path: Path) -> Path:
    return write_parquet(path, repeated("x", 3_000_000))


def plain_bomb(path: Path) -> Path:
    return write_parquet(path, pa.array(["x" * 9_000_000] * 40), use_dictionary=False)


def prefix_bomb(path: Path) -> Path:
    """Each text repeats the one before it, which takes no bytes in this encoding."""
    texts = pa.array([SAME * 70_000] * 300)
    return write_parquet(path, texts, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})


def long_cell_bomb(path: Path) -> Path:
    return write_parquet(path, pa.array(["x" * (LONGEST_CELL + 1)]))


@pytest.mark.parametrize(
    ("bomb", "sentence"),
    [
        (dictionary_bomb, "bytes of text, as no texts of a data set do"),
        (rows_bomb, "unpacks to 3,000,000 rows"),
        (plain_bomb, "bytes, as no texts of a data set do"),
        (prefix_bomb, "bytes of text, as no texts of a data set do"),
        (long_cell_bomb, "row 1, column 'text' has 10,000,001 characters"),
    ],
)
def test_a_small_parquet_file_that_unpacks_to_much_is_refused(tmp_path, bomb, sentence):
    path = bomb(tmp_path / "a.parquet")
    assert path.stat().st_size < 200_000
    code, said = read_limited(path)
    assert (code, sentence in said) == (2, True), said


def test_the_dictionary_of_a_bomb_takes_less_than_a_few_kilobytes(tmp_path):
    assert dictionary_bomb(tmp_path / "a.parquet").stat().st_size < 10_000


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_pages_are_counted_from_their_own_headers(tmp_path, version, use_dictionary):
    path = tmp_path / "a.parquet"
    table = pa.table({"text": [f"text {number} of many" for number in range(20_000)]})
    pq.write_table(
        table, path, use_dictionary=use_dictionary, data_page_version=version, data_page_size=10_000
    )
    column = pq.read_metadata(path).row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    found = list(pages(io.BytesIO(path.read_bytes()), start, column.total_compressed_size))
    assert len(found) >= 5
    assert sum(page.values for page in found if not page.repeats) == 20_000
    headers = column.total_uncompressed_size - sum(page.size for page in found)
    assert 0 < headers < 200 * len(found)


def test_many_different_texts_in_parquet_are_read_quickly(tmp_path):
    texts = pa.array([f"{number} {SAME * 5}" for number in range(100_000)])
    path = write_parquet(tmp_path / "a.parquet", texts)
    start = time.monotonic()
    assert len(read_examples(path)) == 100_000
    assert time.monotonic() - start < 20


def sparse(path: Path, beginning: bytes, size: int) -> Path:
    """A file of NUL bytes after its beginning, which takes no room on the disk."""
    with path.open("wb") as file:
        file.write(beginning)
        file.truncate(size)
    return path


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("a.csv", b"text,label\n"),
        ("a.csv", b'text,label\n"'),
        ("a.csv", b""),
        ("a.tsv", b"text\tlabel\n"),
        ("a.jsonl", b'{"text": "'),
        ("a.jsonl", b""),
        ("a.jsonl", b"\xff"),
        ("a.parquet", b"PAR1"),
    ],
)
def test_a_file_of_a_gigabyte_without_line_breaks_is_refused(tmp_path, name, beginning):
    code, said = read_limited(sparse(tmp_path / name, beginning, 1 << 30))
    assert code == 2, said
    assert len(said) < 1000


def columns(separator: str, count: int) -> str:
    return separator.join(f"c{number}" for number in range(count)) + "\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "," * (LONGEST_ROW - 1) + "\n"),
        ("a.csv", columns(",", 2_000_000)),
        ("a.tsv", columns("\t", 2_000_000)),
        ("a.csv", columns(",", MOST_COLUMNS + 1) + "1\n"),
        ("a.csv", "text,label\n" + '"a\n",' * 2_000_000 + "\n"),
        ("a.csv", "text,label\n" + "ab," * (LONGEST_ROW // 3 - 1) + "\n"),
        ("a.csv", 'text,label\n"' + "many lines\n" * 3_000_000),
        ("a.jsonl", "[" * 5_000_000),
        ("a.jsonl", '{"text":' * 2_000_000),
        ("a.jsonl", '{"text": "a", "label": [' + "{}," * 6_000_000 + "{}]}"),
        ("a.jsonl", '{"text": "a", "label": ' + "9" * 5000 + "}"),
        ("a.jsonl", '{"text": "a", "label": ' + "9" * 10_000_000 + "}"),
        ("a.jsonl", '{"text": "a", "label": "x", "trigger": "' + "[" * 1_000_000 + '"}'),
    ],
    ids=lambda value: value[:40],
)
def test_too_many_columns_cells_lines_levels_or_digits_are_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    code, said = read_limited(path)
    assert code == 2, said
    assert len(said) < 1000


def test_as_many_columns_as_a_spreadsheet_has_are_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label," + columns(",", MOST_COLUMNS - 2) + "Hello,greet\n")
    assert read_examples(path)[0].text == "Hello"


def test_an_error_from_a_long_cell_is_short(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"text,label\nHello,greet,{'x' * 9_000_000}\n")
    with pytest.raises(InvalidData) as caught:
        read_examples(path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_row_without_an_end_is_named_by_its_line(tmp_path, name):
    path = tmp_path / name
    path.write_text("text,label\n" * (name == "a.csv") + '"word\n",' * 3_000_000 * (name == "a.csv"))
    if name == "a.jsonl":
        sparse(path, b"{", LONGEST_ROW + 10)
    with pytest.raises(InvalidData, match="a row has over 20,000,000 characters"):
        read_examples(path)
