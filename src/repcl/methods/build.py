"""How a method is put together with its encoder."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from repcl.data import InputKind
from repcl.errors import InvalidSetting
from repcl.methods.base import BEFORE_THE_FIRST_TASK, Method, seeded
from repcl.methods.settings import MethodSettings, TrainingSettings, make_settings
from repcl.methods.table import method_entry
from repcl.model import ALONE, Encoder, Processes, chosen_device, load_encoder
from repcl.model.machine import too_large
from repcl.model.untrusted import shown

ENCODER = "encoder."
MOST_OF_MEMORY = 0.5  # learning needs as much again


def method_class(name: str) -> type[Method]:
    """The class of a method by its name."""
    return method_entry(name).load()


def build_method(
    name: str,
    kind: InputKind,
    *,
    encoder: str | Encoder,
    settings: Mapping[str, Any],
    seed: int = 0,
    expected_classes: int = 0,
    device: torch.device | str | None = None,
    processes: Processes | None = None,
) -> Method:
    """A method that has learned nothing yet; its first weights depend on the seed only.

    Args:
        name: in `METHODS`.
        kind: of input.
        encoder: a name, folder or Hugging Face id, or a ready encoder.
        settings: of the method; what is left out has its default.
        seed: decides every random draw.
        expected_classes: how many classes the stream will have, used by the setting `reserved` only.
        device: that of the processes if not given, else the fastest one present.
        processes: learn together; if not given, those of a ready encoder, else this one alone.
    """
    chosen = method_class(name)
    if kind not in chosen.kinds:
        raise InvalidSetting(
            f"Method {name!r} works on {', '.join(chosen.kinds)} input, not on {kind} input."
        )
    checked = chosen.resolved(make_settings(chosen.settings_class(settings), settings), kind)
    together = processes or (encoder.processes if isinstance(encoder, Encoder) else ALONE)
    if isinstance(checked, TrainingSettings) and checked.precision == "bf16":
        together = replace(together, precision="bf16")
    if isinstance(encoder, Encoder):
        encoder.processes = together
    if isinstance(encoder, Encoder) and encoder.device.type == "meta":
        where = encoder.device  # to see what a method would take
    else:
        where = chosen_device(device if device is not None else together.device)
    with seeded(seed, BEFORE_THE_FIRST_TASK, where, draw=checked.other_draw):
        if isinstance(encoder, str):
            readout = chosen.readout(checked, kind)
            encoder = load_encoder(encoder, readout, device=where, processes=together)
        built = chosen.for_settings(checked)
        if where.type != "meta":
            _check_memory(name, built, encoder, checked)
        method = built(encoder, checked, seed=seed, expected_classes=expected_classes)
    return method.eval()


def _check_memory(name: str, chosen: type[Method], encoder: Encoder, settings: MethodSettings) -> None:
    """Refuse settings whose tables cannot fit, before any memory is taken for them."""
    try:
        with torch.random.fork_rng([]), torch.device("meta"):
            parts = chosen(encoder.without_weights(), settings)
        tables = [*parts.named_parameters(), *parts.named_buffers()]
        needed = sum(value.numel() * value.element_size() for key, value in tables if ENCODER not in key)
    except (RuntimeError, OverflowError, TypeError) as error:  # more bytes than a number of 64 bits can say
        raise InvalidSetting(f"The settings of {name!r} cannot be used ({shown(str(error))}).") from error
    reason = too_large(needed, MOST_OF_MEMORY)
    if reason is not None:
        raise InvalidSetting(f"The settings of {name!r} ask for {reason}: make them smaller.")
