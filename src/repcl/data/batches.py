"""How tokenized examples become padded batches of similar length."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from repcl.data.examples import TokenizedExample
from repcl.data.padding import by_length, padded


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded examples; `positions` says where each row stands in the list that was batched."""

    ids: Tensor  # (batch, length)
    mask: Tensor  # (batch, length), 1 for real tokens
    spans: Tensor  # (batch, spans, 2)
    labels: Tensor  # (batch,)
    positions: Tensor  # (batch,)

    def __len__(self) -> int:
        return len(self.ids)


def collate(
    rows: Sequence[TokenizedExample],
    labels: Sequence[int],
    positions: Sequence[int],
    *,
    pad_id: int,
    device: torch.device,
) -> Batch:
    """Pad rows on the right to the longest of them."""
    ids, mask, spans = map(torch.from_numpy, padded(rows, pad_id))
    moved = (part.to(device) for part in (ids, mask, spans, torch.tensor(labels), torch.tensor(positions)))
    return Batch(*moved)


def similar_length_order(
    lengths: Sequence[int], batch_size: int, generator: torch.Generator, *, pool: int = 8
) -> list[list[int]]:
    """Shuffled batches of row numbers in which rows have similar lengths.

    Rows are shuffled, cut into pools of `pool` batches, sorted by length inside a pool, cut into batches;
    then the batches are shuffled. Little padding is left, and epochs still differ from each other.
    """
    shuffled = torch.randperm(len(lengths), generator=generator).tolist()
    batches = []
    for start in range(0, len(shuffled), pool * batch_size):
        rows = sorted(shuffled[start : start + pool * batch_size], key=lambda row: lengths[row])
        batches += [rows[at : at + batch_size] for at in range(0, len(rows), batch_size)]
    return [batches[index] for index in torch.randperm(len(batches), generator=generator).tolist()]


def balanced_draw(
    labels: Sequence[Hashable],
    count: int,
    generator: torch.Generator,
    before: Mapping[int, int] | None = None,
) -> list[int]:
    """Numbers of `count` rows, of every class as many as of the others, as far as it has them.

    Args:
        labels: the class of each row.
        count: rows to draw.
        generator: where they are drawn from.
        before: how often rows were drawn before; those drawn least come first.
    """
    order: list[int] = torch.randperm(len(labels), generator=generator).tolist()
    if before:
        order.sort(key=lambda row: before.get(row, 0))
    taken: Counter[Hashable] = Counter()
    ranked = []
    for place, row in enumerate(order):
        ranked.append((taken[labels[row]], place, row))  # the first of each class, then the second of each
        taken[labels[row]] += 1
    return [row for _, _, row in sorted(ranked)[:count]]


class Batches:
    """Batches of tokenized examples; each iteration is one epoch, shuffled when a generator is given.

    Args:
        rows: the tokenized examples.
        labels: the class of each.
        batch_size: rows of a batch; the last one may have fewer.
        pad_id: the padding token.
        device: where batches are put.
        generator: where the order of an epoch is drawn from.
        most: rows of an epoch, drawn anew for each with equally many of every class, and those first that
            earlier epochs have shown least; all if not given.
    """

    def __init__(
        self,
        rows: Sequence[TokenizedExample],
        labels: Sequence[int],
        *,
        batch_size: int,
        pad_id: int,
        device: torch.device,
        generator: torch.Generator | None = None,
        most: int | None = None,
    ) -> None:
        self.rows = rows
        self.labels = labels
        self.batch_size = batch_size
        self.pad_id = pad_id
        self.device = device
        self.generator = generator
        self.most = most
        self._shown: Counter[int] = Counter()

    def __len__(self) -> int:
        return -(-min(len(self.rows), self.most or len(self.rows)) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        for numbers in self._order():
            yield self.take(numbers)

    def take(self, numbers: Sequence[int]) -> Batch:
        """The batch of the rows with these numbers."""
        return collate(
            [self.rows[number] for number in numbers],
            [self.labels[number] for number in numbers],
            numbers,
            pad_id=self.pad_id,
            device=self.device,
        )

    def _order(self) -> list[list[int]]:
        lengths = [len(row.ids) for row in self.rows]
        if self.generator is not None and self.most is not None and self.most < len(lengths):
            drawn = balanced_draw(self.labels, self.most, self.generator, self._shown)
            self._shown.update(drawn)
            order = similar_length_order([lengths[row] for row in drawn], self.batch_size, self.generator)
            return [[drawn[at] for at in batch] for batch in order]
        if self.generator is not None:
            return similar_length_order(lengths, self.batch_size, self.generator)
        return by_length(lengths, self.batch_size)
