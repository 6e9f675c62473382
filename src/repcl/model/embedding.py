"""Representations by a frozen encoder: each text is encoded once, and always to the same bits."""

import hashlib
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from repcl.data import Batch, Example, Span, TokenizedExample
from repcl.data.batches import collate
from repcl.errors import ResultMismatch
from repcl.model.encoder import Encoder
from repcl.model.lower_layers import layers_of
from repcl.model.packing import can_pack, represent_packed

BATCH = 64
FEWEST_TOKENS = 16
"""Of a pass: with fewer the matrix library may choose another kernel, and with it other last bits. Intel's
processors need as many for a packed pass, others fewer."""
MOST_PACKED = 2048
"""Tokens of one pass, where texts are packed: longer ones gain nothing, and take more memory."""
MOST_PADDED = 1.3
"""How many times as long as the shortest text of a batch the longest may be, where lengths are mixed."""
LARGEST_CACHE = 1 << 28

Question = tuple[str, Span | None, Span | None, Span | None]


class Embedder:
    """The representations of a frozen encoder, kept in memory and, when a folder is given, on disk.

    Texts are encoded without padding, so that a representation does not depend on the texts beside it:
    whether it came from a cache makes no difference to any bit. They are packed into few passes; where it is
    not known how to pack for an encoder, a pass takes texts of one length.

    Args:
        encoder: whose weights do not change any more.
        folder: keeps representations between runs; default `REPCL_EMBEDDINGS`, else nothing goes to disk.
    """

    def __init__(self, encoder: Encoder, folder: Path | None = None) -> None:
        self.encoder = encoder
        chosen = folder or os.environ.get("REPCL_EMBEDDINGS")
        self.folder = Path(chosen) if chosen else None
        self.largest = LARGEST_CACHE  # bytes kept in memory
        self.may_pad = False
        """Whether texts of similar lengths are padded where they cannot be packed, for few texts take fewer
        passes then; the last bits of a representation depend on the texts beside it."""
        self.read_from_disk = 0
        """How many representations an earlier run had left in the folder."""
        self._kept: dict[Question, Tensor] = {}

    def __call__(self, examples: Sequence[Example]) -> Tensor:
        """Representations of the examples, (examples, representation_size), on the CPU."""
        size = self.encoder.representation_size
        questions = [_question(example) for example in examples]
        missing = {
            question: example
            for question, example in zip(questions, examples, strict=True)
            if question not in self._kept
        }
        if missing:
            self._kept.update(self._find(missing))
        found = torch.stack([self._kept[question] for question in questions]) if questions else None
        while len(self._kept) * size * 4 > self.largest:
            del self._kept[next(iter(self._kept))]
        return found if found is not None else torch.empty(0, size)

    def _find(self, missing: Mapping[Question, Example]) -> dict[Question, Tensor]:
        if (
            self.folder is None or self.encoder.processes.number > 1
        ):  # what is on disk differs as processes read it
            return dict(zip(missing, self.encode(list(missing.values())), strict=True))
        store = EmbeddingStore(self.folder, self.encoder)
        found = store.read(list(missing))
        self.read_from_disk += len(found)
        left = {question: example for question, example in missing.items() if question not in found}
        encoded = dict(zip(left, self.encode(list(left.values())), strict=True))
        store.write(encoded)
        return found | encoded

    @torch.no_grad()
    def encode(self, examples: Sequence[Example]) -> Tensor:
        """Representations of the examples, (examples, representation_size), computed anew."""
        encoder = self.encoder
        if encoder.training:  # asking costs nothing; telling every module takes longer than one of its layers
            encoder.eval()
        rows = encoder.tokenize(examples)
        found = torch.empty(len(rows), encoder.representation_size)
        if can_pack(encoder):
            self._encode_packed(rows, found)
            return found
        for numbers in _similar_lengths(rows) if self.may_pad else _equal_lengths(rows):
            fewest = 1 if self.may_pad else _fewest_rows(len(rows[numbers[0]].ids))
            filling = encoder.processes.parts * fewest - len(numbers)
            batch = self._batch(rows, [*numbers, *numbers[:1] * filling])
            found[numbers] = encoder.represent(batch)[: len(numbers)].float().cpu()
        return found

    def _encode_packed(self, rows: Sequence[TokenizedExample], found: Tensor) -> None:
        """Encode rows of any lengths without padding, as many in a pass as are worth it."""
        for groups in _packs(rows):
            batches = [self._batch(rows, numbers) for numbers in groups]
            # several threads share rows out, and what one of them gets depends on how many there are
            fewest = self._fewest_tokens if torch.get_num_threads() == 1 else FEWEST_TOKENS
            parts = represent_packed(self.encoder, batches, fewest)
            for numbers, part in zip(groups, parts, strict=True):
                found[numbers] = part

    @cached_property
    def _fewest_tokens(self) -> int:
        """Of a packed pass: as few as change no bit on this processor, tried out on the encoder's layers."""
        first: Any = layers_of(self.encoder.backbone)[0]
        by_shape = {part.weight.shape: part for part in first.modules() if isinstance(part, nn.Linear)}
        return fewest_rows(by_shape.values())

    def _batch(self, rows: Sequence[TokenizedExample], numbers: Sequence[int]) -> Batch:
        encoder = self.encoder
        return collate(
            [rows[number] for number in numbers],
            [0] * len(numbers),
            numbers,
            pad_id=encoder.pad_id,
            device=encoder.device,
        )


