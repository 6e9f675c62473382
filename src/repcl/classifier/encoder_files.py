"""An encoder without the package or folder it came from: its configuration and tokeniser as JSON."""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import CONFIG_MAPPING, AutoModel, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from repcl.classifier.records import DamagedModel, one_line, parse_json
from repcl.model import Encoder, Readout, load_encoder

LARGEST_NUMBER = 10**8
# Keys that could make transformers fetch or run code, or that only say where the encoder came from.
UNWANTED = re.compile(
    r"auto_map|implementation|quantization|name_or_path|use_kernel|dtype|architectures|label"
)
ATTENTION = ("eager", "sdpa")
PLAIN_WORD = re.compile(r"[\w.+-]{1,60}")


def config_json(encoder: Encoder) -> bytes:
    """The backbone's configuration, and which of the ways to compute attention it uses."""
    config = encoder.backbone.config
    parts = {"attention": config._attn_implementation, "config": _plain(config.to_dict())}
    return json.dumps(parts, sort_keys=True).encode()


def tokenizer_json(encoder: Encoder) -> bytes:
    """The tokeniser: the fast backend's own JSON, its special tokens and its longest input."""
    tokenizer: Any = encoder.tokenizer
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_padding()  # set anew in every call; left as they are they would differ from save to save
    backend.no_truncation()
    special = {
        key: str(value) for key, value in tokenizer.special_tokens_map.items() if isinstance(value, str)
    }
    parts = {
        "backend": backend.to_str(),
        "special_tokens": special,
        "model_max_length": min(int(tokenizer.model_max_length), LARGEST_NUMBER),
    }
    return json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()


def rebuild_encoder(
    name: str, config: bytes, tokenizer: bytes, weights: Mapping[str, Tensor], readout: Readout
) -> Encoder:
    """The encoder again, with the weights it had; nothing is looked up outside the model folder.

    Args:
        name: what the user called it.
        config: from `config_json`.
        tokenizer: from `tokenizer_json`.
        weights: of the backbone, by their names there.
        readout: the input kind.
    """

    def reload() -> dict[str, Tensor]:
        # Only methods that start over ask for the pretrained weights; they need the original then.
        return load_encoder(name, readout, device="cpu").state_dict()

    parts = parse_json(config, "the encoder's configuration")
    values = parts if isinstance(parts, dict) else {}
    backbone = _backbone(_config(values.get("config")), weights)
    if values.get("attention") in ATTENTION:  # others exist that are fetched from elsewhere
        backbone.set_attn_implementation(values["attention"])
    return Encoder(backbone, _tokenizer(tokenizer), readout, name=name, reload=reload).eval()


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers, plain words and lists or dictionaries of them; nothing that names a place or a program."""
    return {key: value for key, value in values.items() if not UNWANTED.search(key) and _is_plain(value)}


def _is_plain(value: Any, depth: int = 0) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        return abs(value) <= LARGEST_NUMBER
    if isinstance(value, str):
        return PLAIN_WORD.fullmatch(value) is not None
    if isinstance(value, list | tuple) and depth < 3:
        return len(value) < 10_000 and all(_is_plain(item, depth + 1) for item in value)
    return (
        isinstance(value, dict)
        and depth < 3
        and all(
            isinstance(key, str) and not UNWANTED.search(key) and _is_plain(item, depth + 1)
            for key, item in value.items()
        )
    )


def _config(values: Any) -> PretrainedConfig:
    kind = values.get("model_type") if isinstance(values, dict) else None
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise DamagedModel(f"Expected the configuration of an encoder, found model type {kind!r}.")
    try:
        return CONFIG_MAPPING[kind].from_dict(_plain(values))
    except Exception as error:
        raise DamagedModel(f"The encoder's configuration cannot be used ({one_line(error)}).") from error


def _backbone(config: PretrainedConfig, weights: Mapping[str, Tensor]) -> PreTrainedModel:
    """A backbone with given weights; one that would need others is refused before memory is taken for it."""
    if int(getattr(config, "num_hidden_layers", 0)) > len(weights):
        raise DamagedModel("The encoder's configuration asks for more layers than there are weights.")
    try:
        with torch.device("meta"):
            empty = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
        wanted = {key: value.shape for key, value in empty.state_dict().items()}
        if wanted != {key: value.shape for key, value in weights.items()}:
            raise DamagedModel("The encoder's weights do not fit its configuration.")
        with _quiet_transformers():
            backbone: PreTrainedModel = type(empty).from_pretrained(
                None, config=config, state_dict=dict(weights), dtype=next(iter(weights.values())).dtype
            )
    except (ValueError, TypeError, RuntimeError, AttributeError, KeyError, ImportError) as error:
        raise DamagedModel(f"The encoder cannot be rebuilt ({one_line(error)}).") from error
    return backbone


def _tokenizer(data: bytes) -> PreTrainedTokenizerFast:
    parts = parse_json(data, "the tokeniser")
    try:
        return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
            tokenizer_object=Tokenizer.from_str(parts["backend"]),
            model_max_length=int(parts["model_max_length"]),
            **{
                str(key): str(value)
                for key, value in parts["special_tokens"].items()
                if key.endswith("_token")
            },
        )
    except Exception as error:
        raise DamagedModel(f"The tokeniser cannot be rebuilt ({one_line(error)}).") from error


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity(logging.ERROR)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
