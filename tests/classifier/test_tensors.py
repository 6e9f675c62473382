"""A tensor's file is what safetensors would write, and what is not one is refused."""

import json

import pytest
import torch
from safetensors.torch import load, save

from repcl.classifier.store.tensors import TYPES, empty_tensor, tensor_bytes, tensor_of

SHAPES = [(), (0,), (1,), (3, 0), (5, 7), (2, 3, 4)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", TYPES)
def test_bytes_are_those_of_the_library(kind, shape):
    tensor = (torch.arange(120)[: max(1, torch.Size(shape).numel())] % 2).to(TYPES[kind])
    tensor = tensor[: torch.Size(shape).numel()].reshape(shape)
    assert tensor_bytes(tensor) == save({"tensor": tensor})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", TYPES)
def test_a_tensor_comes_back_from_its_bytes(kind, shape):
    tensor = torch.ones(shape, dtype=TYPES[kind])
    for data in (save({"tensor": tensor}), tensor_bytes(tensor)):
        found = tensor_of(bytes(data))
        assert (found.dtype, found.shape, bool((found == tensor).all())) == (tensor.dtype, tensor.shape, True)
        assert found.data_ptr() % 64 == 0 or not found.numel()


def test_a_transposed_tensor_is_written_row_by_row():
    tensor = torch.arange(6.0).view(2, 3).T
    assert load(bytes(tensor_bytes(tensor)))["tensor"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def file_of(header: object, numbers: bytes = bytes(8)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def described(**changed: object) -> dict[str, object]:
    return {"tensor": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changed}


def test_a_good_header_is_read():
    assert tensor_of(file_of(described())).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(7),
        bytes(8),
        (2**63).to_bytes(8, "little"),
        file_of(b"{"),
        file_of([]),
        file_of({}),
        file_of({"tensor": 1}),
        file_of(described(dtype="F99")),
        file_of(described(dtype=[])),
        file_of(described(shape=[3])),
        file_of(described(shape=[-2])),
        file_of(described(shape=[-1, -2])),
        file_of(described(shape=[2**40, 2**40])),
        file_of(described(shape="ab")),
        file_of(described(shape=None)),
        file_of(described(data_offsets=[4, 8])),
        file_of(described(data_offsets=[0, 4])),
        file_of(described(data_offsets=None)),
        file_of(described(), bytes(7)),
        file_of(described(), bytes(9)),
        file_of(b" " * 5000 + json.dumps(described()).encode()),
        file_of({"tensor": {"dtype": "F32", "shape": [2]}}),
    ],
)
def test_what_is_no_tensor_is_refused_before_memory_is_taken(data):
    with pytest.raises((ValueError, KeyError, TypeError, OverflowError)):
        empty_tensor(data, len(data))
