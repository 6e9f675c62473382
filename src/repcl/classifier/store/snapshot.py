"""A classifier's state ↔ a record and the files that it names; safetensors, JSON and JSONL only."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from repcl.allocator import release_freed_memory
from repcl.classifier.known import KnownTexts
from repcl.classifier.state import Checked, Checks, ClassifierState
from repcl.classifier.store.encoder import config_json, empty_encoder, fill_encoder, tokenizer_json
from repcl.classifier.store.files import Blobs, get_examples, put_examples
from repcl.classifier.store.records import (
    Blob,
    ClassRecord,
    Contents,
    DamagedModel,
    EncoderRecord,
    KnownRecord,
    as_text,
    first_problem,
    one_line,
)
from repcl.classifier.store.tensor_header import LARGEST_HEADER
from repcl.classifier.store.tensors import TensorFile, empty_tensor, numbers_in
from repcl.data import Example
from repcl.data.normal import normal_example
from repcl.errors import InvalidData
from repcl.methods import Method, build_method, make_settings
from repcl.methods.build import method_class
from repcl.methods.frozen.left_out import MOST_ASKED
from repcl.methods.frozen.method import FrozenMethod
from repcl.methods.state import check_tensors, grow_to_shapes
from repcl.model import LAST_LAYER, Encoder, Readout, chosen_device

CHECKS = "checks"
ROWS_PER_PIECE = 256


def pack(state: ClassifierState, parameters: Mapping[str, Any], blobs: Blobs) -> Contents:
    """Put everything that a classifier holds into files, each tensor in one of its own."""
    release_freed_memory()
    try:
        return _contents(state, parameters, blobs)
    except ValidationError as error:
        raise InvalidData(f"This classifier cannot be saved: {first_problem(error)}.") from error


def _contents(state: ClassifierState, parameters: Mapping[str, Any], blobs: Blobs) -> Contents:
    method, encoder = state.method, state.method.encoder
    classes = [ClassRecord(name=name, origins=state.origins[name]) for name in method.classes]
    weights, derived = method.state_dict(), {**method.derived(), **_checks_as_tensors(state)}
    whole = sorted(weights.keys() - derived.keys() - set(method.many_rows))
    weights = {name: weights[name] for name in (*whole, *method.many_rows)}  # the others may be copies
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
        tensors={name: _put(weights[name], blobs) for name in whole},
        pieces={name: _put_pieces(weights[name], blobs) for name in method.many_rows},
        derived={name: _put(tensor, blobs) for name, tensor in sorted(derived.items())},
        memory=put_examples(method.memory, blobs),
        held_out=put_examples(state.held_out, blobs),
        known=_put_known(state, blobs),
    )


def unpack(contents: Contents, blobs: Blobs, *, device: torch.device | str | None = None) -> ClassifierState:
    """The state again; it predicts and learns as if it had never been packed."""
    method = _build(contents, blobs, device)
    derived = _derived(contents, blobs, method)
    method.take_derived(derived)
    release_freed_memory()
    names = method.classes
    exemplars = get_examples(contents.memory, blobs, names, contents.kind)
    held_out = get_examples(contents.held_out, blobs, names, contents.kind)
    known = get_known(contents, blobs)
    if known is None:  # a folder from before there were hashes: what is kept word for word is recognized
        exemplars, held_out = _normal(exemplars), _normal(held_out)
        known = KnownTexts(unlisted=names)
        known.add(exemplars)
    kept: dict[str, list[Example]] = {}
    for example in exemplars:
        kept.setdefault(example.label, []).append(example)
    for name, examples in kept.items():
        method.memory.keep(name, examples)
    return ClassifierState(
        method=method,
        name=contents.method,
        label_type=contents.label_type,
        origins={record.name: record.origins for record in contents.classes},
        declared=contents.declared,
        held_out=held_out,
        known=known,
        calibration=contents.calibration,
        updates_made=contents.updates_made,
        checked=_checks_from_tensors(derived, method),
    )


def _checks_as_tensors(state: ClassifierState) -> dict[str, Tensor]:
    """Answers to texts that were left out; those to held-out texts are asked again."""
    if not state.leaves_out or state.checked is None:
        return {}
    index = {name: number for number, name in enumerate(state.method.classes)}
    rows = [
        [key[0] if isinstance(key, tuple) else key, index[check.label], index[check.answer]]
        for key, check in state.checked.items()
    ]
    return {CHECKS: torch.tensor(rows, dtype=torch.int64).view(-1, 3)}


def _checks_from_tensors(derived: Mapping[str, Tensor], method: Method) -> Checks | None:
    """The answers again, if they are there and can be right."""
    rows, names = derived.get(CHECKS), method.classes
    if rows is None or rows.dtype != torch.int64 or rows.ndim != 2 or rows.shape[1] != 3:
        return None
    if len(rows) and not bool(((rows[:, 1:] >= 0) & (rows[:, 1:] < len(names))).all()):
        return None
    has_several = isinstance(method, FrozenMethod) and method.is_multilabel
    return {
        (key, names[label]) if has_several else key: Checked(names[label], names[answer])
        for key, label, answer in rows.tolist()
    }


def _derived(contents: Contents, blobs: Blobs, method: Method) -> dict[str, Tensor]:
    """What was computed from the rest, as far as it is still there and the method can use it."""
    wanted, found = method.derived_shapes(), {}
    most_checks = MOST_ASKED * max(1, len(method.classes))  # of several labels, each is checked
    for name, blob in contents.derived.items():
        with suppress(DamagedModel):
            shape = tuple(_empty_tensor(blobs, blob).shape)
            is_check = name == CHECKS and len(shape) == 2 and shape[0] <= most_checks
            if is_check or shape == wanted.get(name):
                found[name] = _tensor(blobs, blob)
    return found


def get_known(contents: Contents, blobs: Blobs) -> KnownTexts | None:
    """Which texts were learned; None in a folder from before that was kept."""
    record = contents.known
    if record is None:
        return None
    try:
        return KnownTexts.from_table(
            _tensor(blobs, record.table).numpy(),
            [one.name for one in contents.classes],
            keys=[bytes.fromhex(key) for key in record.keys],
            unlisted=record.unlisted,
        )
    except (InvalidData, TypeError) as error:
        raise DamagedModel(f"blobs/{record.table.file} is no list of hashes ({one_line(error)}).") from error


def _put_known(state: ClassifierState, blobs: Blobs) -> KnownRecord:
    known, classes = state.known, state.method.classes
    return KnownRecord(
        keys=tuple(key.hex() for key in known.keys),
        unlisted=tuple(name for name in classes if name in known.unlisted),
        table=_put(torch.from_numpy(known.to_table(classes)), blobs),
    )


def _normal(examples: list[Example]) -> list[Example]:
    """The examples as they would be learned today, each once."""
    return list(dict.fromkeys(map(normal_example, examples)))


def _build(contents: Contents, blobs: Blobs, device: torch.device | str | None) -> Method:
    """The method with its weights; whether settings and weights fit is seen before memory is taken."""
    target = chosen_device(device)
    shapes = {name: _empty_tensor(blobs, blob) for name, blob in contents.tensors.items()}
    for name, parts in contents.pieces.items():
        shapes[name] = _joined_empty([_empty_tensor(blobs, blob) for blob in parts])
    empty = empty_encoder(
        contents.encoder.name,
        blobs.get(contents.encoder.config),
        blobs.get(contents.encoder.tokenizer),
        _readout(contents),
        _backbone(contents, shapes),
    )
    try:
        with torch.device("meta"):
            expected = _method(contents, empty)
            check_tensors(expected, shapes, left_out=contents.derived)
            _check_names(expected, shapes)
        weights = {name: _tensor(blobs, blob) for name, blob in contents.tensors.items()}
        for name, parts in contents.pieces.items():
            weights[name] = _joined(shapes[name], parts, blobs)
        method = _method(contents, fill_encoder(empty, _backbone(contents, weights)).to(target))
        grow_to_shapes(method, weights)
        left = contents.derived.keys() & method.state_dict().keys()  # not there, or taken over later
        method.load_state_dict({**{name: method.get_buffer(name) for name in left}, **weights})
        method.check_loaded()
    except (RuntimeError, AttributeError, TypeError, ValueError, InvalidData) as error:
        raise DamagedModel(
            f"The weights do not fit method {contents.method!r} ({one_line(error)})."
        ) from error
    return method.eval()


def _joined(empty: Tensor, parts: Sequence[Blob], blobs: Blobs) -> Tensor:
    """One tensor of its pieces, read one by one into their places: all of them would take as much again."""
    found, start = _room_for(empty), 0
    for blob in parts:
        rows = _tensor(blobs, blob)
        found[start : start + len(rows)] = rows
        start += len(rows)
    return found


def _joined_empty(parts: Sequence[Tensor]) -> Tensor:
    """One tensor of its pieces without numbers; torch would load its compiler to join them, for seconds."""
    kinds = {(part.dtype, part.shape[1:]) for part in parts if part.ndim}
    if len(kinds) != 1 or not all(part.ndim for part in parts):
        raise DamagedModel("The pieces of a tensor do not fit.")
    return parts[0].new_empty((sum(map(len, parts)), *parts[0].shape[1:]))


def _check_names(method: Method, weights: Mapping[str, Tensor]) -> None:
    """Raise where there are tensors that the method has no use for, before they are read."""
    for name in weights:
        path, _, leaf = name.rpartition(".")
        if not hasattr(method.get_submodule(path), leaf):
            raise InvalidData(f"found {name}, which the method does not have")


def _backbone(contents: Contents, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The encoder's weights, by their names there."""
    start = f"{method_class(contents.method).encoder_path}.backbone."
    return {name.removeprefix(start): weights[name] for name in weights if name.startswith(start)}


