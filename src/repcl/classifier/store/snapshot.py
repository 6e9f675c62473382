"""A classifier's state ↔ a record and the files that it names; safetensors, JSON and JSONL only."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from repcl.classifier.state import ClassifierState
from repcl.classifier.store.encoder import config_json, empty_encoder, fill_encoder, tokenizer_json
from repcl.classifier.store.files import Blobs, get_examples, put_examples
from repcl.classifier.store.records import (
    Blob,
    ClassRecord,
    Contents,
    DamagedModel,
    EncoderRecord,
    as_text,
    first_problem,
    one_line,
)
from repcl.data import Example
from repcl.errors import InvalidData
from repcl.files import parse_json
from repcl.methods import Method, build_method
from repcl.methods.build import method_class
from repcl.methods.state import check_tensors, grow_to_shapes
from repcl.model import Encoder, chosen_device

ENCODER = "encoder.backbone."
TENSOR = "tensor"
LARGEST_HEADER = 4096
"""Bytes of the header of a file with one tensor, of which this is many times more than needed."""
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


def pack(state: ClassifierState, parameters: Mapping[str, Any], blobs: Blobs) -> Contents:
    """Put everything that a classifier holds into files, each tensor in one of its own."""
    try:
        return _contents(state, parameters, blobs)
    except ValidationError as error:
        raise InvalidData(f"This classifier cannot be saved: {first_problem(error)}.") from error


def _contents(state: ClassifierState, parameters: Mapping[str, Any], blobs: Blobs) -> Contents:
    method, encoder = state.method, state.method.encoder
    classes = [
        ClassRecord(name=name, origins=state.origins[name], learned=state.learned.get(name))
        for name in method.classes
    ]
    weights = method.state_dict()
    return Contents(
        parameters=dict(parameters),
        method=state.name,
        kind=state.kind,
        settings=method.settings.model_dump(mode="json"),
        seed=method.seed,
        tasks_learned=method.tasks_learned,
        updates_made=state.updates_made,
        label_type=state.label_type,
        classes=tuple(classes),
        declared=state.declared,
        calibration=state.calibration,
        encoder=EncoderRecord(
            name=as_text(encoder.name),
            config=blobs.put(config_json(encoder), "json"),
            tokenizer=blobs.put(tokenizer_json(encoder), "json"),
        ),
        tensors={name: blobs.put(_tensor_bytes(weights[name]), "safetensors") for name in sorted(weights)},
        memory=put_examples(method.memory, blobs),
        held_out=put_examples(state.held_out, blobs),
    )


def unpack(contents: Contents, blobs: Blobs, *, device: torch.device | str | None = None) -> ClassifierState:
    """The state again; it predicts and learns as if it had never been packed."""
    method = _build(contents, blobs, device)
    names = method.classes
    kept: dict[str, list[Example]] = {}
    for example in get_examples(contents.memory, blobs, names, contents.kind):
        kept.setdefault(example.label, []).append(example)
    for name, examples in kept.items():
        method.memory.keep(name, examples)
    return ClassifierState(
        method=method,
        name=contents.method,
        label_type=contents.label_type,
        origins={record.name: record.origins for record in contents.classes},
        declared=contents.declared,
        held_out=get_examples(contents.held_out, blobs, names, contents.kind),
        calibration=contents.calibration,
        updates_made=contents.updates_made,
        learned={record.name: record.learned for record in contents.classes if record.learned is not None},
    )


def _build(contents: Contents, blobs: Blobs, device: torch.device | str | None) -> Method:
    """The method with its weights; whether settings and weights fit is seen before memory is taken."""
    target = chosen_device(device)
    shapes = {name: _empty_tensor(blobs, blob) for name, blob in contents.tensors.items()}
    empty = empty_encoder(
        contents.encoder.name,
        blobs.get(contents.encoder.config),
        blobs.get(contents.encoder.tokenizer),
        method_class(contents.method).readouts[contents.kind](),
        _backbone(shapes),
    )
    try:
        with torch.device("meta"):
            expected = _method(contents, empty)
            check_tensors(expected, shapes)
            _check_names(expected, shapes)
        weights = {name: _tensor(blobs.get(blob), blob) for name, blob in contents.tensors.items()}
        method = _method(contents, fill_encoder(empty, _backbone(weights)).to(target))
        grow_to_shapes(method, weights)
        method.load_state_dict(dict(weights))
        method.check_loaded()
    except (RuntimeError, AttributeError, TypeError, ValueError, InvalidData) as error:
        raise DamagedModel(
            f"The weights do not fit method {contents.method!r} ({one_line(error)})."
        ) from error
    return method.eval()


def _check_names(method: Method, weights: Mapping[str, Tensor]) -> None:
    """Raise where there are tensors that the method has no use for, before they are read."""
    for name in weights:
        path, _, leaf = name.rpartition(".")
        if not hasattr(method.get_submodule(path), leaf):
            raise InvalidData(f"found {name}, which the method does not have")


def _backbone(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The encoder's weights, by their names there."""
    return {name.removeprefix(ENCODER): weights[name] for name in weights if name.startswith(ENCODER)}


def _method(contents: Contents, encoder: Encoder) -> Method:
    """The method as it was before it learned anything, but with the names of its classes."""
    method = build_method(
        contents.method,
        contents.kind,
        encoder=encoder,
        settings=contents.settings,
        seed=contents.seed,
        device=encoder.device,
    )
    method.classes = [record.name for record in contents.classes]
    method.tasks_learned = contents.tasks_learned
    return method


def _tensor_bytes(tensor: Tensor) -> bytes:
    return save({TENSOR: tensor.detach().cpu().contiguous()})


def _empty_tensor(blobs: Blobs, blob: Blob) -> Tensor:
    """The tensor of a file without its numbers, from the header, which takes no memory."""
    start = blobs.beginning(blob, 8 + LARGEST_HEADER)
    try:
        length = int.from_bytes(start[:8], "little")
        if length > len(start) - 8:
            raise ValueError("the header is too long")
        head = parse_json(start[8 : 8 + length])[TENSOR]
        kind, shape = TYPES[head["dtype"]], [int(size) for size in head["shape"]]
        if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize + 8 + length != blob.bytes:
            raise ValueError(f"{blob.bytes} bytes do not hold a tensor of that shape")
        return torch.empty(shape, dtype=kind, device="meta")
    except (KeyError, ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise DamagedModel(
            f"blobs/{blob.file} is not a tensor in safetensors form ({one_line(error)})."
        ) from error


def _tensor(data: bytes, blob: Blob) -> Tensor:
    try:
        # a copy, for the bytes may lie at an odd address, where other kernels give other last bits
        return load(data)[TENSOR].clone()
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise DamagedModel(f"blobs/{blob.file} is not a tensor in safetensors form ({error}).") from error
