"""From a name to an encoder: the bundled default, a Hugging Face id or a local folder."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from repcl.errors import EncoderUnavailable, InvalidSetting, RepclError, UnknownName
from repcl.model.backbone import (
    build_config,
    check_size,
    choose_attention,
    fill_backbone,
    listed,
)
from repcl.model.bundled import ENCODERS
from repcl.model.encoder import Encoder, word_embeddings
from repcl.model.machine import too_large
from repcl.model.processes import ALONE, Processes
from repcl.model.readouts import Readout, special_frame
from repcl.model.tokenizer import LARGEST_FILE, FastTokenizer, build_tokenizer, caught
from repcl.model.untrusted import Unusable, parse_object, read_bytes, read_object, shown

if TYPE_CHECKING:
    from repcl.model.backbone import Backbone

MEGABYTE = 1 << 20
CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
# Later files have the last word.
TOKENIZER_SETTINGS = ("special_tokens_map.json", "tokenizer_config.json")
# All that is ever fetched: no code, and no weights in a form that can run code.
FETCHED = (CONFIG, TOKENIZER, *TOKENIZER_SETTINGS, WEIGHTS, WEIGHTS_INDEX, "model-*.safetensors")
HUB_ID = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")
PLAIN_FILE = re.compile(r"[\w.-]{1,200}\.safetensors")
MOST_FILES = 1000
FEWEST_TOKENS = 8  # of a text beside the special tokens: markers and what they mark


class NamedByFolder(str):
    """The name of an encoder as a model folder has it: only a bundled one is loaded by it.

    Whoever wrote the folder chose the name; a stranger must not choose what is read or fetched here.
    """

    __slots__ = ()


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
        torch.zeros(1, device=device).item()  # there are devices that keep no numbers
    except Exception as error:  # torch has many ways to say that it was not built for a device
        raise InvalidSetting(
            f"Expected a device that torch finds on this machine, found {shown(str(name))!r}: leave it "
            f"out to take {best_device().type}."
        ) from error
    return device


def check_encoder(name: str) -> None:
    """Raise the error that loading would end with, as far as it can be seen without loading weights."""
    if name in ENCODERS:
        ENCODERS[name].locate()
        return
    with _explained(name):
        folder = _folder(name, (CONFIG,))
        if Path(name).is_dir():
            _weight_files(folder)
        build_config(_config_values(folder))


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
    chosen = chosen_device(device if device is not None else processes.device)
    tokenizer, backbone = _load_pretrained(name)

    def reload() -> dict[str, Tensor]:
        fresh = Encoder(_load_pretrained(name)[1], tokenizer, readout, name=name)
        return fresh.state_dict()

    choose_attention(backbone, chosen)
    encoder = Encoder(backbone, tokenizer, readout, name=str(name), reload=reload, processes=processes)
    return encoder.to(chosen)


def use_pretrained(encoder: Encoder, name: str) -> None:
    """Let an encoder from a model folder start over from the pretrained weights of that name."""
    readout = encoder.readout
    encoder.start_over_from(name, lambda: load_encoder(name, readout, device="cpu").state_dict())


def check_together(tokenizer: FastTokenizer, backbone: Backbone) -> None:
    """Refuse a tokenizer that does not fit the transformer, which may be an empty one."""
    if tokenizer.mask_token_id is None or tokenizer.pad_token_id is None:
        raise Unusable("expected a tokenizer with a mask token and a padding token, found none")
    rows = len(word_embeddings(backbone).weight)
    if max(tokenizer.get_vocab().values()) >= rows:
        raise Unusable(f"the tokenizer has more words than the {rows} that the encoder knows")
    with caught("the tokenizer cannot read a text"):
        frame = special_frame(tokenizer.backend_tokenizer)
    longest = min(int(backbone.config.max_position_embeddings) - 2, int(tokenizer.model_max_length))
    if longest - sum(map(len, frame)) < FEWEST_TOKENS:
        raise Unusable(f"expected room for {FEWEST_TOKENS} tokens of a text, found {longest} in all")


def try_out(tokenizer: FastTokenizer, backbone: Backbone) -> Tensor:
    """The states of a text of one letter, which show whether the transformer works at all."""
    with caught("the encoder cannot read a text"), torch.no_grad():
        before, after = special_frame(tokenizer.backend_tokenizer)
        ids = [*before, *tokenizer.backend_tokenizer.encode("a", add_special_tokens=False).ids, *after]
        inputs = torch.tensor([ids, ids], device=next(backbone.parameters()).device)
        states: Tensor = backbone(input_ids=inputs, attention_mask=torch.ones_like(inputs)).last_hidden_state
        if states.shape != (2, len(ids), backbone.config.hidden_size):
            raise Unusable(f"expected a state for each of {len(ids)} tokens, found {tuple(states.shape)}")
    return states


def _load_pretrained(name: str) -> tuple[FastTokenizer, Backbone]:
    with _explained(name):
        folder = _folder(name, FETCHED)
        files = _weight_files(folder)
        values = _config_values(folder)
        config = build_config(values)
        tokenizer = _tokenizer(folder)
        shapes = _shapes(files)
        check_size(config, shapes.values())
        weights = _weights(files)
        dtype = _number_type(values, weights)
        backbone, unused = fill_backbone(config, weights, dtype=dtype)
        check_together(tokenizer, backbone)
        if not try_out(tokenizer, backbone).isfinite().all():
            raise Unusable("expected finite numbers from the encoder, found others")
    if unused:
        warnings.warn(
            f"Encoder {shown(name)!r} has {len(unused)} weights that its type has no place for "
            f"({listed(unused)}): they are left out.",
            stacklevel=3,
        )
    return tokenizer, backbone


# ---- files -------------------------------------------------------------------------------------------


def _folder(name: str, wanted: tuple[str, ...]) -> Path:
    """Where the files are: in the package, in the user's folder, or fetched from the Hugging Face hub."""
    if name in ENCODERS:
        return ENCODERS[name].locate()
    if isinstance(name, NamedByFolder):
        raise EncoderUnavailable(
            f"The model folder names encoder {shown(name)!r}, which does not come with repcl and is "
            "not loaded on a folder's word: name it yourself, with --encoder or load(..., encoder=...)."
        )
    folder = Path(name)
    if folder.is_dir():
        return folder
    if folder.exists() or not HUB_ID.fullmatch(name):
        raise Unusable("expected a folder or a Hugging Face id, found neither")
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(name, allow_patterns=list(wanted)))


