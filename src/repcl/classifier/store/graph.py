"""A graph in ONNX form that anyone may have written, looked at before onnxruntime sees it.

Such a file can name functions of other libraries, files elsewhere, endless loops, and tensors of any size.
Here it may hold plain operations of a known kind and tensors whose numbers are in the file, and nothing else.
The file is walked through byte by byte in protobuf's form: reading it with the library `onnx` would take more
time than answering, and a copy of all tensors.
"""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from repcl.classifier.store.records import DamagedModel
from repcl.errors import printable

MOST_NODES = 50_000
MOST_DIMENSIONS = 8
LONGEST_NAME = 500
SIZES = {1: 4, 2: 1, 3: 1, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8}
"""Bytes of a number, by ONNX's number of its type: floats of 16 to 64 bits, whole numbers, booleans."""

OPERATIONS = frozenset(
    [
        "Abs",
        "Add",
        "And",
        "ArgMax",
        "Cast",
        "Clip",
        "Concat",
        "Constant",
        "ConstantOfShape",
        "Cos",
        "CumSum",
        "Div",
        "DynamicQuantizeLinear",
        "Einsum",
        "Equal",
        "Erf",
        "Exp",
        "Expand",
        "Flatten",
        "Floor",
        "Gather",
        "GatherElements",
        "GatherND",
        "Gelu",
        "Gemm",
        "Greater",
        "GreaterOrEqual",
        "Identity",
        "LayerNormalization",
        "Less",
        "LessOrEqual",
        "Log",
        "MatMul",
        "MatMulInteger",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "Pow",
        "Range",
        "ReduceL2",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceSum",
        "Relu",
        "Reshape",
        "Round",
        "ScatterElements",
        "ScatterND",
        "Shape",
        "Sigmoid",
        "Sign",
        "Sin",
        "Slice",
        "Softmax",
        "Split",
        "Sqrt",
        "Squeeze",
        "Sub",
        "Sum",
        "Tanh",
        "Tile",
        "Transpose",
        "Trilu",
        "Unsqueeze",
        "Where",
        "Xor",
    ]
)
"""Operations that encoders and classifiers are made of. None of them runs another graph or reads a file."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class _Refused(Exception):
    """What is wrong with a graph, in a few words."""


class _Message(NamedTuple):
    """A kind of message: its name, the fields that it may have, and those of them that may come often."""

    name: str
    fields: Mapping[int, int]  # the wire type by the field's number
    repeated: frozenset[int] = frozenset()


_MODEL = _Message(
    "model", {1: _VARINT, 2: _BYTES, 3: _BYTES, 4: _BYTES, 5: _VARINT, 7: _BYTES, 8: _BYTES}, frozenset({8})
)
_OPSET = _Message("set of operations", {1: _BYTES, 2: _VARINT})
_GRAPH = _Message(
    "graph", {1: _BYTES, 2: _BYTES, 5: _BYTES, 11: _BYTES, 12: _BYTES}, frozenset({1, 5, 11, 12})
)
_NODE = _Message(
    "operation", {1: _BYTES, 2: _BYTES, 3: _BYTES, 4: _BYTES, 5: _BYTES, 7: _BYTES}, frozenset({1, 2, 5})
)
_ATTRIBUTE = _Message(
    "option of an operation",
    {1: _BYTES, 2: _FIXED32, 3: _VARINT, 4: _BYTES, 5: _BYTES, 7: _FIXED32, 8: _VARINT, 20: _VARINT},
    frozenset({7, 8}),
)
_TENSOR = _Message("tensor", {1: _VARINT, 2: _VARINT, 8: _BYTES, 9: _BYTES}, frozenset({1}))

Value = int | memoryview


def check_graph(data: bytes, where: str) -> None:
    """Refuse a graph that does more than compute, or asks for more than its file holds.

    Args:
        data: of the file.
        where: it lies, for the error.
    """
    try:
        _check_model(memoryview(data))
    except _Refused as error:
        raise DamagedModel(
            f"{where} is not what repcl exports: {error}. Remove export.json, or run `repcl export` again."
        ) from error


def _check_model(data: memoryview) -> None:
    graphs = 0
    for number, value in _fields(data, _MODEL):
        if number == 8:
            for field, domain in _fields(_part(value), _OPSET):
                if field == 1 and _text(domain) not in ("", "ai.onnx"):
                    raise _Refused(f"it has operations of {_text(domain)!r}")
        if number == 7:
            graphs += 1
            _check_graph(_part(value))
    if graphs != 1:
        raise _Refused("it holds no graph")


def _check_graph(data: memoryview) -> None:
    nodes = 0
    for number, value in _fields(data, _GRAPH):
        if number == 1:
            nodes += 1
            _check_node(_part(value))
        elif number == 5:
            _check_tensor(_part(value))
        if nodes > MOST_NODES:
            raise _Refused(f"it has more than {MOST_NODES} operations")


def _check_node(data: memoryview) -> None:
    for number, value in _fields(data, _NODE):
        if number == 4 and _text(value) not in OPERATIONS:
            raise _Refused(f"it has the operation {_text(value)!r}")
        if number == 7 and _text(value) not in ("", "ai.onnx"):
            raise _Refused(f"it has an operation of {_text(value)!r}")
        if number == 5:
            for field, option in _fields(_part(value), _ATTRIBUTE):
                if field == 5:
                    _check_tensor(_part(option))


def _check_tensor(data: memoryview) -> None:
    """The numbers of a tensor are in the file, all of them and no others."""
    shape: list[int] = []
    kind, held = 0, 0
    for number, value in _fields(data, _TENSOR):
        if number == 1:
            shape += _numbers(value)
        elif number == 2 and isinstance(value, int):
            kind = value
        elif number == 9:
            held = len(_part(value))
    if kind not in SIZES or len(shape) > MOST_DIMENSIONS or math.prod(shape) * SIZES[kind] != held:
        raise _Refused("it has a tensor whose numbers are not in the file")


# ---- protobuf's form --------------------------------------------------------------------------------------


def _fields(data: memoryview, message: _Message) -> Iterator[tuple[int, Value]]:
    """Fields of a message; one that it may not have, or has twice, is refused."""
    at, seen = 0, set()
    while at < len(data):
        key, at = _varint(data, at)
        number, form = key >> 3, key & 7
        expected = message.fields.get(number)
        is_packed = form == _BYTES and number in message.repeated and expected != _BYTES
        if expected is None or (form != expected and not is_packed):
            raise _Refused(f"its {message.name} has a part of number {number}")
        if number in seen and number not in message.repeated:
            raise _Refused(f"its {message.name} has two parts of number {number}")
        seen.add(number)
        value: Value
        if form == _VARINT:
            value, at = _varint(data, at)
        else:
            length, at = _varint(data, at) if form == _BYTES else (8 if form == _FIXED64 else 4, at)
            value, at = data[at : at + length], at + length
        if at > len(data):
            raise _Refused("it ends too early")
        yield number, value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number of as many bytes as it needs, and where it ends."""
    found = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        found |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return found, at
    raise _Refused("it ends too early")


def _numbers(value: Value) -> list[int]:
    """One number, or several packed together."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
        if len(found) > MOST_DIMENSIONS:
            raise _Refused("it has a tensor of too many dimensions")
    return found


def _part(value: Value) -> memoryview:
    if isinstance(value, int):
        raise _Refused("it has a number where a part was expected")
    return value


def _text(value: Value) -> str:
    data = _part(value)
    if len(data) > LONGEST_NAME:
        raise _Refused("it has a name that is too long")
    return printable(bytes(data).decode("utf-8", "replace"))
