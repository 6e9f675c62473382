"""What the pages of a Parquet file really unpack to, read from their own headers before any is unpacked.

The sizes in a file's footer may be anything; the reader below pyarrow allocates what each page's header says.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

LONGEST_HEADER = 1 << 16
DEEPEST = 8

# Types and fields of Apache Thrift's compact protocol, in which parquet.thrift's PageHeader is written.
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
INTEGERS = (4, 5, 6)
PAGE_TYPE, UNPACKED, PACKED = 1, 2, 3
ENCODED_BY = {5: 2, 7: 2, 8: 4}
"""The fields of data, dictionary and second-version data pages, and where each of them has its encoding."""
COUNT = 1
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


def pages(file: BinaryIO, start: int, length: int) -> Iterator[Page]:
    """The pages of a column chunk that takes so many bytes; `ValueError` if what stands there are none."""
    end = start + length
    while start < end:
        file.seek(start)
        header = Compact(file.read(LONGEST_HEADER))
        fields = header.struct()
        size, packed = fields.get(UNPACKED, -1), fields.get(PACKED, -1)
        own = {key: fields[key] for key in ENCODED_BY if isinstance(fields.get(key), dict)}
        counts = [one.get(COUNT, -1) for one in own.values()]
        if not all(isinstance(number, int) and number >= 0 for number in (size, packed, *counts)):
            raise ValueError("a page has no valid size")
        has_prefixes = any(one.get(ENCODED_BY[key]) == SHARED_PREFIXES for key, one in own.items())
        is_dictionary = fields.get(PAGE_TYPE) == DICTIONARY_PAGE
        yield Page(size, max(counts, default=0), is_dictionary or has_prefixes)
        start += header.position + packed


class Compact:
    """Reads a struct of the compact protocol as a dictionary of its numbered fields."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """All fields up to the end of the struct; texts are passed over."""
        if depth > DEEPEST:
            raise ValueError("a page header is nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            fields[number] = self._value(head & 0x0F, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind in INTEGERS:
            return self._signed()
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (LIST, SET):
            return self._list(depth)
        self._skip({BYTE: 1, DOUBLE: 8}.get(kind) or self._length(kind))
        return None

    def _length(self, kind: int) -> int:
        if kind != BINARY:
            raise ValueError("a page header has a field of an unknown type")
        return self._unsigned()

    def _list(self, depth: int) -> None:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._unsigned()
        for _ in range(
            min(count, len(self.data) + 1)
        ):  # each takes at least a byte, so more than that must fail
            kind = head & 0x0F
            if kind in (TRUE, FALSE):
                self._skip(1)
            else:
                self._value(kind, depth)

    def _skip(self, count: int) -> None:
        self.position += count
        if self.position > len(self.data):
            raise ValueError("a page header ends too early")

    def _byte(self) -> int:
        self._skip(1)
        return self.data[self.position - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift > 63:
                return value

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
