"""A classifier's state ↔ a record and the files that it names; safetensors, JSON and JSONL only."""

from collections.abc import Mapping
from typing import Any

import torch
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
    one_line,
)
from repcl.data import Example
from repcl.errors import InvalidData
from repcl.methods import Method, build_method
from repcl.methods.build import method_class
from repcl.methods.state import check_tensors, grow_to_shapes
from repcl.model import Encoder, chosen_device

ENCODER = "encoder.backbone."
TENSOR = "tensor"


def pack(state: ClassifierState, parameters: Mapping[str, Any], blobs: Blobs) -> Contents:
    """Put everything that a classifier holds into files, each tensor in one of its own."""
    method, encoder = state.method, state.method.encoder
    classes = [ClassRecord(name=name, origins=state.origins[name]) for name in method.classes]
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
            name=encoder.name,
            config=blobs.put(config_json(encoder), "json"),
            tokenizer=blobs.put(tokenizer_json(encoder), "json"),
        ),
        tensors={name: blobs.put(_tensor_bytes(weights[name]), "safetensors") for name in sorted(weights)},
        memory=put_examples(method.memory, blobs),
        held_out=put_examples(state.held_out, blobs),
    )


def unpack(contents: Contents, blobs: Blobs, *, device: torch.device | str | None = None) -> ClassifierState:
    """The state again; it predicts and learns as if it had never been packed."""
    weights = {name: _tensor(blobs.get(blob), blob) for name, blob in contents.tensors.items()}
    method = _build(contents, blobs, weights, device)
    names = method.classes
    kept: dict[str, list[Example]] = {}
    for example in get_examples(contents.memory, blobs, names):
        kept.setdefault(example.label, []).append(example)
    for name, examples in kept.items():
        method.memory.keep(name, examples)
    return ClassifierState(
        method=method,
        name=contents.method,
        label_type=contents.label_type,
        origins={record.name: record.origins for record in contents.classes},
        declared=contents.declared,
        held_out=get_examples(contents.held_out, blobs, names),
        calibration=contents.calibration,
        updates_made=contents.updates_made,
    )


def _build(
    contents: Contents, blobs: Blobs, weights: Mapping[str, Tensor], device: torch.device | str | None
) -> Method:
    """The method with its weights; whether settings and weights fit is seen before memory is taken."""
    target = chosen_device(device)
    backbone = {name.removeprefix(ENCODER): weights[name] for name in weights if name.startswith(ENCODER)}
    empty = empty_encoder(
        contents.encoder.name,
        blobs.get(contents.encoder.config),
        blobs.get(contents.encoder.tokenizer),
        method_class(contents.method).readouts[contents.kind](),
        backbone,
    )
    try:
        with torch.device("meta"):
            check_tensors(_method(contents, empty), weights)
        method = _method(contents, fill_encoder(empty, backbone).to(target))
        grow_to_shapes(method, weights)
        method.load_state_dict(dict(weights))
        method.check_loaded()
    except (RuntimeError, AttributeError, TypeError, ValueError, InvalidData) as error:
        raise DamagedModel(
            f"The weights do not fit method {contents.method!r} ({one_line(error)})."
        ) from error
    return method.eval()


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


def _tensor(data: bytes, blob: Blob) -> Tensor:
    try:
        # a copy, for the bytes may lie at an odd address, where other kernels give other last bits
        return load(data)[TENSOR].clone()
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise DamagedModel(f"blobs/{blob.file} is not a tensor in safetensors form ({error}).") from error
