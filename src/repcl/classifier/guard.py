"""Guarded learning: held-out texts are scored before and after an update, and a loss is named, or refused."""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from scipy.stats import binomtest

from repcl.classifier.store.records import ClassChange, Comparison
from repcl.data import Example

TEXTS_PER_HELD_OUT = 5  # at most one text in five is held out
MOST_HELD_OUT = 5000  # of all classes; each is compared with every class, so more would take quadratic time
MAX_LOST = 1  # texts of one class that an update may lose
ALPHA = 0.1  # McNemar's p below which a drop is taken for real
TOLERANCE = 0.02
ROUNDING = 1e-9  # 5 texts of 250 are a drop of 0.02, though floating point says a little more


class ForgettingWarning(UserWarning):
    """An update made held-out texts of old classes wrong."""


def hold_out(
    incoming: Sequence[Example], held: Sequence[Example], *, per_class: int, seed: int
) -> tuple[list[Example], list[Example]]:
    """Divide examples into those to learn from and those to hold out, beside the ones already held out.

    Of each class at most one distinct text in five is held out, and no more than are missing to
    `per_class`; a class of four texts loses none. Of all classes together `MOST_HELD_OUT` are held out.
    Which ones depends on the texts and the seed, not on their order. A text that is held out is not learned
    from when it comes again, unless nothing else comes.

    Returns:
        The examples to learn from, and all that are held out from now on.
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
        room = min(per_class - counts[label], len(fresh) // TEXTS_PER_HELD_OUT, MOST_HELD_OUT - len(kept))
        kept |= set(sorted(fresh, key=lambda example: _drawn(seed, example))[: max(0, room)])
    train = [example for example in incoming if example not in kept]
    return train, sorted(kept, key=lambda example: (example.label, repr(example)))


def accuracy(correct: Sequence[bool]) -> float | None:
    """Share of right answers, if there are any answers."""
    return sum(correct) / len(correct) if correct else None


def mcnemar(lost: int, gained: int) -> float:
    """Exact two-sided p that a change as uneven as this one is chance."""
    changed = lost + gained
    return float(binomtest(lost, changed, 0.5).pvalue) if changed else 1.0


def compare(
    labels: Sequence[str], before: Sequence[bool], after: Sequence[bool], *, tolerance: float = TOLERANCE
) -> Comparison:
    """What an update did to held-out texts of old classes, and whether it should be refused.

    Args:
        labels: of the texts.
        before: whether each got its label before the update.
        after: whether each got it after the update.
        tolerance: largest drop of accuracy, a share, that is not refused.
    """
    if not labels:
        return Comparison()
    pairs = list(zip(labels, before, after, strict=True))
    lost = sum(was and not now for _, was, now in pairs)
    gained = sum(now and not was for _, was, now in pairs)
    accuracy_before, accuracy_after = sum(before) / len(pairs), sum(after) / len(pairs)
    p_value = mcnemar(lost, gained)
    by_class: dict[str, list[tuple[bool, bool]]] = {}
    for label, was, now in pairs:
        by_class.setdefault(label, []).append((was, now))
    changes = [_change(name, own) for name, own in by_class.items()]
    reasons = [
        f"class {change.name!r} lost {change.lost} of its {change.texts} held-out texts"
        for change in changes
        if change.lost > MAX_LOST
    ]
    drop = accuracy_before - accuracy_after
    if drop > tolerance + ROUNDING and p_value < ALPHA:
        reasons.append(
            f"accuracy on held-out texts of old classes fell by {100 * drop:.1f} points "
            f"(more than {100 * tolerance:g}; p = {p_value:.3f})"
        )
    return Comparison(
        compared=len(pairs),
        accuracy_before=accuracy_before,
        accuracy_after=accuracy_after,
        regressed=tuple(change for change in changes if change.correct_after < change.correct_before),
        p_value=p_value,
        reasons=tuple(reasons),
    )


def _change(name: str, own: Sequence[tuple[bool, bool]]) -> ClassChange:
    return ClassChange(
        name=name,
        texts=len(own),
        correct_before=sum(was for was, _ in own),
        correct_after=sum(now for _, now in own),
        lost=sum(was and not now for was, now in own),
    )


def _drawn(seed: int, example: Example) -> bytes:
    """What texts are drawn by: it looks random, but is the same for the same text and seed."""
    return sha256(f"{seed} {example!r}".encode()).digest()