class EmbeddingStore:
    """Representations in one file, by what the encoder's weights are and what was asked."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self.path = folder / "embeddings.sqlite"
        with self._explained():
            folder.mkdir(parents=True, exist_ok=True)
        self.size = encoder.representation_size
        self.encoder = fingerprint(encoder)

    def read(self, questions: Sequence[Question]) -> dict[Question, Tensor]:
        """Those of the questions that have been answered before."""
        found = {}
        for question, row in zip(questions, self._rows(questions), strict=True):
            if isinstance(row, bytes) and len(row) == 4 * self.size:
                vector = torch.from_numpy(np.frombuffer(row, dtype="<f4").copy())
                if vector.isfinite().all():
                    found[question] = vector
        return found

    def write(self, answers: Mapping[Question, Tensor]) -> None:
        """Keep answers for later runs."""
        rows = [(self._key(question), row.numpy().tobytes()) for question, row in answers.items()]
        with self._explained(), closing(self._open()) as database, database:
            database.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?)", rows)

    def _rows(self, questions: Sequence[Question]) -> Iterator[object]:
        with self._explained(), closing(self._open()) as database:
            for question in questions:
                row = database.execute("SELECT row FROM embeddings WHERE key = ?", [self._key(question)])
                yield next(row, (None,))[0]

    def _key(self, question: Question) -> bytes:
        return hashlib.sha256(f"{self.encoder} {question!r}".encode(errors="surrogatepass")).digest()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=60)
        try:
            database.execute("CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, row BLOB)")
        except BaseException:
            database.close()
            raise
        return database

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Damage shows in any page of the file, at any time."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise ResultMismatch(
                f"Expected stored embeddings in {self.path}, found a file that cannot be used ({error}); "
                "delete it, or unset REPCL_EMBEDDINGS."
            ) from error


def _question(example: Example) -> Question:
    return example.text, example.head, example.tail, example.trigger


@torch.no_grad()
def fewest_rows(layers: Iterable[nn.Linear]) -> int:
    """From how many rows on, at most `FEWEST_TOKENS`, layers give a row the bits that it has among more."""
    generator, fewest = torch.Generator().manual_seed(0), FEWEST_TOKENS

    def keeps_bits(number: int) -> bool:
        return all(torch.equal(layer(rows[:number]), found[:number]) for layer, rows, found in tried)

    tried = []
    for layer in layers:
        rows = torch.randn(FEWEST_TOKENS, layer.in_features, generator=generator).to(layer.weight.dtype)
        tried.append((layer, rows, layer(rows)))
    while fewest > 1 and keeps_bits(fewest - 1):
        fewest -= 1
    return fewest


def _fewest_rows(length: int) -> int:
    """How many texts of a length a batch needs, so that more of them change no bit."""
    return ceil(FEWEST_TOKENS / length)


def _equal_lengths(rows: Sequence[TokenizedExample]) -> Iterator[list[int]]:
    """Batches of row numbers, each of one length, the short texts first."""
    by_length = defaultdict(list)
    for number, row in enumerate(rows):
        by_length[len(row.ids)].append(number)
    for _, numbers in sorted(by_length.items()):
        for at in range(0, len(numbers), BATCH):
            yield numbers[at : at + BATCH]


def _packs(rows: Sequence[TokenizedExample]) -> Iterator[list[list[int]]]:
    """Groups of row numbers, each of one length, as many together as make one pass."""
    pack: list[list[int]] = []
    tokens = 0
    for numbers in _equal_lengths(rows):
        own = len(numbers) * len(rows[numbers[0]].ids)
        if pack and tokens + own > MOST_PACKED:
            yield pack
            pack, tokens = [], 0
        pack.append(numbers)
        tokens += own
    if pack:
        yield pack


def _similar_lengths(rows: Sequence[TokenizedExample]) -> Iterator[list[int]]:
    """Batches of row numbers in which no text is much longer than another, the short texts first."""
    batch: list[int] = []
    for number in sorted(range(len(rows)), key=lambda number: len(rows[number].ids)):
        if batch and (
            len(batch) == BATCH or len(rows[number].ids) > MOST_PADDED * len(rows[batch[0]].ids) + 1
        ):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def fingerprint(encoder: Encoder) -> str:
    """A hash of the weights and of how they are read."""
    readout = encoder.readout
    digest = hashlib.sha256(f"{type(readout).__name__} {readout.depths}".encode())
    for name, tensor in encoder.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy())  # of any number type
    return digest.hexdigest()
