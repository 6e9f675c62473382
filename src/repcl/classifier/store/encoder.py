"""An encoder without the package or folder it came from: its configuration and tokenizer as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from repcl.classifier.store.records import DamagedModel, one_line, parse_json
from repcl.model import Encoder, Readout, load_encoder
from repcl.model.encoders import quiet_transformers

if TYPE_CHECKING:  # transformers takes seconds to import; `repcl --help` should not
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

LARGEST_NUMBER = 10**8
# Keys that could make transformers fetch or run code, or that only say where the encoder came from.
UNWANTED = re.compile(
    r"auto_map|implementation|quantization|name_or_path|use_kernel|dtype|architectures|label"
)
ATTENTION = ("eager", "sdpa")
PLAIN_NAME = re.compile(r"[\w.+-]{1,60}")
_TROUBLE = (ValueError, TypeError, RuntimeError, AttributeError, KeyError, ImportError)


def config_json(encoder: Encoder) -> bytes:
    """The backbone's configuration, and which of the ways to compute attention it uses."""
    config = encoder.backbone.config
    parts = {"attention": config._attn_implementation, "config": _plain(config.to_dict())}
    return json.dumps(parts, sort_keys=True).encode()


def tokenizer_json(encoder: Encoder) -> bytes:
    """The tokenizer: the fast backend's own JSON, its special tokens and its longest input."""
    from tokenizers import Tokenizer

    tokenizer: Any = encoder.tokenizer
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_padding()  # set in every call; left as they are they would differ from save to save
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


def empty_encoder(
    name: str, config: bytes, tokenizer: bytes, readout: Readout, weights: Mapping[str, Tensor]
) -> Encoder:
    """The encoder without weights, which takes next to no memory; nothing is looked up outside the folder.

    Args:
        name: what the user called it.
        config: from `config_json`.
        tokenizer: from `tokenizer_json`.
        readout: the input kind.
        weights: of the backbone, by their names there; a configuration that asks for others is refused.
    """

    def reload() -> dict[str, Tensor]:
        # Only methods that start over ask for the pretrained weights; they need the original then.
        return load_encoder(name, readout, device="cpu").state_dict()

    parts = parse_json(config, "the encoder's configuration")
    values = parts if isinstance(parts, dict) else {}
    backbone = _empty_backbone(_config(values.get("config")), weights)
    if values.get("attention") in ATTENTION:  # others exist that are fetched from elsewhere
        backbone.set_attn_implementation(values["attention"])
    rebuilt = _tokenizer(tokenizer)
    rows = len(backbone.get_input_embeddings().weight)  # type: ignore[arg-type]
    if max(rebuilt.get_vocab().values(), default=0) >= rows:
        raise DamagedModel(f"The tokenizer has more words than the {rows} that the encoder knows.")
    return Encoder(backbone, rebuilt, readout, name=name, reload=reload)


def fill_encoder(empty: Encoder, weights: Mapping[str, Tensor]) -> Encoder:
    """The encoder again, with the weights it had, by their names in the backbone."""
    config = empty.backbone.config
    try:
        with quiet_transformers():
            backbone: PreTrainedModel = type(empty.backbone).from_pretrained(
                None, config=config, state_dict=dict(weights), dtype=next(iter(weights.values())).dtype
            )
    except _TROUBLE as error:
        raise DamagedModel(f"The encoder cannot be rebuilt ({one_line(error)}).") from error
    backbone.set_attn_implementation(config._attn_implementation)
    return empty.with_backbone(backbone).eval()


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers, plain names and lists or dictionaries of them; nothing that names a file or a program."""
    return {key: value for key, value in values.items() if not UNWANTED.search(key) and _is_plain(value)}


def _is_plain(value: Any, depth: int = 0) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        return abs(value) <= LARGEST_NUMBER
    if isinstance(value, str):
        return PLAIN_NAME.fullmatch(value) is not None
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
    from transformers import CONFIG_MAPPING

    kind = values.get("model_type") if isinstance(values, dict) else None
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise DamagedModel(f"Expected the configuration of an encoder, found model type {kind!r}.")
    try:
        return CONFIG_MAPPING[kind].from_dict(_plain(values))
    except Exception as error:
        raise DamagedModel(f"The encoder's configuration cannot be used ({one_line(error)}).") from error


def _empty_backbone(config: PretrainedConfig, weights: Mapping[str, Tensor]) -> PreTrainedModel:
    from transformers import AutoModel

    try:
        if int(getattr(config, "num_hidden_layers", 0)) > len(weights):
            raise DamagedModel("The encoder's configuration asks for more layers than there are weights.")
        with torch.device("meta"):
            backbone: PreTrainedModel = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    except _TROUBLE as error:
        raise DamagedModel(f"The encoder cannot be rebuilt ({one_line(error)}).") from error
    wanted = {key: value.shape for key, value in backbone.state_dict().items()}
    if wanted != {key: value.shape for key, value in weights.items()}:
        raise DamagedModel("The encoder's weights do not fit its configuration.")
    return backbone


def _tokenizer(data: bytes) -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    parts = parse_json(data, "the tokenizer")
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
        raise DamagedModel(f"The tokenizer cannot be rebuilt ({one_line(error)}).") from error
