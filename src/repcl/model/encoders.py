"""From a name to an encoder: the bundled default, a Hugging Face id or a local folder."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from torch import Tensor

from repcl.errors import EncoderUnavailable, InvalidSetting, UnknownName
from repcl.model.bundled import ENCODERS
from repcl.model.encoder import Encoder
from repcl.model.processes import ALONE, Processes
from repcl.model.readouts import Readout

if TYPE_CHECKING:  # transformers takes seconds to import, and is only needed once an encoder is loaded
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def best_device() -> torch.device:
    """The fastest device present."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def chosen_device(name: torch.device | str | None) -> torch.device:
    """The device of that name; the fastest one present if none is named."""
    if name is None:
        return best_device()
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built for the device
        raise InvalidSetting(
            f"Expected a device that torch finds on this machine, found {str(name)!r}: leave it out to take "
            f"{best_device().type}."
        ) from error
    return device


def check_encoder(name: str) -> None:
    """Raise the error that loading would end with, as far as it can be seen without loading weights."""
    if name in ENCODERS:
        ENCODERS[name].locate()
        return
    with _explained(name):
        _check_folder(Path(name))
        from transformers import AutoConfig

        AutoConfig.from_pretrained(name)


def load_encoder(
    name: str,
    readout: Readout,
    *,
    device: torch.device | str | None = None,
    processes: Processes = ALONE,
) -> Encoder:
    """An encoder by the name of a bundled one, a Hugging Face id or a local folder.

    Args:
        name: of the encoder.
        readout: the input kind.
        device: that of the processes if not given, else the fastest one present.
        processes: share the rows of each batch.
    """
    source = str(ENCODERS[name].locate()) if name in ENCODERS else name
    tokenizer, backbone = _load_pretrained(name, source)
    if not getattr(tokenizer, "is_fast", False) or tokenizer.mask_token_id is None:
        raise EncoderUnavailable(
            f"Encoder {name!r} needs a fast tokenizer with a mask token; choose another."
        )
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        # What transformers gives when the tokenizer's files are missing: every word would be unknown.
        raise EncoderUnavailable(f"Encoder {name!r} has no tokenizer: save it beside the weights.")

    def reload() -> dict[str, Tensor]:
        fresh = Encoder(_load_pretrained(name, source)[1], tokenizer, readout, name=name)
        return fresh.state_dict()

    chosen = chosen_device(device if device is not None else processes.device)
    if chosen.type == "cpu":
        # With short texts plain attention trains about a tenth faster than the fused kernel on a CPU.
        backbone.set_attn_implementation("eager")
    encoder = Encoder(backbone, tokenizer, readout, name=name, reload=reload, processes=processes)
    return encoder.to(chosen)


def _load_pretrained(name: str, source: str) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
    with _explained(name):
        _check_folder(Path(source))
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(source)
        return tokenizer, AutoModel.from_pretrained(source, use_safetensors=True)


def _check_folder(folder: Path) -> None:
    if folder.is_dir() and not any(folder.glob("*.safetensors")):
        raise EncoderUnavailable(
            f"Folder {str(folder)!r} holds no weights: expected config.json, a tokenizer and *.safetensors, "
            f"found {sorted(path.name for path in folder.iterdir())[:8]}."
        )


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Load quietly, and turn transformers' errors into a sentence."""
    try:
        with quiet_transformers():
            yield
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        if not Path(name).exists() and "/" not in name and "-" not in name:
            raise UnknownName("encoder", name, [*ENCODERS, "a Hugging Face id", "a folder"]) from error
        reason = str(error).strip().splitlines()[0]
        raise EncoderUnavailable(
            f"Encoder {name!r} could not be loaded ({reason}). Give {' or '.join(ENCODERS)}, a local folder "
            "saved by transformers, or a Hugging Face id that this machine can reach or has cached."
        ) from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No progress bars and no notes about unused weights while a model is loaded."""
    from transformers.utils import logging as transformers_logging

    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity(logging.ERROR)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
