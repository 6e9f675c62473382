"""Texts with several labels: a text has a row for each of them, and counts once where labels play no part."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from repcl.methods.frozen.cosines import PART
from repcl.methods.frozen.kept_rows import KeptRows
from repcl.methods.frozen.ledger import CHUNK, ROUNDING, Features, Ledger
from repcl.methods.frozen.left_out import SURE, cosines, pair_keys, row_keys, spread_sample

ELSEWHERE = 16
"""Steps by which a representation may differ on another machine; those of two texts mostly do by hundreds."""


class SharedLedger(Ledger):
    """A ledger that keeps all rows, in which a text may be of several classes.

    The sums of each class are over its texts. Products of features, which belong to no class, are over all
    texts, each once. A text that comes twice with a label has it once; texts that look the same to the
    encoder are one.
    """

    # the row of a text may be gone with that of another text that looks the same, and no other may go for it
    tolerance_of_known = ELSEWHERE

    def book_in(self, rows: Tensor, labels: Tensor, features: Features) -> None:
        """Add texts, each with one of its labels; what is there already is not added again."""
        known, keys = row_keys(self.kept.rows), row_keys(rows)
        pairs = pair_keys(keys, labels)
        is_new = is_first(pairs) & ~torch.isin(pairs, pair_keys(known, self.kept.labels))
        rows, labels, keys = rows[is_new], labels[is_new], keys[is_new]
        self._count(rows, labels, features, sign=1)
        self._count_texts(rows[is_first(keys) & ~torch.isin(keys, known)], features, sign=1)
        self.kept.add(rows, labels)

    def book_out(self, rows: Tensor, labels: Tensor, features: Features, *, are_known: bool = False) -> None:
        """Take labels away from texts; a text that loses its last label is gone.

        Args:
            rows: of the texts.
            labels: that they lose.
            features: of representations.
            are_known: whether they are known to have been counted. Texts that look the same to the encoder
                share a row, which may be gone with the first of them; else it has to be there.
        """
        found = self.find(rows, labels, are_known=are_known)
        there = [index for index in found if index is not None]
        self._drop(sorted(set(there if are_known else self.checked_indices(found))), features)

    def find(self, rows: Tensor, labels: Tensor, *, are_known: bool = False) -> list[int | None]:
        """The kept row of each example, the same for texts that look the same; None where there is none."""
        tolerance = self.tolerance_of_known if are_known else ROUNDING
        pairs = zip(rows, labels.tolist(), strict=True)
        return [self.kept.find(row, label, tolerance=tolerance) for row, label in pairs]

    def sum_up_again(self, features: Features) -> None:
        """Compute all sums from the kept rows."""
        for part in self.parts():
            part.clear()
        rows = self.kept.rows
        self._count(rows, self.kept.labels.long(), features, sign=1)
        self._count_texts(rows[is_first(row_keys(rows))], features, sign=1)

    def regroup(self, groups: Sequence[Sequence[int]], classes: int, features: Features) -> None:
        """Make each new class of a group of old ones; a text of two classes of a group is of it once.

        Args:
            groups: indices of the old classes that each new class is made of.
            classes: how many there were.
            features: of representations.
        """
        stays = torch.zeros(classes, dtype=torch.bool)
        stays[[label for group in groups for label in group]] = True
        self._drop((~stays[self.kept.labels.long()]).nonzero()[:, 0].tolist(), features)
        for part in (*self.parts(), self.kept):
            part.regroup_rows(groups, classes)
        is_twice = ~is_first(pair_keys(row_keys(self.kept.rows), self.kept.labels))
        self._drop(is_twice.nonzero()[:, 0].tolist(), features)

    def _drop(self, indices: Sequence[int], features: Features) -> None:
        """Forget kept rows, and count them no longer."""
        rows, labels = self.kept.rows[indices], self.kept.labels[indices].long()
        self.kept.remove(indices)
        self._count(rows, labels, features, sign=-1)
        keys = row_keys(rows)
        is_gone = is_first(keys) & ~torch.isin(keys, row_keys(self.kept.rows))
        self._count_texts(rows[is_gone], features, sign=-1)

    def _count(self, rows: Tensor, labels: Tensor, features: Features, *, sign: int) -> None:
        for number, part in enumerate(self.parts()):
            for start in range(0, len(rows), CHUNK):
                chunk = features(rows[start : start + CHUNK], number)
                part.add_to_classes(chunk, labels[start : start + CHUNK], sign=sign)

    def _count_texts(self, rows: Tensor, features: Features, *, sign: int) -> None:
        for number, part in enumerate(self.moments()):
            for chunk in torch.split(rows, CHUNK):
                part.add_products(features(chunk, number), sign=sign)


@dataclass(frozen=True)
class LeftOutTexts:
    """Answers to learned texts that may have several labels, each text as if it had not been learned.

    Attributes:
        keys: tell the texts apart through all updates, (texts,).
        has_label: whether each text is of each class, (texts, classes).
        scores: (texts, classes).
        stands_for: how many learned texts like it each text stands for, (texts,).
        near: which of the texts were compared with all others.
        nearest: cosine of each of those with the nearest other text.
        nearest_stranger: cosine with the nearest text that shares no label; -2 where there is none.
    """

    keys: Tensor
    has_label: Tensor
    scores: Tensor
    stands_for: Tensor
    near: Tensor
    nearest: Tensor
    nearest_stranger: Tensor


@dataclass(frozen=True)
class SharedTexts:
    """Kept rows as texts, each with all its labels, ordered by their keys.

    Attributes:
        keys: (texts,).
        rows: (texts, size).
        has_label: (texts, classes).
    """

    keys: Tensor
    rows: Tensor
    has_label: Tensor

    @classmethod
    def of(cls, kept: KeptRows, classes: int) -> "SharedTexts":
        """The texts that rows belong to."""
        keys, first, text = np.unique(row_keys(kept.rows).numpy(), return_index=True, return_inverse=True)
        has_label = torch.zeros(len(keys), classes, dtype=torch.bool)
        has_label[torch.from_numpy(text), kept.labels.long()] = True
        return cls(torch.from_numpy(keys), kept.rows[torch.from_numpy(first)], has_label)

    def spread(self, most: int) -> Tensor:
        """Indices of at most so many texts, as even over the classes as can be, in order."""
        text, label = self.has_label.nonzero(as_tuple=True)
        found: Tensor = torch.unique(text[spread_sample(label, self.keys[text], most)])
        return found

    def stands_for(self, asked: Tensor) -> Tensor:
        """How many texts each of a spread sample stands for: rare classes are asked about more closely."""
        is_asked = self.has_label[asked].sum(dim=0).double() / self.has_label.sum(dim=0).clamp(min=1)
        missed = torch.where(self.has_label[asked], 1 - is_asked, 1.0).prod(dim=1)
        return 1 / (1 - missed).clamp(min=1e-9)

    def nearest_others(self, asked: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines of texts with the nearest other text, and with the nearest that shares no label."""
        similar = torch.cat([cosines(self.rows[asked], part) for part in torch.split(self.rows, PART)], dim=1)
        similar[torch.arange(len(asked)), asked] = -2.0
        shares = (self.has_label[asked].float() @ self.has_label.float().T) > 0
        return similar.amax(dim=1), similar.masked_fill(shares, -2.0).amax(dim=1)


def without_the_text(fitted: Tensor, leverage: Tensor, has_label: Tensor) -> Tensor:
    """Leave-one-out fits of a linear smoother, (ŷ - h y) / (1 - h), (texts, classes).

    Args:
        fitted: ŷ, (texts, classes).
        leverage: h, how much a text decides its own fit, (texts,).
        has_label: y, 1 for each label that a text has, (texts, classes).
    """
    leverage = leverage.clamp(max=SURE)[:, None]
    return (fitted - leverage * has_label) / (1 - leverage)


def is_first(keys: Tensor) -> Tensor:
    """Which keys did not come before, (keys,)."""
    found = torch.zeros(len(keys), dtype=torch.bool)
    found[torch.from_numpy(np.unique(keys.numpy(), return_index=True)[1])] = True
    return found
