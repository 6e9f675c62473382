"""What a Parquet file really unpacks to, read from its own bytes before any of its pages is unpacked.

The sizes in a file's footer may be anything; the reader below pyarrow allocates what each page's header says.
The footer is read here too, for pyarrow ends the whole process if statistics in it contradict its types.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from repcl.data.compact import I32, I64, LIST, STRUCT, Compact, Fields

LONGEST_HEADER = 1 << 16
# after the footer: its length, and the four bytes that the file begins with
END = 8

# Numbers and types of fields, as in parquet.thrift.
ROW_GROUPS, COLUMNS, CHUNK = (4, LIST), (1, LIST), (3, STRUCT)
VALUES, CHUNK_SIZE, DATA_START, DICTIONARY_START = (5, I64), (7, I64), (9, I64), (11, I64)
PAGE_TYPE, UNPACKED, PACKED, COUNT = (1, I32), (2, I32), (3, I32), (1, I32)
ENCODED_BY = {(5, STRUCT): (2, I32), (7, STRUCT): (2, I32), (8, STRUCT): (4, I32)}
"""The fields of data, dictionary and second-version data pages, and where each of them has its encoding."""
DICTIONARY_PAGE = 2
SHARED_PREFIXES = 7


@dataclass(frozen=True)
class Page:
    """What a page's header says.

    Attributes:
        size: in bytes, once unpacked.
        values: how many it holds.
        repeats: whether its bytes may stand in many values, so that values together take more than the page.
    """

    size: int
    values: int
    repeats: bool


def pages_of(file: BinaryIO, columns: Container[int]) -> Iterator[Page]:
    """Every page of the columns with these numbers; `ValueError` if the file is not a Parquet file."""
    for group in _structs(_footer(file), ROW_GROUPS):
        for number, column in enumerate(_structs(group, COLUMNS)):
            if number in columns:
                chunk = column.get(CHUNK, {})
                if chunk.get(VALUES) == 0:  # of an empty row group: it has no pages
                    continue
                first = _size(chunk, DATA_START)
                dictionary = _size(chunk, DICTIONARY_START) if DICTIONARY_START in chunk else 0
                yield from pages(file, min(first, dictionary or first), _size(chunk, CHUNK_SIZE))


def pages(file: BinaryIO, start: int, length: int) -> Iterator[Page]:
    """The pages of a column chunk that takes so many bytes; `ValueError` if what stands there are none."""
    end = start + length
    while start < end:
        file.seek(start)
        header = Compact(file.read(LONGEST_HEADER))
        fields = header.struct()
        own = {key: fields[key] for key in ENCODED_BY if key in fields}
        counts = [_size(one, COUNT) for one in own.values()]
        has_prefixes = any(one.get(ENCODED_BY[key]) == SHARED_PREFIXES for key, one in own.items())
        is_dictionary = fields.get(PAGE_TYPE) == DICTIONARY_PAGE
        yield Page(_size(fields, UNPACKED), max(counts, default=0), is_dictionary or has_prefixes)
        start += header.position + _size(fields, PACKED)


def _footer(file: BinaryIO) -> Fields:
    size = file.seek(0, 2)
    file.seek(max(0, size - END))
    start = size - END - int.from_bytes(file.read(4), "little")
    if start < 0:
        raise ValueError("its footer is longer than the file")
    file.seek(start)
    return Compact(file.read(size - END - start)).struct()


def _structs(fields: Fields, key: tuple[int, int]) -> list[Fields]:
    found: list[Any] = fields.get(key, [])
    if not all(isinstance(one, dict) for one in found):
        raise ValueError("its footer lists something else than row groups and columns")
    return found


def _size(fields: Fields, key: tuple[int, int]) -> int:
    size: int = fields.get(key, -1)
    if size < 0:
        raise ValueError("a page or a column has no valid size")
    return size
