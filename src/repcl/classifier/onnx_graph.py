"""From a traced graph in ONNX form to the one that is kept: plain, its large tables apart, perhaps in int8.

onnxruntime copies every tensor of a graph several times when it opens it. Large tables are handed in with
each question instead, straight from their files.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from repcl.errors import InvalidSetting

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, TensorProto

LARGEST_GRAPH = (1 << 31) - 1
"""Bytes that protobuf, ONNX's form, can hold."""
SMALLEST_TABLE = 1 << 16
"""Bytes of a tensor from which on it is worth a file of its own."""
ENCODER_PART = "/backbone/"


def in_int8(graph: bytes) -> bytes:
    """The graph with the encoder's weights in 8 bits, each column of them with a scale of its own."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load_model_from_string(graph)
    wide = [node.name for node in model.graph.node if ENCODER_PART not in node.name]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "int8.onnx"
        quantize_dynamic(
            model,
            path,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=wide,
            extra_options={"MatMulConstBOnly": True},
        )
        return path.read_bytes()


def split_tables(graph: bytes) -> tuple[bytes, dict[str, Tensor]]:
    """The graph without remarks, and its large tables, which it takes as inputs of their names.

    Weights of the encoder's products stay in the graph, for onnxruntime arranges them for its kernels.
    """
    import onnx
    from onnx import numpy_helper

    model = onnx.load_model_from_string(graph)
    _remove_remarks(model)
    multiplied = _multiplied_by_encoder(model.graph)
    tables = {}
    for name, tensor in _constants(model.graph):
        array = numpy_helper.to_array(tensor)
        if array.nbytes < SMALLEST_TABLE or name in multiplied:
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))  # the one form that is read again
        else:
            tables[name] = torch.from_numpy(array.copy())
            model.graph.input.append(
                onnx.helper.make_tensor_value_info(name, tensor.data_type, list(array.shape))
            )
    _remove_constants(model.graph, set(tables))
    if model.ByteSize() > LARGEST_GRAPH:
        raise InvalidSetting("Expected an encoder of at most 2 GB to export, found a larger one.")
    return bytes(model.SerializeToString()), tables


def _remove_remarks(model: ModelProto) -> None:
    for name in ("metadata_props", "functions", "training_info"):
        model.ClearField(name)
    del model.opset_import[1:]
    for name in ("value_info", "metadata_props", "quantization_annotation", "doc_string"):
        model.graph.ClearField(name)
    for node in model.graph.node:
        for name in ("doc_string", "metadata_props", "overload"):
            node.ClearField(name)
        for attribute in node.attribute:
            attribute.ClearField("doc_string")


def _multiplied_by_encoder(graph: GraphProto) -> set[str]:
    """The names of what the encoder's matrix products take."""
    products = (node for node in graph.node if ENCODER_PART in node.name and "MatMul" in node.op_type)
    return {name for node in products for name in node.input}


def _constants(graph: GraphProto) -> Iterator[tuple[str, TensorProto]]:
    """All tensors of a graph, by the names that its operations know them by."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield node.output[0], attribute.t


def _remove_constants(graph: GraphProto, names: set[str]) -> None:
    """Take tensors out of a graph, and the operations that did nothing but hold them."""
    kept = [tensor for tensor in graph.initializer if tensor.name not in names]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    nodes = [node for node in graph.node if node.op_type != "Constant" or node.output[0] not in names]
    del graph.node[:]
    graph.node.extend(nodes)
