"""A method and its memory ↔ safetensors + JSON + JSONL rows in one folder."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from repcl.data import Example
from repcl.errors import InvalidData, ResultMismatch
from repcl.files import parse_json, read_plain
from repcl.methods.base import Method, is_of_encoder
from repcl.methods.build import build_method
from repcl.model import Encoder, Processes, RowOwner

FORMAT = 1
LARGEST_STATE = 64 << 20
STATE, WEIGHTS, MEMORY = "state.json", "weights.safetensors", "memory.jsonl"


def save_method(method: Method, name: str, folder: Path) -> None:
    """Write everything that a method needs to learn further tasks."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {
        "format": FORMAT,
        "method": name,
        "kind": method.encoder.readout.kind,
        "encoder": method.encoder.name,
        "settings": method.settings.model_dump(),
        "seed": method.seed,
        "expected_classes": method.expected_classes,
        "classes": method.classes,
        "tasks_learned": method.tasks_learned,
    }
    (folder / STATE).write_text(json.dumps(state, indent=1, ensure_ascii=False), encoding="utf-8")
    save_file({key: value.contiguous() for key, value in method.state_dict().items()}, folder / WEIGHTS)
    with (folder / MEMORY).open("w", encoding="utf-8") as file:
        for label in method.memory.classes:
            for example in method.memory.of(label):
                file.write(json.dumps(example.to_json(), ensure_ascii=False) + "\n")


def load_method(
    folder: Path,
    *,
    encoder: str | Encoder | None = None,
    device: torch.device | str | None = None,
    processes: Processes | None = None,
) -> Method:
    """Read a method back; it then learns and predicts as if it had never been saved."""
    state = _read_state(folder / STATE)
    method = build_method(
        state["method"],
        state["kind"],
        encoder=encoder or state["encoder"],
        settings=state["settings"],
        seed=state["seed"],
        expected_classes=state["expected_classes"],
        device=device,
        processes=processes,
    )
    method.resume(state["classes"], state["tasks_learned"])
    with (folder / MEMORY).open(encoding="utf-8") as file:  # str.splitlines would cut texts at U+2028
        for line in file:
            example = Example.from_json(parse_json(line))
            method.memory.keep(example.label, [*method.memory.of(example.label), example])
    try:
        weights = load_file(folder / WEIGHTS)
    except (SafetensorError, OSError) as error:
        raise ResultMismatch(f"{folder / WEIGHTS} is damaged ({error}); it has to be made anew.") from error
    grow_to_shapes(method, weights)
    method.load_state_dict(weights)
    return method.eval()


def check_tensors(method: Method, saved: Mapping[str, Tensor], left_out: Collection[str] = ()) -> None:
    """Raise where saved tensors have other shapes than the method's settings ask for.

    The method may be built on the device `meta`, where tensors take no memory. Which tensors grow,
    and with what, is said by the parts that own them.

    Args:
        method: as its settings say.
        saved: what was read.
        left_out: names of tensors that are not among it.
    """
    for path, part in method.named_modules():
        own = [*part.named_parameters(path, recurse=False), *part.named_buffers(path, recurse=False)]
        for name, empty in own:
            if not is_of_encoder(name) and name not in left_out:
                _check_shape(name, empty, saved.get(name), part, len(method.classes))


def _check_shape(name: str, empty: Tensor, saved: Tensor | None, owner: nn.Module, classes: int) -> None:
    found, wanted = None if saved is None else tuple(saved.shape), tuple(empty.shape)
    if isinstance(owner, RowOwner) and found:
        leaf = name.rpartition(".")[2]
        if leaf in owner.class_rows:
            wanted = (classes, *wanted[1:])
        elif leaf in owner.other_rows:
            wanted = (found[0], *wanted[1:])
    if found != wanted:
        raise InvalidData(f"expected {name} of shape {wanted}, found {found or 'none'}")


def grow_to_shapes(module: nn.Module, saved: Mapping[str, Tensor]) -> None:
    """Give every parameter and buffer the shape it was saved with, so that weights can be loaded."""
    for name, tensor in saved.items():
        path, _, leaf = name.rpartition(".")
        owner = module.get_submodule(path)
        current = getattr(owner, leaf, None)
        if current is None or current.shape == tensor.shape:
            continue
        resized = current.new_empty(tensor.shape)
        setattr(owner, leaf, nn.Parameter(resized) if isinstance(current, nn.Parameter) else resized)


def _read_state(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = parse_json(read_plain(path, LARGEST_STATE))
        version = state["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultMismatch(
            f"Expected the state of a method in {path}, found none that can be read."
        ) from error
    if version > FORMAT:
        raise ResultMismatch(
            f"{path} has format {version}, this version of repcl reads up to {FORMAT}; update repcl."
        )
    return state
