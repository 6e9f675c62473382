"""A tensor ↔ the bytes of a file in safetensors form that holds this one, without a copy of all of it.

The library's own functions make three on the way, which for very many classes is the peak of a whole life.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from repcl.classifier.store.tensor_header import NAME, read_header

LARGEST_PIECE = 4 << 20
"""Bytes of a tensor that are copied at a time."""
TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
TYPE_NAMES = {kind: name for name, kind in TYPES.items()}


@dataclass(frozen=True)
class TensorFile:
    """The bytes of a tensor's file, as the library would write them, in pieces made when asked for."""

    tensor: Tensor

    def __iter__(self) -> Iterator[bytes]:
        """The header with the first numbers, then the other numbers."""
        start, tensor = self._header(), self.tensor.detach()
        blocks = torch.split(tensor, self._rows_per_piece()) if tensor.ndim else [tensor]
        for block in blocks:
            yield start + numbers_in(block.cpu().contiguous()).tobytes()
            start = b""

    def _header(self) -> bytes:
        described = {
            "dtype": TYPE_NAMES[self.tensor.dtype],
            "shape": list(self.tensor.shape),
            "data_offsets": [0, self.tensor.nbytes],
        }
        text = json.dumps({NAME: described}, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text

    def _rows_per_piece(self) -> int:
        row = self.tensor.nbytes // max(1, len(self.tensor))
        return max(1, LARGEST_PIECE // max(1, row))


def numbers_in(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor on the CPU, as bytes."""
    return tensor.flatten().view(torch.uint8).numpy().data


def empty_tensor(start: bytes, size: int) -> Tensor:
    """The tensor without its numbers, which takes no memory; an error if it is none.

    Args:
        start: the first bytes, at least so many as the header has.
        size: of all bytes.
    """
    header = read_header(start, size)
    return torch.empty(header.shape, dtype=TYPES[header.kind], device="meta")