def _config_values(folder: Path) -> dict[str, Any]:
    values = parse_object(read_bytes(folder / CONFIG, MEGABYTE), CONFIG)
    if values.get("quantization_config") is not None:
        raise Unusable("expected plain weights, found a quantization_config")
    return values


def _tokenizer(folder: Path) -> FastTokenizer:
    if not (folder / TOKENIZER).exists():
        raise Unusable(f"it has no tokenizer: save it beside the weights, as {TOKENIZER}")
    settings: dict[str, Any] = {}
    for file in TOKENIZER_SETTINGS:
        settings |= read_object(folder / file, 8 * MEGABYTE)
    return build_tokenizer(read_bytes(folder / TOKENIZER, LARGEST_FILE), settings)


def _weight_files(folder: Path) -> list[Path]:
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / WEIGHTS_INDEX).is_file():
        names = sorted(shown(path.name) for path in folder.iterdir())[:8]
        raise EncoderUnavailable(
            f"Folder {shown(str(folder))!r} holds no weights: expected config.json, a tokenizer and "
            f"{WEIGHTS}, found {names}."
        )
    table = read_object(folder / WEIGHTS_INDEX, 16 * MEGABYTE).get("weight_map")
    names = list(dict.fromkeys(map(str, table.values()))) if isinstance(table, dict) else []
    if not 0 < len(names) <= MOST_FILES:
        raise Unusable(f"expected the names of weight files in {WEIGHTS_INDEX}, found {len(names)}")
    for file in names:
        if not PLAIN_FILE.fullmatch(file) or not (folder / file).is_file():
            raise Unusable(f"expected *.safetensors files beside {WEIGHTS_INDEX}, found {shown(file)!r}")
    return [folder / file for file in names]


def _shapes(files: list[Path]) -> dict[str, tuple[int, ...]]:
    """Shapes of all weights, without reading them; refused where they cannot fit into memory."""
    from safetensors import safe_open

    reason = too_large(sum(path.stat().st_size for path in files))
    if reason is not None:
        raise Unusable(f"the weights need {reason}")
    shapes: dict[str, tuple[int, ...]] = {}
    for path in files:
        with safe_open(path, framework="pt") as file:
            shapes.update({key: tuple(file.get_slice(key).get_shape()) for key in file.keys()})  # noqa: SIM118
    return shapes


def _weights(files: list[Path]) -> dict[str, Tensor]:
    from safetensors import safe_open

    weights: dict[str, Tensor] = {}
    for path in files:
        with safe_open(path, framework="pt") as file:
            # a copy, for the bytes may lie at an odd address, where other kernels give other last bits
            weights.update({key: file.get_tensor(key).clone() for key in file.keys()})  # noqa: SIM118
    return weights


def _number_type(values: Mapping[str, Any], weights: Mapping[str, Tensor]) -> torch.dtype:
    """The number type that the configuration names, else that of the weights."""
    named = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
    told = values.get("dtype", values.get("torch_dtype"))
    if isinstance(told, str) and told in named:
        return named[told]
    kinds = {tensor.dtype for tensor in weights.values() if tensor.is_floating_point()}
    found = kinds & {*named.values(), torch.float64}
    if not found or kinds != found:
        raise Unusable(f"expected weights of ordinary number types, found {shown(sorted(map(str, kinds)))}")
    return max(found, key=lambda kind: torch.finfo(kind).bits)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn whatever goes wrong into a sentence."""
    try:
        yield
    except RepclError:
        raise
    except Exception as error:  # libraries that read a stranger's files raise errors of every kind
        if name in ENCODERS or (isinstance(error, Unusable) and Path(name).is_dir()):
            raise EncoderUnavailable(f"Encoder {shown(name)!r} could not be loaded: {error}.") from error
        if "/" not in name and "-" not in name:
            raise UnknownName("encoder", shown(name), [*ENCODERS, "a Hugging Face id", "a folder"]) from error
        raise EncoderUnavailable(
            f"Encoder {shown(name)!r} could not be loaded ({shown(str(error))}). Give "
            f"{' or '.join(ENCODERS)}, a local folder saved by transformers, or a Hugging Face id that this "
            "machine can reach or has cached."
        ) from error
