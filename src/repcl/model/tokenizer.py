"""A fast tokenizer from JSON that anyone may have written: known parts, bounded in size, and no others.

The library that runs the parts is written for files one trusts: it takes a chain of replacements that fills
the memory, or an expression that never ends. So everything is looked at before the library sees it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from repcl.errors import RepclError
from repcl.model.untrusted import Unusable, is_number, parse_object, shown

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LARGEST_FILE = 32 << 20
MOST_TOKENS = 1_000_000
MOST_ADDED = 10_000
LONGEST_TOKEN = 1024
LONGEST_WORD = 256  # in characters; the search for word pieces takes its cube
MOST_PARTS = 32
DEEPEST = 3
LARGEST_GROWTH = 16
LONGEST_NAME = 64
LARGEST_OPTION = 10_000
LARGEST_CHARACTER_MAP = 1 << 20
LONGEST_CHARACTER = 256  # bytes that one character may become; the longest in Unicode becomes 33
NO_LIMIT = 10**8

KINDS = {
    "normalizer": (
        "BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, "
        "Sequence, Strip, StripAccents"
    ),
    "pre_tokenizer": (
        "BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, Sequence, Split, "
        "UnicodeScripts, Whitespace, WhitespaceSplit"
    ),
    "post_processor": "BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing",
    "decoder": ("BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip, WordPiece"),
}
MODELS = ("BPE", "Unigram", "WordLevel", "WordPiece")
# Each of them takes time that grows with the text only. Others may not, and none can be told by its looks.
EXPRESSIONS = frozenset(
    {
        " ",
        " +",
        " {2,}",
        r"\s",
        r"\s+",
        r"\s{2,}",
        r"\d",
        r"\d+",
        r"\p{N}",
        r"\p{N}+",
        r"\p{N}{1,3}",
        r"\w+|[^\w\s]+",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    }
)
# What a family calls its special tokens where its files do not say.
ROLES = {
    "unk_token": ("[UNK]", "<unk>"),
    "pad_token": ("[PAD]", "<pad>"),
    "cls_token": ("[CLS]", "<s>"),
    "sep_token": ("[SEP]", "</s>"),
    "mask_token": ("[MASK]", "<mask>"),
    "bos_token": (),
    "eos_token": (),
}
# Classes that take a tokenizer as its file has it; the others set how words are made lower case themselves.
AS_IT_IS = ("PreTrainedTokenizerFast", "TokenizersBackend")


class FastTokenizer:
    """A tokenizer, what its special tokens are for, and how long its input may be.

    Args:
        backend: the library's own; tokens with a purpose become special tokens of it.
        special: tokens by their purpose (`pad_token`, ...).
        extra: further special tokens.
        longest: input in tokens.
    """

    def __init__(
        self,
        backend: Tokenizer,
        special: Mapping[str, str],
        *,
        extra: Sequence[str] = (),
        longest: int = NO_LIMIT,
    ) -> None:
        self.backend_tokenizer = backend
        self.special_tokens_map = dict(special)
        self.model_max_length = longest
        self._special = [*dict.fromkeys((*special.values(), *extra))]
        known = {token.content for token in backend.get_added_tokens_decoder().values()}
        self.add_tokens([token for token in self._special if token not in known])

    def __len__(self) -> int:
        """How many tokens there are, added ones included."""
        return int(self.backend_tokenizer.get_vocab_size())

    def get_vocab(self) -> dict[str, int]:
        """All tokens with their numbers, added ones included."""
        return dict(self.backend_tokenizer.get_vocab())

    def add_tokens(self, tokens: Sequence[str]) -> int:
        """Add special tokens; how many of them were new."""
        return int(self.backend_tokenizer.add_special_tokens(list(tokens)))

    @property
    def all_special_ids(self) -> list[int]:
        """Numbers of the special tokens that have a purpose, and of the further ones."""
        return [number for token in self._special if (number := self._number(token)) is not None]

    @property
    def pad_token_id(self) -> int | None:
        """Of the token that fills up short rows."""
        return self._number(self.special_tokens_map.get("pad_token"))

    @property
    def mask_token_id(self) -> int | None:
        """Of the token that stands for a hidden one."""
        return self._number(self.special_tokens_map.get("mask_token"))

    def _number(self, token: str | None) -> int | None:
        return None if token is None else self.backend_tokenizer.token_to_id(token)


def build_tokenizer(backend: str | bytes, settings: Mapping[str, Any]) -> FastTokenizer:
    """The tokenizer, of parts that were looked at.

    Args:
        backend: JSON as in `tokenizer.json`.
        settings: as in `tokenizer_config.json`: names of the special tokens and the longest input.
    """
    library, parts = build_backend(backend, settings)
    special, extra = _special_tokens(settings, _token_ids(parts))
    longest = _longest(settings.get("model_max_length"))
    with caught("the tokenizer cannot be built"):
        built = FastTokenizer(library, special, extra=extra, longest=longest)
        _check_ids(built.backend_tokenizer, parts["added_tokens"])
    return built


def build_backend(backend: str | bytes, settings: Mapping[str, Any]) -> tuple[Tokenizer, dict[str, Any]]:
    """The tokenizer as the library that runs it has it, without transformers, and its parts."""
    from tokenizers import Tokenizer

    parts = checked_parts(backend, settings)
    with caught("the tokenizer cannot be built"):
        built = Tokenizer.from_str(json.dumps(parts))
        _check_ids(built, parts["added_tokens"])
    return built, parts


def checked_parts(backend: str | bytes, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a tokenizer, each of a known kind and of bounded size."""
    data = backend.encode(errors="surrogatepass") if isinstance(backend, str) else backend
    if len(data) > LARGEST_FILE:
        raise Unusable(f"expected a tokenizer of at most {LARGEST_FILE >> 20} MB, found more")
    found = parse_object(data, "the tokenizer")
    parts: dict[str, Any] = {"version": "1.0", "truncation": None, "padding": None}  # chosen in every call
    parts["added_tokens"] = _added_tokens(found.get("added_tokens"))
    parts["model"] = _model(found.get("model"))
    ids = _token_ids(parts)
    for slot in KINDS:
        parts[slot] = found.get(slot)
        _Chain(slot, ids).check(parts[slot])
    _set_case(parts["normalizer"], settings)
    return parts


