"""Input kinds: how an example becomes tokens, and where its representation is read."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from repcl.data import Example, InputKind, Span, TokenizedExample
from repcl.errors import InvalidData

if TYPE_CHECKING:  # an export tokenizes and answers without torch, which takes seconds to import
    from tokenizers import Tokenizer
    from torch import Tensor

    from repcl.data import Batch

HEAD_START, HEAD_END, TAIL_START, TAIL_END = MARKERS = ("[E11]", "[E12]", "[E21]", "[E22]")


class Pieces(NamedTuple):
    """Tokens of a text before special tokens are put around it."""

    ids: list[int]
    spans: list[tuple[int, int]]
    must_keep: list[tuple[int, int]]  # what truncation stays close to, most important first


class Readout(ABC):
    """Prepares examples of one input kind and pools the encoder's states into representations."""

    kind: ClassVar[InputKind]
    width: int
    """Size of the representation, in hidden sizes of the encoder."""
    markers: ClassVar[tuple[str, ...]] = ()
    """Tokens that have to be added to the tokenizer."""
    depths: tuple[float, ...] = (1.0,)
    """How deep in the encoder states are read, 0 for the embeddings and 1 for the last layer."""
    head_has_hidden_layer: ClassVar[bool] = True
    """Events are classified straight from the trigger's states, as in the authors' code."""

    @abstractmethod
    def pieces(self, examples: Sequence[Example], tokenizer: Tokenizer) -> Iterable[Pieces]:
        """Tokenize examples in one call, without the tokenizer's own special tokens."""

    def prepare(
        self, examples: Sequence[Example], tokenizer: Tokenizer, *, max_length: int
    ) -> tuple[list[TokenizedExample], int]:
        """Tokenized examples of at most `max_length` tokens, and how many had to be shortened."""
        prefix, suffix = special_frame(tokenizer)
        room = max_length - len(prefix) - len(suffix)
        rows, shortened = [], 0
        for pieces in self.pieces(examples, tokenizer):
            if len(pieces.ids) > room:
                pieces, shortened = _shorten(pieces, room), shortened + 1
            ids = (*prefix, *pieces.ids, *suffix)
            spans = tuple((start + len(prefix), end + len(prefix)) for start, end in pieces.spans)
            rows.append(TokenizedExample(ids, spans or ((0, len(ids)),)))
        return rows, shortened

    def pool(self, states: Tensor, batch: Batch) -> Tensor:
        """Mean state of each span, concatenated: (batch, length, hidden) -> (batch, spans · hidden)."""
        import torch

        index = torch.arange(states.shape[1], device=states.device)
        start, end = batch.spans[..., :1], batch.spans[..., 1:]  # (batch, spans, 1)
        inside = ((index >= start) & (index < end)).to(states.dtype)  # (batch, spans, length)
        means = (inside @ states) / (end - start)
        return means.flatten(start_dim=1)


class SentenceReadout(Readout):
    """Mean over all tokens of the sentence, special tokens included."""

    kind, width = "sentence", 1

    def pieces(self, examples: Sequence[Example], tokenizer: Tokenizer) -> Iterable[Pieces]:
        """The tokens of each text; truncation keeps its beginning."""
        for ids, _ in _tokenize([example.text for example in examples], tokenizer):
            yield Pieces(ids, spans=[], must_keep=[(0, 1)])


class RelationReadout(Readout):
    """States at the two markers that open head and tail entity, concatenated."""

    kind, width, markers = "relation", 2, MARKERS

    def pieces(self, examples: Sequence[Example], tokenizer: Tokenizer) -> Iterable[Pieces]:
        """Tokens with four markers; a text is cut at the markers, so that no word can swallow one."""
        cuts = [_marker_positions(example) for example in examples]
        segments = [
            example.text[start:end]
            for example, markers in zip(examples, cuts, strict=True)
            for start, end in _between(markers, len(example.text))
        ]
        tokens = iter(_tokenize(segments, tokenizer))
        # every marker was added to the tokenizer
        marker_ids = {marker: cast(int, tokenizer.token_to_id(marker)) for marker in MARKERS}
        for markers in cuts:
            ids, found = list(next(tokens)[0]), {}
            for _, marker in markers:
                found[marker] = len(ids)
                ids += [marker_ids[marker], *next(tokens)[0]]
            head, tail = found[HEAD_START], found[TAIL_START]
            openings = [(at, at + 1) for at in found.values()]
            entities = [(head, found[HEAD_END] + 1), (tail, found[TAIL_END] + 1)]
            yield Pieces(ids, spans=[(head, head + 1), (tail, tail + 1)], must_keep=[*openings, *entities])


