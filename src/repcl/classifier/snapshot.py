"""A classifier's knowledge ↔ a record and the files that it names; safetensors, JSON and JSONL only."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from repcl.classifier.blobs import Blobs
from repcl.classifier.encoder_files import config_json, empty_encoder, fill_encoder, tokenizer_json
from repcl.classifier.knowledge import Knowledge
from repcl.classifier.records import (
    Blob,
    ClassRecord,
    Contents,
    DamagedModel,
    EncoderRecord,
    ExamplesRecord,
    one_line,
    parse_json,
)
from repcl.data import Example
from repcl.errors import InvalidData
from repcl.methods import Method, build_method
from repcl.methods.build import method_class
from repcl.methods.state import check_tensors, grow_to_shapes
from repcl.model import Encoder, chosen_device

ENCODER = "encoder.backbone."
TENSOR = "tensor"


def pack(knowledge: Knowledge, parameters: Mapping[str, Any], blobs: Blobs) -> Contents:
    """Put everything that a classifier holds into files, each tensor in one of its own."""
    method, encoder = knowledge.method, knowledge.method.encoder
    classes = [ClassRecord(name=name, origins=knowledge.origins[name]) for name in method.classes]
    weights = method.state_dict()
    return Contents(
        parameters=dict(parameters),
        method=knowledge.name,
        kind=knowledge.kind,
        settings=method.settings.model_dump(mode="json"),
        seed=method.seed,
        tasks_learned=method.tasks_learned,
        updates_made=knowledge.updates_made,
        label_type=knowledge.label_type,
        classes=tuple(classes),
        declared=knowledge.declared,
        calibration=knowledge.calibration,
        encoder=EncoderRecord(
            name=encoder.name,
            config=blobs.put(config_json(encoder), "json"),
            tokenizer=blobs.put(tokenizer_json(encoder), "json"),
        ),
        tensors={name: blobs.put(_tensor_bytes(weights[name]), "safetensors") for name in sorted(weights)},
        memory=_pack_examples(method.memory, blobs),
        held_back=_pack_examples(knowledge.held_back, blobs),
    )


def unpack(contents: Contents, blobs: Blobs, *, device: torch.device | str | None = None) -> Knowledge:
    """The knowledge again; it predicts and learns as if it had never been packed."""
    weights = {name: _tensor(blobs.get(blob), blob) for name, blob in contents.tensors.items()}
    method = _build(contents, blobs, weights, device)
    names = method.classes
    kept: dict[str, list[Example]] = {}
    for example in _unpack_examples(contents.memory, blobs, names):
        kept.setdefault(example.label, []).append(example)
    for name, examples in kept.items():
        method.memory.keep(name, examples)
    return Knowledge(
        method=method,
        name=contents.method,
        label_type=contents.label_type,
        origins={record.name: record.origins for record in contents.classes},
        declared=contents.declared,
        held_back=_unpack_examples(contents.held_back, blobs, names),
        calibration=contents.calibration,
        updates_made=contents.updates_made,
    )


def _build(
    contents: Contents, blobs: Blobs, weights: Mapping[str, Tensor], device: torch.device | str | None
) -> Method:
    """The method with its weights; whether settings and weights fit is seen before memory is taken."""
    place = chosen_device(device)
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
        method = _method(contents, fill_encoder(empty, backbone).to(place))
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


def _pack_examples(examples: Iterable[Example], blobs: Blobs) -> ExamplesRecord:
    rows = [example.to_json() for example in examples]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return ExamplesRecord(file=blobs.put(text.encode(), "jsonl"), count=len(rows))


def _unpack_examples(record: ExamplesRecord, blobs: Blobs, classes: list[str]) -> list[Example]:
    where = f"blobs/{record.file.file}"
    *lines, rest = blobs.get(record.file).split(b"\n")  # str.splitlines would cut texts at U+2028
    if rest or len(lines) != record.count:
        raise DamagedModel(f"Expected {record.count} examples in {where}, found {len(lines)}.")
    found, known = [_example(parse_json(line, where), where) for line in lines], set(classes)
    for example in found:
        if example.label not in known:
            raise DamagedModel(f"{where} holds an example of a class that the revision does not have.")
    return found


def _example(row: Any, where: str) -> Example:
    try:
        return Example.from_json(row)
    except ValueError as error:
        raise DamagedModel(f"{where} has a row that is not an example ({error}).") from error
