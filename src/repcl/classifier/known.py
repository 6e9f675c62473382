"""`KnownTexts`: which texts were learned under which label, as keyed hashes that no text can be read from."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from secrets import token_bytes

import numpy as np

from repcl.data import Example
from repcl.data.examples import SPANS
from repcl.data.normal import normal_example
from repcl.errors import InvalidData

KEY_BYTES = 16
HASH_BYTES = 16
WORDS = HASH_BYTES // 4 + 2
"""Numbers of 32 bits in a row of the table: the hash, the class, how many times."""
MOST_TIMES = 2**31 - 1


class KnownTexts:
    """How many times each text was learned as each class; a text is known by its hash under a random key.

    The same text has another hash in another classifier, so that two folders cannot be compared. Who holds
    the folder, and with it the key, can still ask whether a text that he has was learned.

    Args:
        keys: the first one is for new texts; the others came with classifiers that were taken over.
        unlisted: classes of which texts were learned that are not listed here.
    """

    def __init__(self, keys: Sequence[bytes] = (), *, unlisted: Iterable[str] = ()) -> None:
        self.keys = list(keys) or [token_bytes(KEY_BYTES)]
        self.unlisted = set(unlisted)
        self._times: dict[str, dict[bytes, int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._times.values()))

    def __contains__(self, example: Example) -> bool:
        return self.times(example) > 0

    def times(self, example: Example) -> int:
        """How many times a text was learned as the class that it has here."""
        own = self._times.get(example.label, {})
        return sum(own.get(found, 0) for found in self._hashes(example))

    def labels(self, examples: Iterable[Example]) -> list[set[str]]:
        """Of each example the classes that its text was learned as, whatever its label is here."""
        wanted = [self._hashes(example) for example in examples]
        every = {found for hashes in wanted for found in hashes}
        by_hash: dict[bytes, set[str]] = {}
        for name, own in self._times.items():
            for found in own.keys() & every:
                by_hash.setdefault(found, set()).add(name)
        return [{name for found in hashes for name in by_hash.get(found, ())} for hashes in wanted]

    def texts_of(self, name: str) -> int:
        """How many texts of a class are listed, each as many times as it was learned."""
        return sum(self._times.get(name, {}).values())

    def add(self, examples: Iterable[Example]) -> None:
        """List examples that are learned, each once more."""
        for example in examples:
            own = self._times.setdefault(example.label, {})
            found = self._hash(self.keys[0], example)
            own[found] = min(own.get(found, 0) + 1, MOST_TIMES)

    def discard(self, examples: Iterable[Example]) -> None:
        """List examples no longer, however many times they were learned as the class that they have here."""
        for example in examples:
            own = self._times.get(example.label, {})
            for found in self._hashes(example):
                own.pop(found, None)
            if not own:
                self._times.pop(example.label, None)

    def regroup(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Keep only these classes, each made of one or several old ones."""
        times, unlisted = self._times, self.unlisted
        self._times, self.unlisted = {}, set()
        for name, parts in groups.items():
            for part in parts:
                self._merge(name, times.get(part, {}))
            if unlisted & set(parts):
                self.unlisted.add(name)

    def absorb(self, other: "KnownTexts") -> None:
        """List what another classifier learned, too."""
        self.keys += [key for key in other.keys if key not in self.keys]
        self.unlisted |= other.unlisted
        for name, own in other._times.items():
            self._merge(name, own)

    def to_table(self, classes: Sequence[str]) -> "np.ndarray[tuple[int, int], np.dtype[np.int32]]":
        """All hashes, (texts, 6) whole numbers: four of the hash, index of the class, times; sorted."""
        rows = sorted(
            (index, found, times)
            for index, name in enumerate(classes)
            for found, times in self._times.get(name, {}).items()
        )
        table = np.zeros((len(rows), WORDS), dtype="<i4")
        table[:, :-2] = np.frombuffer(b"".join(row[1] for row in rows), dtype="<i4").reshape(-1, WORDS - 2)
        table[:, -2] = [row[0] for row in rows]
        table[:, -1] = [row[2] for row in rows]
        return table

    @classmethod
    def from_table(
        cls,
        table: "np.ndarray[tuple[int, int], np.dtype[np.int32]]",
        classes: Sequence[str],
        *,
        keys: Sequence[bytes],
        unlisted: Iterable[str],
    ) -> "KnownTexts":
        """The texts again; `InvalidData` where the table is not one of these classes."""
        known = cls(keys, unlisted=unlisted)
        if table.ndim != 2 or table.shape[1] != WORDS or table.dtype != np.int32:
            raise InvalidData(f"a table of {table.dtype} and shape {table.shape} holds no hashes")
        indices, times = table[:, -2], table[:, -1]
        if len(table) and (indices.min() < 0 or indices.max() >= len(classes) or times.min() < 1):
            raise InvalidData("hashes of texts belong to classes that are not there")
        data = np.ascontiguousarray(table[:, :-2], dtype="<i4").tobytes()
        for row, (index, count) in enumerate(zip(indices.tolist(), times.tolist(), strict=True)):
            own = known._times.setdefault(classes[index], {})
            own[data[row * HASH_BYTES : (row + 1) * HASH_BYTES]] = count
        if len(known) < len(table):
            raise InvalidData("a hash is listed twice")
        return known

    def _merge(self, name: str, times: Mapping[bytes, int]) -> None:
        if not times:
            return
        own = self._times.setdefault(name, {})
        for found, count in times.items():
            own[found] = min(own.get(found, 0) + count, MOST_TIMES)

    def _hashes(self, example: Example) -> list[bytes]:
        return [self._hash(key, example) for key in self.keys]

    @staticmethod
    def _hash(key: bytes, example: Example) -> bytes:
        """The keyed hash of text and marked spans; the label plays no part."""
        same = normal_example(example)
        spans = (getattr(same, name) for name in SPANS)
        bounds = [None if span is None else [span.start, span.end] for span in spans]
        return blake2b(json.dumps([same.text, bounds]).encode(), key=key, digest_size=HASH_BYTES).digest()


def unlabeled(example: Example) -> Example:
    """The text and its spans alone, by which examples with several labels are brought together."""
    return replace(example, label="")


def same_text(example: Example) -> Example:
    """What examples have in common that come with blanks around them, in another form of Unicode or label."""
    return unlabeled(normal_example(example))