class EventReadout(Readout):
    """Mean over the word pieces of the trigger."""

    kind, width, head_has_hidden_layer = "event", 1, False

    def pieces(self, examples: Sequence[Example], tokenizer: Tokenizer) -> Iterable[Pieces]:
        """Tokens of each text, with the span of those that touch the trigger."""
        return marked_pieces(examples, tokenizer, ("trigger",))


READOUTS: dict[InputKind, type[Readout]] = {
    "sentence": SentenceReadout,
    "relation": RelationReadout,
    "event": EventReadout,
}


def note_shortened(shortened: int, texts: int, max_length: int) -> None:
    """Warn about texts that are longer than the encoder reads."""
    if shortened:
        warnings.warn(
            f"{shortened} of {texts} texts have over {max_length} tokens and were shortened.", stacklevel=3
        )


def marked_pieces(
    examples: Sequence[Example], tokenizer: Tokenizer, marks: Sequence[str]
) -> Iterator[Pieces]:
    """Tokens of each text, with the spans of those that touch its marked stretches (`head`, ...)."""
    tokenized = _tokenize([example.text for example in examples], tokenizer)
    for example, (ids, offsets) in zip(examples, tokenized, strict=True):
        spans = []
        for name in marks:
            mark = _marked(example, name, getattr(example, name))
            touching = [
                at for at, (start, end) in enumerate(offsets) if start < mark.end and end > mark.start
            ]
            if not touching:
                raise InvalidData(
                    f"The tokenizer drops the {name} {example.text[mark.start : mark.end]!r} of "
                    f"{example.text!r}; mark a word it knows."
                )
            spans.append((touching[0], touching[-1] + 1))
        first_tokens = [(start, start + 1) for start, _ in spans]
        yield Pieces(ids, spans, must_keep=[*first_tokens, *spans])


def _tokenize(texts: Sequence[str], tokenizer: Tokenizer) -> list[tuple[list[int], list[tuple[int, int]]]]:
    """Token ids and character offsets of each text; tokens written out in a text stay plain text."""
    if not texts:
        return []
    tokenizer.encode_special_tokens = True
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [(one.ids, one.offsets) for one in encoded]


def special_frame(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens that the tokenizer puts before and after a text."""
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    framed = tokenizer.encode("a").ids
    before = framed.index(bare[0])
    return tuple(framed[:before]), tuple(framed[before + len(bare) :])


def _marked(example: Example, name: str, span: Span | None) -> Span:
    if span is None or not 0 <= span.start < span.end <= len(example.text):
        raise InvalidData(
            f"Expected a {name} inside the text as [start, end) in characters, found {span} for a text of "
            f"{len(example.text)} characters: {example.text[:60]!r}."
        )
    return span


def _marker_positions(example: Example) -> list[tuple[int, str]]:
    """The four markers in the order in which they are met, with their character positions.

    Where markers meet, an entity that ended is closed before another opens, and of two entities that
    start together the longer one opens first.
    """
    head = _marked(example, "head", example.head)
    tail = _marked(example, "tail", example.tail)
    found = []
    for span, start, end in ((head, HEAD_START, HEAD_END), (tail, TAIL_START, TAIL_END)):
        length = span.end - span.start
        found.append((span.start, 1, -length, start))
        found.append((span.end, 0, length, end))
    return [(position, marker) for position, _, _, marker in sorted(found)]


def _between(markers: Sequence[tuple[int, str]], length: int) -> list[tuple[int, int]]:
    bounds = [0, *(position for position, _ in markers), length]
    return list(pairwise(bounds))


def _shorten(pieces: Pieces, room: int) -> Pieces:
    """Keep the `room` tokens nearest to what must be kept, in their order."""
    rank = [
        next((index for index, (start, end) in enumerate(pieces.must_keep) if start <= at < end), None)
        for at in range(len(pieces.ids))
    ]
    distance = [
        min(max(start - at, at - end + 1, 0) for start, end in pieces.must_keep)
        for at in range(len(pieces.ids))
    ]
    # What must be kept comes first, in its own order of importance; the rest by distance to it.
    importance = [
        (0, index) if index is not None else (1, away) for index, away in zip(rank, distance, strict=True)
    ]
    kept = sorted(sorted(range(len(pieces.ids)), key=lambda at: importance[at])[:room])
    new_index = {old: new for new, old in enumerate(kept)}
    spans = []
    for start, end in pieces.spans:
        inside = [new_index[at] for at in range(start, end) if at in new_index]
        spans.append((inside[0], inside[-1] + 1))
    return Pieces([pieces.ids[at] for at in kept], spans, must_keep=[])
