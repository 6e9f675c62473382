"""A tensor's file is what safetensors would write, and what is not one is refused."""

import json

import pytest
import torch
from safetensors.torch import load, save

from repcl.classifier.store import tensors
from repcl.classifier.store.files import BlobFolder, BlobsInMemory
from repcl.classifier.store.records import Blob, DamagedModel
from repcl.classifier.store.snapshot import _tensor
from repcl.classifier.store.tensors import TYPES, TensorFile, empty_tensor

SHAPES = [(), (0,), (1,), (3, 0), (5, 7), (2, 3, 4)]


def written(tensor: torch.Tensor) -> bytes:
    return b"".join(TensorFile(tensor))


def read(data: bytes) -> torch.Tensor:
    blobs = BlobsInMemory()
    return _tensor(blobs, blobs.put(data, "safetensors"))


@pytest.fixture
def small_pieces(monkeypatch) -> None:
    monkeypatch.setattr(tensors, "LARGEST_PIECE", 40)
    monkeypatch.setattr("repcl.classifier.store.files.CHUNK", 40)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", TYPES)
def test_bytes_are_those_of_the_library(kind, shape):
    tensor = (torch.arange(120)[: max(1, torch.Size(shape).numel())] % 2).to(TYPES[kind])
    tensor = tensor[: torch.Size(shape).numel()].reshape(shape)
    assert written(tensor) == save({"tensor": tensor})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", TYPES)
def test_a_tensor_comes_back_from_its_bytes(kind, shape):
    tensor = torch.ones(shape, dtype=TYPES[kind])
    for data in (save({"tensor": tensor}), written(tensor)):
        found = read(data)
        assert (found.dtype, found.shape, bool((found == tensor).all())) == (tensor.dtype, tensor.shape, True)
        assert found.data_ptr() % 64 == 0 or not found.numel()


def test_a_transposed_tensor_is_written_row_by_row():
    tensor = torch.arange(6.0).view(2, 3).T
    assert load(written(tensor))["tensor"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


@pytest.mark.usefixtures("small_pieces")
def test_a_large_tensor_is_written_in_pieces_of_whole_rows_none_of_which_is_large():
    tensor = torch.arange(27.0).view(3, 9).T  # 12 bytes a row, so three rows fit
    pieces = list(TensorFile(tensor))
    assert [len(piece) for piece in pieces[1:]] == [36, 36]
    assert b"".join(pieces) == save({"tensor": tensor.contiguous()})


@pytest.mark.usefixtures("small_pieces")
def test_a_row_that_is_larger_than_a_piece_is_a_piece():
    tensor = torch.arange(22.0).view(2, 11)
    assert (len(list(TensorFile(tensor))), written(tensor)) == (2, save({"tensor": tensor}))


@pytest.mark.usefixtures("small_pieces")
def test_a_tensor_comes_back_from_a_file_that_is_read_in_pieces(tmp_path):
    blobs, tensor = BlobFolder(tmp_path), torch.arange(99.0).view(33, 3)
    blob = blobs.put(TensorFile(tensor), "safetensors")
    blobs.publish()
    assert torch.equal(_tensor(blobs, blob), tensor)
    assert not blobs._holds(blob, TensorFile(tensor + 1))
    assert blobs._holds(blob, TensorFile(tensor))


@pytest.mark.parametrize("place", [0, 60, -1], ids=["length", "header", "last number"])
def test_a_byte_that_differs_is_seen_when_a_tensor_is_read(tmp_path, place):
    blobs = BlobFolder(tmp_path)
    blob = blobs.put(TensorFile(torch.arange(99.0)), "safetensors")
    blobs.publish()
    data = bytearray((tmp_path / blob.file).read_bytes())
    data[place] ^= 1
    (tmp_path / blob.file).write_bytes(data)
    with pytest.raises(DamagedModel):
        _tensor(blobs, blob)


def test_a_file_that_is_shorter_than_its_record_says_is_refused(tmp_path):
    blobs = BlobFolder(tmp_path)
    blob = blobs.put(TensorFile(torch.arange(99.0)), "safetensors")
    blobs.publish()
    with pytest.raises(DamagedModel, match="bytes"):
        _tensor(blobs, Blob(file=blob.file, bytes=blob.bytes + 8))


def file_of(header: object, numbers: bytes = bytes(8)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def described(**changed: object) -> dict[str, object]:
    return {"tensor": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changed}


def test_a_good_header_is_read():
    assert read(file_of(described())).tolist() == [0.0, 0.0]


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
