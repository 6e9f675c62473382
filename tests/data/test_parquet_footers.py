"""Footers of Parquet files that contradict themselves: one sentence each, never the end of the process."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from repcl.data.compact import BINARY, I16, I32, I64, LIST, STRUCT, TRUE, Compact
from repcl.data.files import read_examples
from repcl.data.parquet_pages import pages, pages_of
from repcl.errors import InvalidData
from tests.data.limited import read_limited

# pyarrow may end the process, so each file's turn is in one of its own; it says how many it read and refused.
FLIP_BITS = """
import sys
from pathlib import Path
from repcl.data.files import read_examples
from repcl.errors import RepclError

path, every, good = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[1]).read_bytes()
footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
read = refused = 0
for bit in range(8 * footer, 8 * len(good), every):
    data = bytearray(good)
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    try:
        read_examples(path, note=lambda _: None)
        read += 1
    except RepclError:
        refused += 1
print(read, refused)
"""


def write(path: Path, columns: dict[str, object], **options: object) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


KINDS = {
    "texts": ({"text": ["Hello", "Bye"], "label": ["a", "b"]}, {}),
    "numbers": ({"text": ["Hello"] * 9, "label": [1] * 9}, {"compression": "none"}),
    "lists": ({"text": ["They fought"], "label": ["x"], "trigger": [[5, 11]]}, {"compression": "zstd"}),
    "groups": ({"text": [f"text {n}" for n in range(6)], "label": ["x"] * 6}, {"row_group_size": 2}),
    "second version": ({"text": ["a", "b"], "label": ["x", "y"]}, {"data_page_version": "2.0"}),
}


def flip_bits(path: Path, every: int) -> tuple[int, int]:
    """How many files with one bit of the footer changed are read, and how many refused."""
    ended = subprocess.run(
        [sys.executable, "-c", FLIP_BITS, str(path), str(every)],
        capture_output=True,
        text=True,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    read, refused = map(int, ended.stdout.split())
    return read, refused


@pytest.mark.parametrize(
    "every", [23, pytest.param(1, marks=pytest.mark.slow)], ids=["some bits", "every bit"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_bit_of_a_footer_never_ends_the_process(tmp_path, kind, every):
    columns, options = KINDS[kind]
    read, refused = flip_bits(write(tmp_path / "a.parquet", columns, **options), every)
    assert min(read, refused) > 10


# An element of the schema begins with its physical type, a number of four bytes' type; 12 is a text's.
TEXT_TYPE = bytes([0x15, 12])


@pytest.mark.parametrize("kind", [0, 2, 4, 6, 8, 10], ids=["flag", "int", "long", "time", "float", "double"])
def test_statistics_that_contradict_the_type_of_their_column_are_refused(tmp_path, kind):
    path = write(tmp_path / "a.parquet", {"text": ["Hello", "Bye"], "label": ["a", "b"]})
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    at = data.index(TEXT_TYPE, footer)
    path.write_bytes(data[:at] + bytes([0x15, kind]) + data[at + 2 :])
    ended = subprocess.run(
        [sys.executable, "-m", "repcl", "learn", str(tmp_path / "model"), str(path)],
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr.count("Traceback")) == (2, 0)
    assert len(ended.stderr.strip().splitlines()) < 9


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_footer_that_ends_early_is_refused(tmp_path, cut):
    path = write(tmp_path / "a.parquet", {"text": ["Hello"], "label": ["a"]})
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little") - cut
    path.write_bytes(data[: -8 - cut] + length.to_bytes(4, "little") + data[-4:])
    with pytest.raises(InvalidData, match="cannot be read as Parquet"):
        read_examples(path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_pages_that_a_footer_leads_to_are_those_that_pyarrow_finds(tmp_path, kind):
    columns, options = KINDS[kind]
    path = write(tmp_path / "a.parquet", columns, **options)
    metadata, file = pq.read_metadata(path), io.BytesIO(path.read_bytes())
    for number in range(metadata.num_columns):
        chunks = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
        starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
        expected = [
            page
            for start, chunk in zip(starts, chunks, strict=True)
            for page in pages(file, start, chunk.total_compressed_size)
        ]
        assert list(pages_of(file, {number})) == expected


def test_a_column_is_known_by_its_place_and_not_by_the_name_its_pages_give_it(tmp_path):
    bomb = pa.DictionaryArray.from_arrays(pa.array([0] * 900_000, pa.int32()), pa.array(["x" * 2_000_000]))
    path = write(tmp_path / "a.parquet", {"text": bomb, "label": ["a"] * 900_000})
    data = path.read_bytes()
    assert data.count(b"\x04text") > 1
    at = data.rindex(b"\x04text")  # in the column's own path
    path.write_bytes(data[:at] + b"\x04nope" + data[at + 5 :])
    code, said = read_limited(path)
    assert (code, "bytes of text" in said) == (2, True), said


# ---- the protocol -------------------------------------------------------------------------------


def test_fields_are_known_by_number_and_type():
    data = bytes([0x15, 10, 0x16, 12, 0x18, 2, 0x61, 0x62, 0x19, 0x25, 2, 4, 0x1C, 0x11, 0, 0])
    assert Compact(data).struct() == {
        (1, I32): 5,
        (2, I64): 6,
        (3, BINARY): None,
        (4, LIST): [1, 2],
        (5, STRUCT): {(1, TRUE): None},
    }


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([0x15, 2, 0x05, 2, 2, 0], "twice"),
        ([0x05, 0x80, 0x80, 0x08, 2, 0], "too large"),  # the number of a field, 65,536
        ([0x05, 0x01, 2, 0], "cannot be"),  # and one below nothing
        ([0x15, 0x80, 0x80, 0x80, 0x80, 0x10, 0], "too large"),  # 2 ** 32 in 32 bits
        ([0x16, *[0xFF] * 10, 0x01, 0], "too large"),
        ([0x19] * 60, "too deep"),
        ([0x19, *[0x19] * 60], "too deep"),
        ([0x1C] * 60, "too deep"),
        ([0x19, 0xF5, 0xFF, 0xFF, 0x7F], "too early"),  # a list of two million
        ([0x18, 0x7F], "too early"),
        ([0x1B, 0], "unknown type"),
        ([0x15], "too early"),
    ],
)
def test_what_other_readers_would_read_differently_is_refused(data, sentence):
    with pytest.raises(ValueError, match=sentence):
        Compact(bytes(data)).struct()


def test_a_small_number_keeps_its_sign():
    assert Compact(bytes([0x14, 3, 0])).struct() == {(1, I16): -2}