def _method(contents: Contents, encoder: Encoder) -> Method:
    """The method as it was before it learned anything, but with the names of its classes."""
    method = build_method(
        contents.method,
        contents.kind,
        encoder=encoder,
        settings=_settings(contents),
        seed=contents.seed,
        device=encoder.device,
    )
    method.resume([record.name for record in contents.classes], contents.tasks_learned)
    return method


def _readout(contents: Contents) -> Readout:
    chosen, settings = method_class(contents.method), _settings(contents)
    return chosen.readout(make_settings(chosen.settings_class(settings), settings), contents.kind)


def _settings(contents: Contents) -> dict[str, Any]:
    """The method's settings; folders from before there was a choice of layers hold what reads the last."""
    known = method_class(contents.method).Settings.model_fields
    is_older = "layers" in known and "layers" not in contents.settings
    return contents.settings | ({"layers": LAST_LAYER} if is_older and contents.kind == "sentence" else {})


def _put(tensor: Tensor, blobs: Blobs) -> Blob:
    return blobs.put(TensorFile(tensor), "safetensors")


def _put_pieces(tensor: Tensor, blobs: Blobs) -> tuple[Blob, ...]:
    """A tensor in files of so many rows each; rows that come later leave the first files as they are."""
    return tuple(_put(piece, blobs) for piece in torch.split(tensor, ROWS_PER_PIECE))


def _empty_tensor(blobs: Blobs, blob: Blob) -> Tensor:
    """The tensor of a file without its numbers, from the header, which takes no memory."""
    with _as_safetensors(blob):
        return empty_tensor(blobs.beginning(blob, 8 + LARGEST_HEADER), blob.bytes)


def _tensor(blobs: Blobs, blob: Blob) -> Tensor:
    """The tensor of a file, read into memory of its own.

    The bytes of a file may lie at an odd address, where other kernels give other last bits.
    """
    found = _room_for(_empty_tensor(blobs, blob))
    blobs.fill(numbers_in(found), blob)
    return found


def _room_for(empty: Tensor) -> Tensor:
    """Memory for a tensor that has none; `empty_like` would load torch's compiler for this."""
    return torch.empty(empty.shape, dtype=empty.dtype, device="cpu")


@contextmanager
def _as_safetensors(blob: Blob) -> Iterator[None]:
    try:
        yield
    except (KeyError, ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise DamagedModel(
            f"blobs/{blob.file} is not a tensor in safetensors form ({one_line(error)})."
        ) from error
