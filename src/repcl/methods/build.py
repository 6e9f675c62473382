"""How a method is put together with its encoder."""

from collections.abc import Mapping
from typing import Any

import torch

from repcl.data import InputKind
from repcl.errors import InvalidSetting
from repcl.methods.base import BEFORE_THE_FIRST_TASK, Method, seeded
from repcl.methods.settings import make_settings
from repcl.methods.table import method_entry
from repcl.model import ALONE, Encoder, Processes, chosen_device, load_encoder


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
    checked = make_settings(chosen.Settings, settings)
    if isinstance(encoder, Encoder):
        encoder.processes = processes or encoder.processes
        processes = encoder.processes
    together = processes or ALONE
    where = chosen_device(device if device is not None else together.device)
    with seeded(seed, BEFORE_THE_FIRST_TASK, where):
        if isinstance(encoder, str):
            readout = chosen.readouts[kind]()
            encoder = load_encoder(encoder, readout, device=where, processes=together)
        built = chosen.for_settings(checked)
        method = built(encoder, checked, seed=seed, expected_classes=expected_classes)
    return method.eval()
