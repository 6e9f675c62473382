"""Texts cut in two, with a separator between the parts, in their order or swapped."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from repcl.data import Batch, TokenizedExample
from repcl.data.batches import collate

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Frame:
    """What an encoder puts around a text, as in `[CLS] text [SEP]`.

    Attributes:
        before: number of special tokens before a text.
        after: number of special tokens after it.
        separator: the token between two parts.
        pad: the token of padding.
        longest: most tokens that the encoder takes.
    """

    before: int
    after: int
    separator: int
    pad: int
    longest: int

    def inside(self, batch: Batch) -> list[tuple[int, Spans]]:
        """For each row the number of its text's tokens and the spans among them; whole rows are no spans."""
        found: list[tuple[int, Spans]] = []
        for length, spans in zip(batch.mask.sum(dim=1).tolist(), batch.spans.tolist(), strict=True):
            inner = [(start - self.before, end - self.before) for start, end in spans if end - start < length]
            found.append((length - self.before - self.after, inner))
        return found


def random_cut(tokens: int, spans: Spans, generator: torch.Generator) -> int:
    """How many of so many tokens come in the first part: at least one in each, no span cut, else all."""
    allowed = [cut for cut in range(1, tokens) if not _is_inside(cut, spans)] or [tokens]
    return allowed[int(torch.randint(len(allowed), (1,), generator=generator))]


def middle_cut(tokens: int, spans: Spans) -> int:
    """Half of the tokens, or the number nearest to it that cuts no span."""
    allowed = [cut for cut in range(tokens + 1) if not _is_inside(cut, spans)]
    return min(allowed, key=lambda cut: abs(cut - tokens // 2))


def in_two_parts(
    batch: Batch, cuts: Sequence[int], frame: Frame, *, is_swapped: bool = False
) -> tuple[Batch, Tensor]:
    """Rows as `[CLS] first [SEP] second [SEP]`, and their segments: 0 up to the first separator, then 1.

    Spans move with their tokens; a span of the whole row stays the whole row.

    Args:
        batch: rows as `[CLS] text [SEP]`.
        cuts: how many tokens of each text are in its first part.
        frame: what stands around a text.
        is_swapped: whether the second part comes first.
    """
    rows = []
    lengths = batch.mask.sum(dim=1).tolist()
    for ids, length, spans, cut in zip(batch.ids.tolist(), lengths, batch.spans.tolist(), cuts, strict=True):
        text = ids[frame.before : length - frame.after]
        first, second = (text[cut:], text[:cut]) if is_swapped else (text[:cut], text[cut:])
        parted = [*ids[: frame.before], *first, frame.separator, *second, *ids[length - frame.after : length]]
        parted = parted[: frame.longest]  # without room for one more token, the last separator gives way
        moved = [
            (0, len(parted))
            if end - start == length
            else _moved((start, end), cut, len(text), frame, is_swapped)
            for start, end in spans
        ]
        rows.append(TokenizedExample(tuple(parted), tuple(moved)))
    device = batch.ids.device
    laid_out = collate(rows, [0] * len(rows), [0] * len(rows), pad_id=frame.pad, device=device)
    first_parts = [
        frame.before + (tokens - cut if is_swapped else cut) + 1
        for (tokens, _), cut in zip(frame.inside(batch), cuts, strict=True)
    ]
    index = torch.arange(laid_out.ids.shape[1], device=device)
    segments = (index >= torch.tensor(first_parts, device=device)[:, None]).long()
    return Batch(laid_out.ids, laid_out.mask, laid_out.spans, batch.labels, batch.positions), segments


def _is_inside(cut: int, spans: Spans) -> bool:
    return any(start < cut < end for start, end in spans)


def _moved(span: tuple[int, int], cut: int, tokens: int, frame: Frame, is_swapped: bool) -> tuple[int, int]:
    """Where a span that is not cut stands in the new layout."""
    in_first, in_second = (tokens - cut + 1, -cut) if is_swapped else (0, 1)
    shift = in_first if span[0] - frame.before < cut else in_second
    return span[0] + shift, span[1] + shift
