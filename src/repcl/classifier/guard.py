"""Guarded learning: held-back texts are scored before and after, and a loss is named, or refused."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from hashlib import sha256
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from scipy.stats import binomtest

from repcl.data import Example

LARGEST_SHARE = 5  # at most one text in five is held back
MOST_LOST = 1  # texts of one class that may be lost
DOUBT = 0.1  # McNemar's p below which a drop is taken for real
TOLERANCE = 0.02
ROUNDING = 1e-9  # 5 texts of 250 are a drop of 0.02, though floating point says a little more


class ForgettingWarning(UserWarning):
    """An update made held-back texts of old classes wrong."""


class Record(BaseModel):
    """What goes into a revision's JSON: frozen, closed to unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ClassChange(Record):
    """How an old class fared: `texts` held back, of which so many were right before and after."""

    name: str
    texts: int
    right_before: int
    right_after: int
    lost: int


class Update(Record):
    """One change of a classifier, and what it did to held-back texts.

    Attributes:
        action: what was done.
        when: UTC.
        new_classes: learned in this update for the first time.
        more_of: classes that were known before and got more examples.
        examples: texts learned from.
        held_back: texts of this update that were put aside instead.
        compared: held-back texts of old classes, scored before and after.
        accuracy_before: on them, before the update; None when there are none.
        accuracy_after: on them, after the update.
        accuracy: on all held-back texts after the update, those of new classes too.
        fallen: the old classes with fewer right answers than before.
        p_value: McNemar's exact test of before against after.
        reasons: why the update should not be used; empty when all is well.
    """

    action: Literal["learn", "rename", "merge", "remove", "absorb"]
    when: str
    new_classes: tuple[str, ...] = ()
    more_of: tuple[str, ...] = ()
    examples: int = 0
    held_back: int = 0
    compared: int = 0
    accuracy_before: float | None = None
    accuracy_after: float | None = None
    accuracy: float | None = None
    fallen: tuple[ClassChange, ...] = ()
    p_value: float | None = None
    reasons: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether the guard advises against the update."""
        return bool(self.reasons)


def now() -> str:
    """The time for the record, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def hold_back(
    incoming: Sequence[Example], held: Sequence[Example], *, per_class: int, seed: int
) -> tuple[list[Example], list[Example]]:
    """Divide examples into those to learn from and those to put aside, beside the ones already held back.

    Of each class at most one distinct text in five is put aside, and no more than are missing to
    `per_class`; a class of four texts loses none. Which ones depends on the texts and the seed, not on their
    order. A text that is held back is not learned from when it comes again, unless nothing else comes.

    Returns:
        The examples to learn from, and all that are held back from now on.
    """
    kept = set(held)
    counts = Counter(example.label for example in kept)
    by_label: dict[str, set[Example]] = {}
    for example in incoming:
        by_label.setdefault(example.label, set()).add(example)
    for label, own in by_label.items():
        fresh = own - kept
        if not fresh:
            kept -= own
        room = max(0, min(per_class - counts[label], len(fresh) // LARGEST_SHARE))
        kept |= set(sorted(fresh, key=lambda example: _lot(seed, example))[:room])
    train = [example for example in incoming if example not in kept]
    return train, sorted(kept, key=lambda example: (example.label, repr(example)))


def accuracy(right: Sequence[bool]) -> float | None:
    """Share of right answers, if there are any answers."""
    return sum(right) / len(right) if right else None


def mcnemar(lost: int, gained: int) -> float:
    """Exact two-sided p that a change as uneven as this one is chance."""
    changed = lost + gained
    return float(binomtest(lost, changed, 0.5).pvalue) if changed else 1.0


def compare(
    labels: Sequence[str], before: Sequence[bool], after: Sequence[bool], *, tolerance: float = TOLERANCE
) -> dict[str, Any]:
    """The fields of an `Update` that tell what happened to held-back texts of old classes."""
    if not labels:
        return {"compared": 0}
    pairs = list(zip(labels, before, after, strict=True))
    lost = sum(was and not now for _, was, now in pairs)
    gained = sum(now and not was for _, was, now in pairs)
    accuracy_before, accuracy_after = sum(before) / len(pairs), sum(after) / len(pairs)
    p_value = mcnemar(lost, gained)
    changes = [_change(name, pairs) for name in dict.fromkeys(labels)]
    reasons = [
        f"class {change.name!r} lost {change.lost} of its {change.texts} held-back texts"
        for change in changes
        if change.lost > MOST_LOST
    ]
    drop = accuracy_before - accuracy_after
    if drop > tolerance + ROUNDING and p_value < DOUBT:
        reasons.append(
            f"accuracy on held-back texts of old classes fell by {100 * drop:.1f} points "
            f"(more than {100 * tolerance:g}; p = {p_value:.3f})"
        )
    return {
        "compared": len(pairs),
        "accuracy_before": accuracy_before,
        "accuracy_after": accuracy_after,
        "fallen": tuple(change for change in changes if change.right_after < change.right_before),
        "p_value": p_value,
        "reasons": tuple(reasons),
    }


def _change(name: str, pairs: Iterable[tuple[str, bool, bool]]) -> ClassChange:
    own = [(was, now) for label, was, now in pairs if label == name]
    return ClassChange(
        name=name,
        texts=len(own),
        right_before=sum(was for was, _ in own),
        right_after=sum(now for _, now in own),
        lost=sum(was and not now for was, now in own),
    )


def _lot(seed: int, example: Example) -> bytes:
    return sha256(f"{seed} {example!r}".encode()).digest()
