"""BERT in plain torch, so that a command need not wait for transformers.

Most small encoders are BERTs, the bundled one too, and transformers takes twice as long to import as torch.
Parameters have the names and the order that transformers gives them, and numbers are computed in the same
order: weights fit both ways, and so do the bits (but for training on AMD, see `products.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from repcl.model.products import Linear
from repcl.model.untrusted import Unusable, is_plain, shown

PREFIX = "bert."
"""Of the encoder's weights in files that hold more than an encoder."""
OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "relu": functional.relu,
    "silu": functional.silu,
    "swish": functional.silu,
}


@dataclass
class BertConfig:
    """The shape of a BERT, in the words of its configuration file.

    Attributes:
        given: all plain values of that file, also those that nobody asks for here.
    """

    model_type: ClassVar[str] = "bert"
    is_decoder: ClassVar[bool] = False

    vocab_size: int = 30_522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    given: dict[str, Any] = field(default_factory=dict)
    _attn_implementation: str = "eager"

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """What is taken where a file does not say: all that describes the shape."""
        inner = ("given", "_attn_implementation")
        return {part.name: part.default for part in fields(cls) if part.name not in inner}

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "BertConfig":
        """The configuration in a file; values of the wrong kind are refused."""
        wanted = cls.defaults()
        found = {name: values.get(name, default) for name, default in wanted.items()}
        for name, default in wanted.items():
            _check_kind(name, found[name], default)
        plain = {key: value for key, value in values.items() if is_plain(value)}
        return cls(**found, given=plain)

    def to_dict(self) -> dict[str, Any]:
        """All values, as a configuration file has them."""
        own = {name: getattr(self, name) for name in self.defaults()}
        return {**self.given, **own, "model_type": self.model_type}


def _check_kind(name: str, value: object, default: object) -> None:
    """Refuse a value that is not of the kind that its default has."""
    if isinstance(default, str):
        kind, is_right = "a name", isinstance(value, str)
    elif isinstance(default, float):
        kind, is_right = "a number from 0 to 1", isinstance(value, int | float) and 0 <= value <= 1
    else:
        kind, is_right = "a whole number", type(value) is int
    if not is_right and not (name == "pad_token_id" and value is None):
        raise Unusable(f"the configuration cannot be used: expected {kind} as {name}, found {shown(value)}")


def is_ours(values: Mapping[str, Any]) -> bool:
    """Whether a configuration describes a BERT that this file can build."""
    activation = values.get("hidden_act", BertConfig.hidden_act)
    return values.get("model_type") == BertConfig.model_type and activation in list(ACTIVATIONS)


class States(NamedTuple):
    """What a pass gives: the states of the last layer, and of all, the embeddings first, where asked for."""

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...] | None = None


class Bert(nn.Module):
    """Embeddings, then layers; built without weights."""

    base_model_prefix = PREFIX.rstrip(".")
    _supports_sdpa = True

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = _Embeddings(config)
        self.encoder = _Layers(config)
        self.pooler = _Pooler(config)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> States:
        """States of all tokens, (batch, length, hidden)."""
        embedded = self.embeddings(input_ids, token_type_ids, inputs_embeds)
        mask = None if attention_mask is None else additive_mask(attention_mask, embedded.dtype)
        passed = [embedded]
        for layer in self.encoder.layer:
            passed.append(layer(passed[-1], mask))
        return States(passed[-1], tuple(passed) if output_hidden_states else None)

    def get_input_embeddings(self) -> nn.Embedding:
        """The table of word embeddings."""
        return self.embeddings.word_embeddings

    def set_input_embeddings(self, table: nn.Embedding) -> None:
        """Look words up in another table."""
        self.embeddings.word_embeddings = table

    def set_attn_implementation(self, name: str) -> None:
        """Compute attention by plain matrix products (`eager`) or by torch's own function (`sdpa`)."""
        self.config._attn_implementation = name

    def resize_token_embeddings(self, size: int, *, mean_resizing: bool = False) -> None:  # noqa: ARG002
        """Make room for more words; the rows of new ones are drawn anew."""
        old = self.get_input_embeddings()
        table = nn.Embedding(size, old.embedding_dim, padding_idx=old.padding_idx).to(old.weight)
        with torch.no_grad():
            table.weight.normal_(0.0, self.config.initializer_range)
            table.weight[: len(old.weight)] = old.weight
        table.weight.requires_grad_(old.weight.requires_grad)
        self.config.vocab_size = size
        self.set_input_embeddings(table)


