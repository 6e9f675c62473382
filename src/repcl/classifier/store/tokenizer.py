"""The tokenizer of a model folder without transformers, as an export uses it."""

from typing import TYPE_CHECKING

from repcl.classifier.store.records import DamagedModel
from repcl.model.tokenizer import build_backend, caught
from repcl.model.untrusted import Unusable, parse_object, shown

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def read_tokenizer(data: bytes) -> "tuple[Tokenizer, int]":
    """The tokenizer from its JSON, and the number of its padding token."""
    try:
        parts = parse_object(data, "the tokenizer")
        backend, special = parts.get("backend"), parts.get("special_tokens")
        if not isinstance(backend, str) or not isinstance(special, dict):
            raise Unusable(f"expected a tokenizer, found {shown(parts)}")
        built, _ = build_backend(backend, special)
        with caught("the tokenizer cannot be used"):
            number = built.token_to_id(str(special.get("pad_token")))
        if number is None:
            raise Unusable("expected a tokenizer with a padding token, found none")
    except Unusable as error:
        raise DamagedModel(f"The tokenizer cannot be rebuilt: {error}.") from error
    return built, int(number)
