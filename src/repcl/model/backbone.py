"""A transformer from a configuration and weights that anyone may have written.

Only the families below are built, from the keys that describe their shape. Nothing that a configuration says
about code, kernels, quantization or other models is read.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from repcl.model.bert import Bert, BertConfig, Filled, fill_bert, is_ours
from repcl.model.untrusted import Unusable, is_number, is_plain, shown

if TYPE_CHECKING:  # transformers takes seconds to import; a BERT does without it
    from transformers import PretrainedConfig, PreTrainedModel

    Config = BertConfig | PretrainedConfig
    Backbone = Bert | PreTrainedModel

# The families that are supported and tested, with keys that their code reads though their class lacks them.
FAMILIES: dict[str, frozenset[str]] = {
    "albert": frozenset(),
    "bert": frozenset(),
    "camembert": frozenset(),
    "deberta": frozenset({"embedding_size", "talking_head"}),
    "deberta-v2": frozenset(
        {
            "attention_head_size",
            "conv_act",
            "conv_groups",
            "conv_kernel_size",
            "embedding_size",
            "norm_rel_ebd",
            "position_buckets",
            "share_att_key",
        }
    ),
    "distilbert": frozenset(),
    "electra": frozenset(),
    "modernbert": frozenset({"global_attn_every_n_layers", "global_rope_theta", "local_rope_theta"}),
    "mpnet": frozenset(),
    "roberta": frozenset(),
    "xlm-roberta": frozenset(),
}
COUNTED_FROM_PADDING = frozenset({"camembert", "mpnet", "roberta", "xlm-roberta"})
# Such a model reads a text from left to right or beside another: not an encoder.
NO_ENCODER = ("is_decoder", "add_cross_attention", "is_encoder_decoder")
# Tables that weights bring anyway would be computed first, one number after another.
LEFT_OUT = frozenset({*NO_ENCODER, "sinusoidal_pos_embds"})
MOST_LAYERS = 256
RANGES = {
    "attention_head_size": (1, 4096),
    "dim": (1, 65_536),
    "embedding_size": (1, 65_536),
    "global_attn_every_n_layers": (1, MOST_LAYERS),
    "hidden_dim": (1, 262_144),
    "hidden_size": (1, 65_536),
    "inner_group_num": (1, MOST_LAYERS),
    "intermediate_size": (1, 262_144),
    "max_position_embeddings": (1, 1 << 20),
    "n_heads": (1, 1024),
    "n_layers": (1, MOST_LAYERS),
    "num_attention_heads": (1, 1024),
    "num_hidden_groups": (1, MOST_LAYERS),
    "num_hidden_layers": (1, MOST_LAYERS),
    "type_vocab_size": (0, 1024),
    "vocab_size": (1, 2_000_000),
}
POOLER = "pooler."  # gives one vector for a text by a way of its own; no readout uses it
ATTENTION = ("eager", "sdpa")  # the others are fetched from elsewhere


def build_config(values: Mapping[str, Any]) -> Config:
    """The configuration of an encoder of a supported family."""
    kind = values.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise Unusable(f"expected an encoder of type {', '.join(FAMILIES)}, found model type {shown(kind)!r}")
    for key in NO_ENCODER:
        if values.get(key):
            raise Unusable(f"expected an encoder, found {key} = {shown(values[key])}")
    try:
        config = _bert_config(values) if is_ours(values) else _other_config(kind, values)
        _check_heads(config)
    except Unusable:
        raise
    except Exception as error:
        raise Unusable(f"the configuration cannot be used: {shown(str(error))}") from error
    return config


def empty_backbone(config: Config) -> Backbone:
    """The transformer without weights, which takes next to no memory."""
    try:
        with torch.device("meta"):
            if isinstance(config, BertConfig):
                return Bert(config)
            backbone: PreTrainedModel = _model_class(config)._from_config(config, attn_implementation="eager")
    except Exception as error:
        raise Unusable(f"the encoder cannot be built: {shown(str(error))}") from error
    return backbone


def fill_backbone(
    config: Config, weights: Mapping[str, Tensor], *, dtype: torch.dtype
) -> tuple[Backbone, list[str]]:
    """The transformer with its weights, and the names of those that have no place in it.

    Raises:
        Unusable: where a weight is missing or has another shape.
    """
    try:
        if isinstance(config, BertConfig):
            filled = fill_bert(config, weights, dtype)
        else:
            filled = _fill_by_transformers(config, weights, dtype)
    except Exception as error:
        raise Unusable(f"the encoder cannot be built: {shown(str(error))}") from error
    for key, found, wanted in sorted(filled.mismatched, key=str):
        raise Unusable(f"expected {shown(key)} of shape {tuple(wanted)}, found {tuple(found)}")
    missing = [key for key in sorted(filled.missing) if not key.startswith(POOLER)]
    if missing:
        raise Unusable(f"expected weights for {listed(missing)}, found none under these names")
    prefix = f"{filled.backbone.base_model_prefix}."
    return filled.backbone.eval(), _out_of_place(filled.unexpected, weights, prefix)


def choose_attention(backbone: Backbone, device: torch.device) -> None:
    """Plain attention or torch's own; whatever a configuration asks for beyond that is not heard."""
    # With short texts plain attention trains about a tenth faster than the fused kernel on a CPU.
    is_plain_better = device.type == "cpu" or not backbone._supports_sdpa
    backbone.set_attn_implementation("eager" if is_plain_better else "sdpa")