@contextmanager
def caught(what: str) -> Iterator[None]:
    """Turn whatever the tokenizer's library raises into a few words; a panic of it is no `Exception`."""
    try:
        yield
    except (Unusable, RepclError):
        raise
    except Exception as error:
        raise Unusable(f"{what}: {shown(str(error))}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise Unusable(f"{what}: {shown(str(error))}") from error


# ---- the model and its words -------------------------------------------------------------------------


def _model(model: Any) -> dict[str, Any]:
    if not isinstance(model, dict):
        raise Unusable(f"expected a tokenizer with a model, found {shown(model)}")
    kind = model.get("type") or _untold_kind(model)
    if not isinstance(kind, str) or kind not in MODELS:
        raise Unusable(f"expected a tokenizer model among {', '.join(MODELS)}, found {shown(kind)}")
    options = {key: value for key, value in model.items() if key not in ("type", "vocab", "merges", "unk_id")}
    _check_options("model", kind, options)
    if model.get("dropout") is not None:
        raise Unusable("expected a tokenizer without dropout, found one that splits words at random")
    longest = model.get("max_input_chars_per_word")
    if longest is not None and not is_number(longest, 1, LONGEST_WORD):
        raise Unusable(f"expected words of at most {LONGEST_WORD} characters, found {shown(longest)}")
    _check_vocabulary(kind, model.get("vocab"), model.get("merges", []))
    _check_unknown(kind, model)
    return {**model, "type": kind}


def _untold_kind(model: Mapping[str, Any]) -> str:
    """Old files do not name the kind of the model."""
    if "merges" in model:
        return "BPE"
    if isinstance(model.get("vocab"), list):
        return "Unigram"
    return "WordPiece" if "continuing_subword_prefix" in model else "WordLevel"


def _check_vocabulary(kind: str, vocabulary: Any, merges: Any) -> None:
    wanted = list if kind == "Unigram" else dict
    if not isinstance(vocabulary, wanted) or not isinstance(merges, list):
        raise Unusable(f"expected the vocabulary of a {kind} tokenizer, found {shown(vocabulary)}")
    if not 0 < len(vocabulary) <= MOST_TOKENS or len(merges) > MOST_TOKENS:
        raise Unusable(f"expected a vocabulary of 1 to {MOST_TOKENS} tokens, found {len(vocabulary)}")
    if isinstance(vocabulary, dict):
        wrong = next((item for item in vocabulary.items() if not _is_numbered(item)), None)
    else:
        wrong = next((item for item in vocabulary if not _is_scored(item)), None)
    if wrong is None:
        wrong = next((pair for pair in merges if not _is_merge(pair)), None)
    if wrong is not None:
        raise Unusable(f"expected tokens of up to {LONGEST_TOKEN} characters, found {shown(wrong)}")


def _is_scored(item: Any) -> bool:
    return (
        isinstance(item, list)
        and len(item) == 2
        and isinstance(item[0], str)
        and 0 < len(item[0]) <= LONGEST_TOKEN
        and type(item[1]) in (int, float)
        and math.isfinite(item[1])
    )


def _is_numbered(item: tuple[str, Any]) -> bool:
    return len(item[0]) <= LONGEST_TOKEN and is_number(item[1], 0, NO_LIMIT)


def _is_merge(pair: Any) -> bool:
    parts = pair.split(" ") if isinstance(pair, str) else pair
    return (
        isinstance(parts, list)
        and len(parts) == 2
        and all(isinstance(part, str) and len(part) <= LONGEST_TOKEN for part in parts)
    )


def _check_unknown(kind: str, model: Mapping[str, Any]) -> None:
    """The token for unknown words must be there, or the first unknown word is an error."""
    vocabulary = model["vocab"]
    if kind == "Unigram":
        number = model.get("unk_id")
        if number is not None and not is_number(number, 0, len(vocabulary) - 1):
            raise Unusable(f"expected an unknown token in the vocabulary, found number {shown(number)}")
        return
    token = model.get("unk_token")
    if kind == "BPE" and token is None:
        return
    if not isinstance(token, str) or token not in vocabulary:
        raise Unusable(f"expected an unknown token in the vocabulary, found {shown(token)}")


def _added_tokens(tokens: Any) -> list[dict[str, Any]]:
    if tokens is None:
        return []
    if not isinstance(tokens, list) or len(tokens) > MOST_ADDED:
        raise Unusable(f"expected a list of at most {MOST_ADDED} added tokens, found {shown(tokens)}")
    for token in tokens:
        content = token.get("content") if isinstance(token, dict) else None
        if (
            not isinstance(content, str)
            or not 0 < len(content) <= LONGEST_TOKEN
            or not is_number(token.get("id"), 0, NO_LIMIT)
            or not all(isinstance(token[key], bool) for key in token.keys() - {"content", "id"})
        ):
            raise Unusable(f"expected an added token with its number, found {shown(token)}")
    return tokens


def _token_ids(parts: Mapping[str, Any]) -> dict[str, int]:
    vocabulary = parts["model"]["vocab"]
    ids = (
        {token: at for at, (token, _) in enumerate(vocabulary)}
        if isinstance(vocabulary, list)
        else vocabulary
    )
    return {**ids, **{token["content"]: token["id"] for token in parts["added_tokens"]}}


def _check_ids(built: Tokenizer, added: Sequence[Mapping[str, Any]]) -> None:
    """Refuse added tokens that got other numbers than in their file; the library is silent about it."""
    for token in added:
        number = built.token_to_id(token["content"])
        if number != token["id"]:
            raise Unusable(f"expected {shown(token['content'])} to be token {token['id']}, found {number}")


# ---- chains of parts ---------------------------------------------------------------------------------


class _Chain:
    """One slot of a tokenizer: a part, or a sequence of parts, counted while they are looked at."""

    def __init__(self, slot: str, ids: Mapping[str, int]) -> None:
        self.slot = slot
        self.numbers = set(ids.values())
        self.left = MOST_PARTS
        self.growth = 1.0

    def check(self, part: Any, depth: int = 0) -> None:
        if part is None and depth == 0:
            return
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in KINDS[self.slot].split(", "):
            raise Unusable(f"expected a {self.slot} among {KINDS[self.slot]}, found {shown(kind)}")
        self.left -= 1
        if self.left < 0 or depth > DEEPEST:
            raise Unusable(f"expected a {self.slot} of at most {MOST_PARTS} parts, found more")
        looked_at = SPECIAL_PARTS.get(kind)
        if looked_at is not None:
            keys, look = looked_at
            look(self, part, depth)
        else:
            keys = ()
        _check_options(self.slot, kind, {key: value for key, value in part.items() if key not in keys})

    def sequence(self, part: Mapping[str, Any], depth: int) -> None:
        members = next((part[key] for key in SEQUENCE_KEYS if key in part), None)
        if not isinstance(members, list):
            raise Unusable(f"expected a list of parts in the {self.slot}, found {shown(members)}")
        for member in members:
            if member is None:
                raise Unusable(f"expected a part in the {self.slot}, found none")
            self.check(member, depth + 1)

    def pattern(self, part: Mapping[str, Any], _: int) -> None:
        """What is searched for, and by how much a replacement makes the text longer."""
        pattern, content = part.get("pattern"), part.get("content", "")
        wanted = pattern.get("String") if isinstance(pattern, dict) else None
        expression = pattern.get("Regex") if isinstance(pattern, dict) else None
        is_text = isinstance(wanted, str) and 0 < len(wanted) <= LONGEST_NAME
        if not is_text and not (isinstance(expression, str) and expression in EXPRESSIONS):
            raise Unusable(f"expected a short text or a known expression, found {shown(pattern)}")
        if not isinstance(content, str) or len(content) > LONGEST_NAME:
            raise Unusable(f"expected a short replacement, found {shown(content)}")
        shortest = len(wanted) if isinstance(wanted, str) else 1
        self.growth *= max(1.0, len(content) / shortest)
        if self.growth > LARGEST_GROWTH:
            raise Unusable(
                f"expected replacements that make a text at most {LARGEST_GROWTH} times as long, found more"
            )

    def characters(self, part: Mapping[str, Any], _: int) -> None:
        """A map of characters: a search tree's size, the tree, and the texts that it leads to."""
        packed = part.get("precompiled_charsmap")
        if not isinstance(packed, str) or len(packed) > LARGEST_CHARACTER_MAP:
            raise Unusable(f"expected a map of characters, found {shown(packed)}")
        try:
            data = base64.b64decode(packed, validate=True)
            size = int.from_bytes(data[:4], "little")
            texts = data[4 + size :].decode("utf-8")
        except ValueError as error:
            raise Unusable("expected a map of characters, found something else") from error
        longest = max((len(text.encode()) for text in texts.split("\0")), default=0)
        if size % 4 or size == 0 or 4 + size > len(data) or longest > LONGEST_CHARACTER:
            raise Unusable("expected a map of characters, found something else")

    def template(self, part: Mapping[str, Any], _: int) -> None:
        """What stands around a text: a few special tokens, each with numbers that the vocabulary has."""
        tokens = part.get("special_tokens")
        if not isinstance(tokens, dict) or len(tokens) > MOST_PARTS:
            raise Unusable(f"expected the special tokens of a template, found {shown(tokens)}")
        for token in tokens.values():
            ids = token.get("ids") if isinstance(token, dict) else None
            if not isinstance(ids, list) or len(ids) > MOST_PARTS:
                raise Unusable(f"expected a special token with its numbers, found {shown(token)}")
            for number in ids:
                self._check_number(number)
        for name in ("single", "pair"):
            pieces = part.get(name)
            if not isinstance(pieces, list) or len(pieces) > MOST_PARTS:
                raise Unusable(f"expected a template of at most {MOST_PARTS} pieces, found {shown(pieces)}")
        texts = [piece for piece in part["single"] if isinstance(piece, dict) and "Sequence" in piece]
        if len(texts) != 1:
            raise Unusable(f"expected a template with one text in it, found {len(texts)}")

    def frame(self, part: Mapping[str, Any], _: int) -> None:
        for name in ("sep", "cls"):
            token = part.get(name)
            if not isinstance(token, list) or len(token) != 2 or not isinstance(token[0], str):
                raise Unusable(f"expected a special token with its number, found {shown(token)}")
            self._check_number(token[1])

    def _check_number(self, number: Any) -> None:
        if type(number) is not int or number not in self.numbers:
            raise Unusable(f"expected special tokens that the vocabulary has, found number {shown(number)}")


Look = Callable[[_Chain, Mapping[str, Any], int], None]
SEQUENCE_KEYS = ("normalizers", "pretokenizers", "processors", "decoders")
SPECIAL_PARTS: dict[str, tuple[tuple[str, ...], Look]] = {
    "Sequence": (SEQUENCE_KEYS, _Chain.sequence),
    "Replace": (("pattern",), _Chain.pattern),
    "Split": (("pattern",), _Chain.pattern),
    "Precompiled": (("precompiled_charsmap",), _Chain.characters),
    "TemplateProcessing": (("special_tokens", "single", "pair"), _Chain.template),
    "BertProcessing": (("sep", "cls"), _Chain.frame),
    "RobertaProcessing": (("sep", "cls"), _Chain.frame),
}


def _check_options(slot: str, kind: str, options: Mapping[str, Any]) -> None:
    for key, value in options.items():
        is_short = isinstance(value, str) and len(value) <= LONGEST_NAME
        is_small = type(value) in (int, float) and abs(value) <= LARGEST_OPTION
        if not (value is None or isinstance(value, bool) or is_short or is_small):
            raise Unusable(f"expected a plain option {shown(key)} of the {slot} {kind}, found {shown(value)}")


# ---- settings beside the tokenizer -------------------------------------------------------------------


def _set_case(normalizer: Any, settings: Mapping[str, Any]) -> None:
    """Where settings say how words are made lower case, they hold, as they do in transformers."""
    if settings.get("tokenizer_class", AS_IT_IS[0]) in AS_IT_IS or not isinstance(normalizer, dict):
        return
    if normalizer.get("type") == "BertNormalizer" and isinstance(settings.get("do_lower_case"), bool):
        normalizer["lowercase"] = settings["do_lower_case"]


def _special_tokens(settings: Mapping[str, Any], ids: Mapping[str, int]) -> tuple[dict[str, str], list[str]]:
    """The special tokens by what they are for, and further ones, as far as the vocabulary has them."""
    named: dict[str, str] = {}
    for role, usual in ROLES.items():
        told = _content(settings.get(role))
        found = next((token for token in (told, *usual) if token is not None and token in ids), None)
        if found is not None:
            named[role] = found
    more = settings.get("extra_special_tokens", settings.get("additional_special_tokens"))
    contents = [_content(token) for token in more] if isinstance(more, list) else []
    return named, [token for token in contents if token is not None and token in ids][:MOST_ADDED]


def _content(token: Any) -> str | None:
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def _longest(length: Any) -> int:
    """The longest input; files that know no limit say 10^30 or nothing."""
    if length is None:
        return NO_LIMIT
    if type(length) not in (int, float) or not length >= 1:
        raise Unusable(f"expected the longest input as a number of tokens, found {shown(length)}")
    return int(min(length, NO_LIMIT))
