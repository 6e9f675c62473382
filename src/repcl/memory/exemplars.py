"""The memory: a few examples of every class seen, within a budget."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from repcl.data import Example


class ExemplarMemory:
    """Exemplars by class, in the order in which classes were first kept.

    Args:
        per_class: how many examples of a class may be kept.
        total: how many may be kept in total; divided evenly among the classes, whatever their number.
    """

    def __init__(self, per_class: int, total: int | None = None) -> None:
        self.per_class = per_class
        self.total = total
        self._kept: dict[str, list[Example]] = {}

    def __len__(self) -> int:
        return sum(len(kept) for kept in self._kept.values())

    def __iter__(self) -> Iterator[Example]:
        for kept in self._kept.values():
            yield from kept

    @property
    def classes(self) -> list[str]:
        """The classes that have exemplars."""
        return list(self._kept)

    def budget(self, classes: int) -> int:
        """How many examples each of `classes` classes may keep."""
        if self.total is None:
            return self.per_class
        if self.total < classes:
            warnings.warn(
                f"Expected memory_total to be at least the number of classes, {classes}, found {self.total}: "
                "no examples are kept, so old classes will be forgotten.",
                stacklevel=2,
            )
        return min(self.per_class, self.total // max(classes, 1))

    def of(self, name: str) -> list[Example]:
        """The exemplars of a class, the most telling first."""
        return list(self._kept.get(name, ()))

    def keep(self, name: str, examples: Iterable[Example]) -> None:
        """Replace the exemplars of a class."""
        self._kept[name] = list(examples)

    def drop(self, examples: Iterable[Example]) -> None:
        """Keep these examples no longer; a class that has none left is as if none was ever kept."""
        gone = set(examples)
        for name in {example.label for example in gone} & self._kept.keys():
            self._kept[name] = [example for example in self._kept[name] if example not in gone]
            if not self._kept[name]:
                del self._kept[name]

    def shrink(self, budget: int) -> None:
        """Drop the least telling exemplars of every class above the budget."""
        for name, kept in self._kept.items():
            self._kept[name] = kept[:budget]

    def regrouped(self, groups: Mapping[str, Sequence[str]]) -> "ExemplarMemory":
        """A memory with these classes; a merged one takes the most telling exemplars of its parts in turn."""
        fresh = ExemplarMemory(self.per_class, self.total)
        limit = self.budget(len(groups)) if self.per_class else None  # `joint` keeps everything
        for name, parts in groups.items():
            turns = zip_longest(*(self.of(part) for part in parts))
            in_turn = [example for turn in turns for example in turn if example is not None]
            unique = dict.fromkeys(_relabeled(example, name) for example in in_turn)
            if unique:
                fresh.keep(name, list(unique)[:limit])
        return fresh

    def counts(self) -> dict[str, int]:
        """Number of exemplars of each class."""
        return {name: len(kept) for name, kept in self._kept.items()}

    def text_bytes(self) -> int:
        """Bytes of stored text."""
        return sum(len(example.text.encode()) for example in self)


def _relabeled(example: Example, name: str) -> Example:
    return example if example.label == name else replace(example, label=name)
