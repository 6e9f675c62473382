"""An encoder without the package or folder it came from: its configuration and tokenizer as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from repcl.classifier.store.records import DamagedModel
from repcl.model import Encoder, Readout, load_encoder
from repcl.model.backbone import ATTENTION, build_config, empty_backbone, fill_backbone
from repcl.model.encoders import NamedByFolder, check_together, try_out
from repcl.model.tokenizer import build_tokenizer
from repcl.model.untrusted import LARGEST_NUMBER, Unusable, is_plain, parse_object, shown

# Keys that only say where the encoder came from, or that could make transformers fetch or run code.
UNWANTED = re.compile(
    r"auto_map|implementation|quantization|name_or_path|use_kernel|dtype|architectures|label"
)


def config_json(encoder: Encoder) -> bytes:
    """The backbone's configuration, and which of the ways to compute attention it uses."""
    config = encoder.backbone.config
    plain = {
        key: value for key, value in config.to_dict().items() if not UNWANTED.search(key) and is_plain(value)
    }
    return json.dumps({"attention": config._attn_implementation, "config": plain}, sort_keys=True).encode()


def tokenizer_json(encoder: Encoder) -> bytes:
    """The tokenizer: the fast backend's own JSON, its special tokens and its longest input."""
    from tokenizers import Tokenizer

    tokenizer = encoder.tokenizer
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_padding()  # set in every call; left as they are they would differ from save to save
    backend.no_truncation()
    parts = {
        "backend": backend.to_str(),
        "special_tokens": tokenizer.special_tokens_map,
        "model_max_length": min(tokenizer.model_max_length, LARGEST_NUMBER),
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
        return load_encoder(NamedByFolder(name), readout, device="cpu").state_dict()

    with _refused("The encoder cannot be rebuilt"):
        parts = parse_object(config, "the encoder's configuration")
        values = parts.get("config")
        backbone = empty_backbone(build_config(values if isinstance(values, dict) else {}))
        wanted = {key: value.shape for key, value in backbone.state_dict().items()}
        if wanted != {key: value.shape for key, value in weights.items()}:
            raise Unusable("the weights do not fit its configuration")
    if parts.get("attention") in ATTENTION:
        backbone.set_attn_implementation(parts["attention"])
    with _refused("The tokenizer cannot be rebuilt"):
        rebuilt = _tokenizer(tokenizer)
        check_together(rebuilt, backbone)
    return Encoder(backbone, rebuilt, readout, name=name, reload=reload)


def fill_encoder(empty: Encoder, weights: Mapping[str, Tensor]) -> Encoder:
    """The encoder again, with the weights it had, by their names in the backbone."""
    config = empty.backbone.config
    attention = config._attn_implementation
    with _refused("The encoder cannot be rebuilt"):
        backbone, _ = fill_backbone(config, weights, dtype=next(iter(weights.values())).dtype)
        backbone.set_attn_implementation(attention)
        try_out(empty.tokenizer, backbone)
    return empty.with_backbone(backbone).eval()


@contextmanager
def _refused(what: str) -> Iterator[None]:
    try:
        yield
    except Unusable as error:
        raise DamagedModel(f"{what}: {error}.") from error


def _tokenizer(data: bytes) -> Any:
    parts = parse_object(data, "the tokenizer")
    backend, special = parts.get("backend"), parts.get("special_tokens")
    if not isinstance(backend, str) or not isinstance(special, dict):
        raise Unusable(f"expected a tokenizer, found {shown(parts)}")
    return build_tokenizer(backend, {**special, "model_max_length": parts.get("model_max_length")})
