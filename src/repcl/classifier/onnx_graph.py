"""From a traced graph in ONNX form to the one that is kept: plain, its large tables apart, perhaps in int8.

onnxruntime copies every tensor of a graph several times when it opens it. Large tables are handed in with
each question instead, straight from their files.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from repcl.errors import InvalidSetting

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

LARGEST_GRAPH = (1 << 31) - 1
"""Bytes that protobuf, ONNX's form, can hold."""
SMALLEST_TABLE = 1 << 16
"""Bytes of a tensor from which on it is worth a file of its own."""
ENCODER, MAPS = "/backbone/", "/maps"
"""In the names of operations: of the encoder, and of random maps of its representations."""


def in_int8(graph: bytes) -> bytes:
    """The graph with the weights of encoder and random maps in 8 bits, a scale for each column of them."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = _loaded(graph)
    wide = [node.name for node in model.graph.node if ENCODER not in node.name and MAPS not in node.name]
    with tempfile.TemporaryDirectory() as folder, _quiet():
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

    Weights that onnxruntime arranges for its kernels stay in the graph: the encoder's, and those in 8 bits.
    """
    from onnx import helper, numpy_helper

    model = _loaded(graph)
    arranged = _arranged(model.graph)
    kept, tables = [], {}
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.nbytes < SMALLEST_TABLE or tensor.name in arranged:
            kept.append(numpy_helper.from_array(array, tensor.name))  # the one form that is read again
        else:
            tables[tensor.name] = torch.from_numpy(array.copy())
            taken = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(array.shape))
            model.graph.input.append(taken)
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    if model.ByteSize() > LARGEST_GRAPH:
        raise InvalidSetting("Expected an encoder of at most 2 GB to export, found a larger one.")
    return bytes(model.SerializeToString()), tables


def _loaded(graph: bytes) -> ModelProto:
    """The graph without remarks, its constants among its other tensors."""
    import onnx

    model = onnx.load_model_from_string(graph)
    for name in ("metadata_props", "functions", "training_info"):
        model.ClearField(name)
    del model.opset_import[1:]
    for name in ("value_info", "metadata_props", "quantization_annotation", "doc_string"):
        model.graph.ClearField(name)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type == "Constant":
            tensor = model.graph.initializer.add()
            tensor.CopyFrom(node.attribute[0].t)
            tensor.name = node.output[0]
        else:
            model.graph.node.append(_plain(node))
    return model


def _plain(node: NodeProto) -> NodeProto:
    """The operation without remarks, its tensors in the one form that is read again."""
    from onnx import numpy_helper

    for name in ("doc_string", "metadata_props", "overload"):
        node.ClearField(name)
    for attribute in node.attribute:
        attribute.ClearField("doc_string")
        if attribute.HasField("t"):
            array = numpy_helper.to_array(attribute.t)
            attribute.t.CopyFrom(numpy_helper.from_array(array, attribute.t.name))
    return node


def _arranged(graph: GraphProto) -> set[str]:
    """The names of weights that are brought into another order when a graph is opened."""
    products = (
        node
        for node in graph.node
        if node.op_type == "MatMulInteger" or (node.op_type == "MatMul" and ENCODER in node.name)
    )
    return {name for node in products for name in node.input}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without advice for the author of this file."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
