"""Shared fixtures: a tiny random BERT with a small vocabulary, made in memory, and toy tasks."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel, PreTrainedModel, PreTrainedTokenizerFast

from repcl.data import Example, InputKind, Span, Task
from repcl.methods import METHODS
from repcl.model import READOUTS, Encoder, Readout
from repcl.model import encoder as encoder_module
from repcl.model.backbone import build_config, fill_backbone
from repcl.model.tokenizer import FastTokenizer

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _nothing_tokenized_yet() -> None:
    """Tests share a process; what one tokenized must not hide a warning from the next."""
    encoder_module._TOKENIZED.clear()


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyzéßü0123456789.,-'[]"
WORDS = [
    "red", "green", "blue", "apple", "pear", "plum", "fast", "slow", "car", "bike",
    "train", "boat", "rain", "sun", "snow", "wind", "cold", "warm", "the", "a",
    "is", "was", "in", "of", "born", "lives", "works", "company", "city", "paris",
    "london", "anna", "bob", "won", "lost", "fight", "war",
]  # fmt: skip


def tiny_tokenizer() -> FastTokenizer:
    vocabulary = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS]
    tokens = {token: index for index, token in enumerate(dict.fromkeys(vocabulary))}
    backend = Tokenizer(WordPiece(tokens, unk_token="[UNK]"))
    backend.normalizer = BertNormalizer(lowercase=True, strip_accents=False)
    backend.pre_tokenizer = BertPreTokenizer()
    backend.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", tokens["[CLS]"]), ("[SEP]", tokens["[SEP]"])]
    )
    special = {f"{token.strip('[]').lower()}_token": token for token in SPECIAL}
    return FastTokenizer(backend, special, longest=512)


def readout_of(name: str, kind: InputKind) -> Readout:
    """How a method with its default settings reads the encoder."""
    chosen = METHODS[name]
    return chosen.readout(chosen.Settings(), kind)


def tiny_encoder(
    kind: InputKind = "sentence",
    *,
    dropout: float = 0.1,
    positions: int = 66,
    readout: Readout | None = None,
) -> Encoder:
    """A 2-layer, 32-wide random BERT; the same weights each time, whatever the global generator says."""
    tokenizer = tiny_tokenizer()
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=positions,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        )
        weights = BertModel(config).state_dict()  # drawn as transformers draws them
        backbone, _ = fill_backbone(build_config(config.to_dict()), weights, dtype=torch.get_default_dtype())
        encoder = Encoder(backbone, tokenizer, readout or READOUTS[kind](), name="tiny", reload=lambda: start)
        start = {key: value.clone() for key, value in encoder.state_dict().items()}
    return encoder.eval()


def of_transformers(encoder: Encoder) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The same transformer and tokenizer as transformers has them."""
    backbone: Any = encoder.backbone
    if not isinstance(backbone, PreTrainedModel):
        weights = backbone.state_dict()
        backbone = BertModel(BertConfig(**encoder.backbone.config.to_dict()))
        backbone.load_state_dict(weights)
    return backbone.eval(), library_tokenizer(encoder)


def library_tokenizer(encoder: Encoder) -> PreTrainedTokenizerFast:
    """An encoder's tokenizer as transformers has it."""
    tokenizer = encoder.tokenizer
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, model_max_length=tokenizer.model_max_length, **tokenizer.special_tokens_map
    )


def save_encoder(encoder: Encoder, folder: Path, **options: Any) -> None:
    """Write a folder as transformers does."""
    backbone, tokenizer = of_transformers(encoder)
    backbone.save_pretrained(folder, **options)
    tokenizer.save_pretrained(folder)


@pytest.fixture
def make_encoder() -> Callable[..., Encoder]:
    return tiny_encoder


TOPICS = {
    "fruit": ["apple", "pear", "plum"],
    "vehicle": ["car", "bike", "train", "boat"],
    "weather": ["rain", "sun", "snow", "wind"],
    "place": ["paris", "london", "city"],
    "person": ["anna", "bob"],
    "conflict": ["fight", "war", "won", "lost"],
}


def toy_example(kind: InputKind, topic: str, number: int) -> Example:
    """A short text whose class shows in one of its words, marked as its input kind wants."""
    word = TOPICS[topic][number % len(TOPICS[topic])]
    filler = WORDS[number % 18]
    text = f"the {word} {filler} is in a {WORDS[(7 * number + 3) % 18]} {word}"
    first = Span(4, 4 + len(word))
    last = Span(len(text) - len(word), len(text))
    if kind == "relation":
        return Example(text, topic, head=first, tail=last)
    if kind == "event":
        return Example(text, topic, trigger=first)
    return Example(text, topic)


def toy_task(kind: InputKind, *topics: str, train: int = 6, test: int = 3, start: int = 0) -> Task:
    return Task(
        classes=topics,
        train=[toy_example(kind, topic, start + number) for topic in topics for number in range(train)],
        test=[toy_example(kind, topic, 100 + start + number) for topic in topics for number in range(test)],
    )