class _Embeddings(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.word_embeddings = _table(config.vocab_size, size, config.pad_token_id)
        self.position_embeddings = _table(config.max_position_embeddings, size)
        self.token_type_embeddings = _table(config.type_vocab_size, size)
        self.LayerNorm = nn.LayerNorm(size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        input_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
    ) -> Tensor:
        words = self.word_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        places = torch.arange(words.shape[1], device=words.device)[None]
        if token_type_ids is None:
            token_type_ids = torch.zeros(words.shape[:2], dtype=torch.long, device=words.device)
        states = words + self.token_type_embeddings(token_type_ids) + self.position_embeddings(places)
        normed: Tensor = self.dropout(self.LayerNorm(states))
        return normed


def _table(rows: int, size: int, padding: int | None = None) -> nn.Embedding:
    """An empty table; drawing numbers for it, even on no device, would load torch's compiler."""
    return nn.Embedding(rows, size, padding, _weight=torch.empty(rows, size))


class _SelfAttention(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.attention_head_size = config.hidden_size // config.num_attention_heads
        self.query = Linear(config.hidden_size, config.hidden_size)
        self.key = Linear(config.hidden_size, config.hidden_size)
        self.value = Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        query, key, value = (
            by_head(part(states), self.attention_head_size) for part in (self.query, self.key, self.value)
        )
        found = attended(
            query,
            key,
            value,
            is_plain=self.config._attn_implementation == "eager",
            mask=mask,
            dropout=self.dropout.p if self.training else 0.0,
        )
        return found.transpose(1, 2).flatten(start_dim=2)


class _Residual(nn.Module):
    """A linear layer whose output is added to what came in before."""

    def __init__(self, config: BertConfig, size: int) -> None:
        super().__init__()
        self.dense = Linear(size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, states: Tensor, before: Tensor) -> Tensor:
        normed: Tensor = self.LayerNorm(self.dropout(self.dense(states)) + before)
        return normed


class _Attention(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = _SelfAttention(config)
        self.output = _Residual(config, config.hidden_size)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        mixed: Tensor = self.output(self.self(states, mask), states)
        return mixed


class _Intermediate(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.intermediate_size)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, states: Tensor) -> Tensor:
        return self.activation(self.dense(states))


class _Layer(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = _Intermediate(config)
        self.output = _Residual(config, config.intermediate_size)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.feed_forward_chunk(self.attention(states, mask))

    def feed_forward_chunk(self, states: Tensor) -> Tensor:
        """The half of the layer that looks at each token alone."""
        passed: Tensor = self.output(self.intermediate(states), states)
        return passed


class _Layers(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))


class _Pooler(nn.Module):
    """Weights that files bring along and that no readout uses."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size)


# ---- attention ------------------------------------------------------------------------------------------


def additive_mask(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Zero for real tokens and the lowest number for padding, (batch, 1, 1, length)."""
    lowest = torch.finfo(dtype).min
    return (1.0 - mask[:, None, None, :].to(dtype)) * lowest


def by_head(states: Tensor, size: int) -> Tensor:
    """(batch, length, hidden) -> (batch, heads, length, head size)."""
    return states.view(*states.shape[:2], -1, size).transpose(1, 2)


def attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    is_plain: bool,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Values weighted by attention, each text attending to itself alone, (batch, heads, length, size)."""
    if not is_plain:
        return functional.scaled_dot_product_attention(query, key, value, mask, dropout)
    # Several texts are copied by `matmul` anyway; one that is not gets other last bits on some processors.
    turned = key.transpose(2, 3).contiguous()
    weights = torch.matmul(query.contiguous(), turned) * query.shape[-1] ** -0.5
    weights = functional.softmax(weights if mask is None else weights + mask, dim=-1)
    return torch.matmul(functional.dropout(weights, dropout, training=dropout > 0), value.contiguous())


# ---- weights --------------------------------------------------------------------------------------------


class Filled(NamedTuple):
    """A transformer with its weights, and what did not go smoothly.

    Attributes:
        missing: names that no weight was found for.
        mismatched: names with the shape that was found and the one that was wanted.
        unexpected: names of weights that have no place.
    """

    backbone: Any
    missing: list[str]
    mismatched: list[tuple[str, torch.Size, torch.Size]]
    unexpected: list[str]


def fill_bert(config: BertConfig, weights: Mapping[str, Tensor], dtype: torch.dtype) -> Filled:
    """A BERT with these weights, which may have the names of older files; what is missing is zero."""
    with torch.device("meta"):
        backbone = Bert(config)
    wanted = {name: value.shape for name, value in backbone.state_dict().items()}
    sources = _names_in_files(weights)
    fitting, mismatched = {}, []
    for name, shape in wanted.items():
        found = weights[sources[name]] if name in sources else torch.zeros(shape)
        if found.shape != shape:
            mismatched.append((name, found.shape, shape))
            continue
        fitting[name] = found.to(dtype, copy=True)
    missing = [name for name in wanted if name not in sources]
    unexpected = [source for name, source in sources.items() if name not in wanted]
    if not mismatched:
        backbone.load_state_dict(fitting, assign=True)
        backbone.requires_grad_(True)
    return Filled(backbone, missing, mismatched, unexpected)


def _names_in_files(weights: Mapping[str, Tensor]) -> dict[str, str]:
    """The names that files give to our parameters."""
    has_prefix = any(key.startswith(PREFIX) for key in weights)
    found = {}
    for key in weights:
        name = key.removeprefix(PREFIX) if has_prefix else key
        for old, new in OLD_NAMES.items():
            name = name.removesuffix(old) + new if name.endswith(old) else name
        found[name] = key
    return found