def check_size(config: Config, shapes: Iterable[tuple[int, ...]]) -> None:
    """Refuse a configuration that asks for more numbers than its weights hold."""
    wanted = sum(
        tensor.numel() for key, tensor in empty_backbone(config).state_dict().items() if POOLER not in key
    )
    there = sum(torch.Size(shape).numel() for shape in shapes)
    if wanted > there:
        raise Unusable(f"expected weights of {wanted:,} numbers as the configuration asks, found {there:,}")


def listed(names: Iterable[str], most: int = 3) -> str:
    """The first names of many, each shortened."""
    every = list(names)
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(map(shown, every[:most])) + rest


def _bert_config(values: Mapping[str, Any]) -> BertConfig:
    for key in sorted(BertConfig.defaults().keys() & values.keys()):
        _check_value(key, values[key])
    return BertConfig.read(values)


def _other_config(kind: str, values: Mapping[str, Any]) -> PretrainedConfig:
    from transformers import CONFIG_MAPPING, PretrainedConfig

    chosen = CONFIG_MAPPING[kind]
    shared = {field.name for field in dataclasses.fields(PretrainedConfig)}
    own = {field.name for field in dataclasses.fields(chosen)} - shared
    known = (own | set(chosen.attribute_map) | FAMILIES[kind]) - LEFT_OUT
    wanted = {key: values[key] for key in sorted(known & values.keys())}
    for key, value in wanted.items():
        _check_value(key, value)
    config: PretrainedConfig = chosen(**wanted)
    return config


def _model_class(config: PretrainedConfig) -> Any:
    from transformers import MODEL_MAPPING

    return MODEL_MAPPING[type(config)]


def _fill_by_transformers(
    config: PretrainedConfig, weights: Mapping[str, Tensor], dtype: torch.dtype
) -> Filled:
    with _quiet_transformers():
        backbone, told = _model_class(config).from_pretrained(
            None,
            config=config,
            state_dict=dict(weights),
            dtype=dtype,
            attn_implementation="eager",
            ignore_mismatched_sizes=True,  # they are refused by name
            output_loading_info=True,
            trust_remote_code=False,
            local_files_only=True,
        )
    if told["error_msgs"]:
        raise Unusable(shown(told["error_msgs"]))
    missing = list(told["missing_keys"])
    _empty_pooler(backbone, missing)
    return Filled(backbone, missing, list(told["mismatched_keys"]), list(told["unexpected_keys"]))


@contextmanager
def _quiet_transformers() -> Iterator[None]:
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


def _check_value(key: str, value: Any) -> None:
    if not is_plain(value):
        raise Unusable(f"expected a plain value of {key}, found {shown(value)}")
    low, high = RANGES.get(key, (None, None))
    if low is not None and high is not None and not is_number(value, low, high):
        raise Unusable(f"expected {key} between {low} and {high}, found {shown(value)}")


def _check_heads(config: Config) -> None:
    if config.hidden_size % config.num_attention_heads:
        raise Unusable(
            f"expected a hidden size that its attention heads divide, found {config.hidden_size} and "
            f"{config.num_attention_heads}"
        )
    pad = config.pad_token_id
    if pad is not None and not is_number(pad, 0, config.vocab_size - 1):
        raise Unusable(f"expected a padding id below {config.vocab_size}, found {shown(pad)}")
    if config.model_type in COUNTED_FROM_PADDING and pad not in (0, 1):
        # positions count from it on, and two spare ones are kept for that
        raise Unusable(f"expected the padding id 0 or 1 for {config.model_type}, found {shown(pad)}")


def _empty_pooler(backbone: PreTrainedModel, missing: Iterable[str]) -> None:
    """Zeros, not random numbers, where the pooler has no weights: the same encoder every time."""
    parameters = dict(backbone.named_parameters())
    with torch.no_grad():
        for key in missing:
            if key in parameters:
                parameters[key].zero_()


def _out_of_place(unexpected: Iterable[str], weights: Mapping[str, Tensor], prefix: str) -> list[str]:
    """Names without a place, apart from heads beside the encoder and tables that older versions stored."""
    has_prefix = any(key.startswith(prefix) for key in weights)
    return [
        key
        for key in sorted(unexpected)
        if not key.endswith((".position_ids", ".token_type_ids"))
        and (not has_prefix or key.startswith(prefix))
    ]
