"""A tensor ↔ the bytes of a file in safetensors form that holds this one, in a single copy.

The library's own functions make three on the way, which for very many classes is the peak of a whole life.
"""

import json

import numpy as np
import torch
from torch import Tensor

from repcl.classifier.store.tensor_header import NAME, read_header

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


def tensor_bytes(tensor: Tensor) -> bytearray:
    """The bytes, as the library would write them."""
    described = {
        "dtype": TYPE_NAMES[tensor.dtype],
        "shape": list(tensor.shape),
        "data_offsets": [0, tensor.nbytes],
    }
    header = json.dumps({NAME: described}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    data = bytearray(8 + len(header) + tensor.nbytes)
    data[: 8 + len(header)] = len(header).to_bytes(8, "little") + header
    if tensor.numel():
        numbers = torch.frombuffer(data, dtype=tensor.dtype, offset=8 + len(header))
        numbers.view(tensor.shape).copy_(tensor.detach())
    return data


def empty_tensor(start: bytes, size: int) -> tuple[Tensor, int]:
    """The tensor without its numbers, which takes no memory, and where they begin; an error if it is none.

    Args:
        start: the first bytes, at least so many as the header has.
        size: of all bytes.
    """
    header = read_header(start, size)
    return torch.empty(header.shape, dtype=TYPES[header.kind], device="meta"), header.end


def tensor_of(data: bytes) -> Tensor:
    """The tensor again; an error if the bytes hold none."""
    empty, start = empty_tensor(data, len(data))
    # not the bytes themselves: they may lie at an odd address, where other kernels give other last bits
    found = torch.empty(empty.shape, dtype=empty.dtype)
    found.flatten().view(torch.uint8).numpy()[:] = np.frombuffer(data, np.uint8, offset=start)
    return found
