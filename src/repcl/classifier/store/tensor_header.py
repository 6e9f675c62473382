"""What the header of a file in safetensors form says about its one tensor; read without torch."""

import math
from typing import NamedTuple

from repcl.files import parse_json

NAME = "tensor"
LARGEST_HEADER = 4096
"""Bytes of the header of a file with one tensor, of which this is many times more than needed."""
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
"""Bytes of a number, by the name of its kind."""


class Header(NamedTuple):
    """The kind of the numbers, the tensor's shape, and where the header ends and the numbers begin."""

    kind: str
    shape: tuple[int, ...]
    end: int


def read_header(start: bytes | memoryview, size: int) -> Header:
    """The header; an error if the bytes hold no tensor.

    Args:
        start: the first bytes, at least so many as the header has.
        size: of all bytes.
    """
    length = int.from_bytes(start[:8], "little")
    if length > min(len(start) - 8, LARGEST_HEADER):
        raise ValueError("the header is too long")
    head = parse_json(bytes(start[8 : 8 + length]))[NAME]
    kind, shape = head["dtype"], tuple(int(number) for number in head["shape"])
    if min(shape, default=0) < 0 or math.prod(shape) * SIZES[kind] + 8 + length != size:
        raise ValueError(f"{size} bytes do not hold a tensor of that shape")
    if head["data_offsets"] != [0, size - 8 - length]:
        raise ValueError("its numbers do not begin behind the header and end with the file")
    return Header(kind, shape, 8 + length)
