"""Reads Apache Thrift's compact protocol, as strictly as a check before another reader has to.

Readers take a number that is too large for its type by its last bits, pass over a field whose type is not the
expected one, and merge fields that stand twice. Here the first and the last are refused, and fields are known
by number and type, so that what is checked is what is read later.
"""

from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, STRUCT = (*range(1, 11), 12)
BITS = {I16: 16, I32: 32, I64: 64}
LAST_FIELD = 2**15 - 1
DEEPEST = 16

Fields = dict[tuple[int, int], Any]
"""The values of a struct by number and type: numbers, structs, lists; None for what has no use here."""


class Compact:
    """Reads values one after the other; `ValueError` for what is none.

    Attributes:
        data: all bytes there are.
        position: of the next value.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def struct(self, depth: int = 0) -> Fields:
        """All fields up to the end of the struct; texts are passed over."""
        if depth > DEEPEST:
            raise ValueError("a header is nested too deep")
        fields: Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed(BITS[I16])
            kind = head & 0x0F
            if not 0 <= number <= LAST_FIELD or (number, kind) in fields:
                raise ValueError("a header has a field twice, or one that cannot be")
            fields[number, kind] = self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (TRUE, FALSE):
            return None
        if kind in BITS:
            return self._signed(BITS[kind])
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (LIST, SET):
            return self._list(depth + 1)
        self._skip({BYTE: 1, DOUBLE: 8}.get(kind) or self._length(kind))
        return None

    def _length(self, kind: int) -> int:
        if kind != BINARY:
            raise ValueError("a header has a field of an unknown type")
        return self._unsigned()

    def _list(self, depth: int) -> list[Any]:
        if depth > DEEPEST:
            raise ValueError("a header is nested too deep")
        head = self._byte()
        kind = head & 0x0F
        count = head >> 4 if head >> 4 < 15 else self._unsigned()
        if count > len(self.data) - self.position:  # each takes at least a byte
            raise ValueError("a header ends too early")
        return [self._element(kind, depth) for _ in range(count)]

    def _element(self, kind: int, depth: int) -> Any:
        """A value in a list, where a flag takes a byte of its own."""
        return self._skip(1) if kind in (TRUE, FALSE) else self._value(kind, depth)

    def _skip(self, count: int) -> None:
        self.position += count
        if self.position > len(self.data):
            raise ValueError("a header ends too early")

    def _byte(self) -> int:
        self._skip(1)
        return self.data[self.position - 1]

    def _unsigned(self, bits: int = 32) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if value >> bits or shift > 70:
                raise ValueError("a header has a number that is too large for its type")
            if byte < 0x80:
                return value

    def _signed(self, bits: int) -> int:
        value = self._unsigned(bits)
        return (value >> 1) ^ -(value & 1)
