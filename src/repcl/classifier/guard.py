"""Guarded learning: texts are asked before and after an update; what was lost is named, and may be refused.

Four questions. Did a class lose more of its texts than chance and new, similar classes explain? Did old
classes as a whole? Do an old class and one of the update take each other's texts? Do the texts of the update
contradict their labels, as they do when labels are mixed up?
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from statistics import fmean

from repcl.classifier.arrivals import USUAL, Arrival
from repcl.classifier.store.records import ClassChange, Comparison, LostText
from repcl.data import Example
from repcl.evaluation.statistics import at_least, holm, mcnemar

TEXTS_PER_HELD_OUT = 5  # at most one text in five is held out
MOST_HELD_OUT = 5000  # of all classes; each is compared with every class, so more would take quadratic time
TOLERANCE = 0.02
CLASS_ALPHA = 0.005  # for all classes together
OVERALL_ALPHA = 0.02
PAIR_ALPHA = 0.02  # for each pair: most pairs share nothing, and SHARED keeps the others from a false alarm
LABEL_ALPHA = 0.04
# Chosen on rounds from 5 on; docs/classifier.md says of which data, and what they achieve.
CHANCE = 0.005  # share of its texts that a class loses in a harmless update
FALL = 0.15  # smallest fall of a class that is refused
EXPLAINED = 0.05  # share that it may lose besides to a class of the update that is itself well learned
SHARED = 0.08  # share of their texts that an old class and one of the update may take from each other
LOST_SHOWN = 3
ROUNDING = 1e-9  # 0.2 of 5 texts is one text, though floating point says a little more


class ForgettingWarning(UserWarning):
    """An update made held-out texts of old classes wrong."""


def hold_out(
    incoming: Sequence[Example],
    held: Sequence[Example],
    *,
    per_class: int,
    seed: int,
    never: Collection[Example] = (),
) -> tuple[list[Example], list[Example]]:
    """Divide examples into those to learn from and those to hold out, beside the ones already held out.

    Of each class at most one distinct text in five is held out, and no more than are missing to
    `per_class`; a class of four texts loses none. Of all classes together `MOST_HELD_OUT` are held out.
    Which ones depends on the texts and the seed, not on their order. A text that is held out is not learned
    from when it comes again, unless nothing else comes.
    Those in `never` are not drawn: they were learned from before, or correct what was learned.

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
        drawable = fresh.difference(never)
        room = min(per_class - counts[label], len(drawable) // TEXTS_PER_HELD_OUT, MOST_HELD_OUT - len(kept))
        kept |= set(sorted(drawable, key=lambda example: drawn(seed, example))[: max(0, room)])
    train = [example for example in incoming if example not in kept]
    return train, sorted(kept, key=lambda example: (example.label, repr(example)))


def keep_words(
    incoming: Sequence[Example],
    held: Sequence[Example],
    *,
    per_class: int,
    seed: int,
    never: Collection[Example] = (),
) -> tuple[list[Example], list[Example]]:
    """The same for learners that leave texts out in their turn: they learn from all, and none is lost.

    Of each class up to `per_class` texts are kept word for word, so that answers can be explained by them.
    """
    kept = set(held)
    counts = Counter(example.label for example in kept)
    for example in sorted(set(incoming) - kept - set(never), key=lambda example: drawn(seed, example)):
        if counts[example.label] < per_class:
            kept.add(example)
            counts[example.label] += 1
    return list(incoming), sorted(kept, key=lambda example: (example.label, repr(example)))


def accuracy(correct: Sequence[bool]) -> float | None:
    """Share of right answers, if there are any answers."""
    return sum(correct) / len(correct) if correct else None


def compare(
    labels: Sequence[str],
    before: Sequence[str],
    after: Sequence[str],
    *,
    even: int | None = None,
    new_classes: Collection[str] = (),
    incoming: Sequence[Arrival] = (),
    tolerance: float = TOLERANCE,
) -> Comparison:
    """What an update did to texts of old classes, and whether it should be refused.

    Answers have to be honest: to texts that were held out, or with each text left out in its turn.

    Args:
        labels: of texts that were known before the update.
        before: what they got before it.
        after: what they get after it.
        even: how many of the texts, the first ones, are spread evenly over the classes; the others tell more
            of their classes, and say nothing of all together. All of them if not given.
        new_classes: the classes that it brought.
        incoming: texts that it brought, of new and of old classes.
        tolerance: the share of texts that may be lost without a question; 1 accepts everything.
    """
    if not labels[:even]:
        return Comparison()
    changes = _changes(labels, before, after)
    taken = _taken(labels, before, after)
    labels, before, after = labels[:even], before[:even], after[:even]
    seen = _Seen(
        texts=len(labels),
        taken=_taken(labels, before, after),
        gained=_gained(labels, before, after),
    )
    update = _Incoming(frozenset(new_classes), tuple(incoming))
    fallen = _fallen(changes, update, tolerance)
    rest = [change for change in changes if change not in fallen]
    reasons = [
        *map(_class_reason, fallen),
        *_pair_reasons(rest, taken, update, tolerance),
        *_overall_reasons(changes, seen, update, tolerance),
        *_label_reasons(changes, seen, update, tolerance),
    ]
    regressed = [change for change in changes if change.correct_after < change.correct_before]
    return Comparison(
        compared=len(labels),
        accuracy_before=1 - _wrong(labels, before) / len(labels),
        accuracy_after=1 - _wrong(labels, after) / len(labels),
        recall_before=fmean(change.correct_before / change.texts for change in changes),
        recall_after=fmean(change.correct_after / change.texts for change in changes),
        regressed=tuple(sorted(regressed, key=lambda change: -change.lost)),
        p_value=mcnemar(seen.lost, seen.gained),
        reasons=tuple(reasons),
    )


def lost_texts(
    examples: Sequence[Example], before: Sequence[str], after: Sequence[str]
) -> tuple[LostText, ...]:
    """A few texts that were right before and are wrong now, of different classes where there are several."""
    lost = [
        LostText(text=example.text, label=example.label, answer=now)
        for example, was, now in zip(examples, before, after, strict=True)
        if was == example.label != now
    ]
    first = {one.label: one for one in reversed(lost)}
    return tuple([*first.values(), *(one for one in lost if first[one.label] is not one)][:LOST_SHOWN])


@dataclass(frozen=True)
class _Seen:
    """Counts over texts of all old classes; `taken`, by their class and the one that took them."""

    texts: int
    taken: Counter[tuple[str, str]]
    gained: int

    @property
    def lost(self) -> int:
        return self.taken.total()


@dataclass(frozen=True)
class _Incoming:
    """Texts that an update brought, with the answers they get after it."""

    new_classes: frozenset[str]
    texts: tuple[Arrival, ...]

    @property
    def classes(self) -> frozenset[str]:
        """Those that the update touched."""
        return self.new_classes | {one.label for one in self.texts}

    @property
    def well_learned(self) -> set[str]:
        """Classes of the update that get half of its texts for them, as far as that was asked."""
        asked = Counter(one.label for one in self.texts)
        right = Counter(one.label for one in self.texts if one.label == one.answer)
        return {name for name in self.classes if 2 * right[name] >= asked[name]}

    @property
    def new_to_old(self) -> int:
        """Texts of new classes that are taken for old ones."""
        return sum(one.label in self.new_classes and one.answer not in self.new_classes for one in self.texts)

    @property
    def texts_per_new_class(self) -> float:
        return sum(one.label in self.new_classes for one in self.texts) / max(1, len(self.new_classes))


def _fallen(changes: Sequence[ClassChange], update: _Incoming, tolerance: float) -> list[ClassChange]:
    """Classes that lost more than chance and similar classes explain, corrected for how many there are."""
    lost, right = sum(change.lost for change in changes), sum(change.correct_before for change in changes)
    well_learned = update.well_learned
    p_values = []
    for change in changes:
        fall = change.correct_before - change.correct_after
        if fall <= 0:
            p_values.append(1.0)
            continue
        # what the other classes lose is what this update does to any class
        usual = (lost - change.lost + 0.5) / (right - change.correct_before + 1)
        explained = EXPLAINED if change.taken_by in well_learned else 0.0
        rate = min(1.0, max(CHANCE, usual) + explained)
        p_values.append(at_least(fall, change.correct_before, rate))
    return [
        change
        for change, p_value in zip(changes, holm(p_values), strict=True)
        if p_value < CLASS_ALPHA and _fall(change) >= FALL - ROUNDING and _fall(change) > tolerance + ROUNDING
    ]


def _fall(change: ClassChange) -> float:
    return (change.correct_before - change.correct_after) / change.texts


def _class_reason(change: ClassChange) -> str:
    return (
        f"class {change.name!r} lost {change.lost} of its {change.texts} texts, "
        f"{change.taken} of them to {change.taken_by!r}"
    )


def _pair_reasons(
    changes: Sequence[ClassChange],
    taken: Counter[tuple[str, str]],
    update: _Incoming,
    tolerance: float,
) -> list[str]:
    """Old classes that share texts with a class of the update, as two names of one thing do.

    What the old class lost to the other counts together with the new texts of the other that are taken for
    the old class, so that few texts of each are enough.
    """
    came = Counter(one.label for one in update.texts)
    returned = Counter((one.answer, one.label) for one in update.texts)
    by_name = {change.name: change for change in changes if _fall(change) > tolerance + ROUNDING}
    touched, reasons = update.classes, []
    for (name, other), lost in taken.items():
        if name not in by_name or other not in touched:
            continue
        asked = by_name[name].correct_before + came[other]
        if at_least(lost + returned[name, other], asked, min(1.0, max(SHARED, tolerance))) < PAIR_ALPHA:
            reasons.append(
                f"class {name!r} lost {lost} of its {by_name[name].texts} texts to {other!r}, and "
                f"{returned[name, other]} of {came[other]} new texts of {other!r} are taken for {name!r}"
            )
    return reasons


def _overall_reasons(
    changes: Sequence[ClassChange], seen: _Seen, update: _Incoming, tolerance: float
) -> list[str]:
    """Whether old classes as a whole lost more than the tolerance and what new classes explain.

    Similar classes are taken for each other in both directions: as many texts of old classes may go to new
    ones as come from there, were as many asked.
    """
    per_old, per_new = seen.texts / len(changes), update.texts_per_new_class
    lost_to_new = sum(count for (_, taker), count in seen.taken.items() if taker in update.new_classes)
    explained = min(lost_to_new, (update.new_to_old + 1) * per_old / max(1.0, per_new))
    unexplained = ceil(seen.lost - seen.gained - explained - ROUNDING)
    rate = min(1.0, max(CHANCE, tolerance))
    if unexplained <= 0 or at_least(unexplained, seen.texts, rate) >= OVERALL_ALPHA:
        return []
    drop = 100 * (seen.lost - seen.gained) / seen.texts
    return [f"accuracy on texts of old classes fell by {drop:.1f} points, and new classes do not explain it"]


def _label_reasons(
    changes: Sequence[ClassChange], seen: _Seen, update: _Incoming, tolerance: float
) -> list[str]:
    """Whether labels of the update contradict what was learned from all other texts, as mixed-up ones do.

    Of learned texts `USUAL` look as doubtful, and of new texts of old classes as many should. A new class may
    be hard to tell from old ones; so of its texts those count that are taken for another class of the update,
    and these classes should see their share.
    """
    touched, old = update.classes, {change.name for change in changes}
    doubted = [one for one in update.texts if one.is_doubtful and (one.label in old or one.answer in touched)]
    if not doubted:
        return []
    usual = max(USUAL, 1 / (seen.texts + 1))  # of few texts the lowest one is the limit
    share = (len(touched) - 1) / max(1, len(touched | old) - 1)
    expected = fmean(usual if one.label in old else share * usual for one in update.texts)
    rate = min(1.0, expected + max(CHANCE, tolerance))
    if at_least(len(doubted), len(update.texts), rate) >= LABEL_ALPHA:
        return []
    (label, answer), count = Counter((one.label, one.answer) for one in doubted).most_common(1)[0]
    return [
        f"{len(doubted)} of {len(update.texts)} new texts look mislabeled: other texts point to another "
        f"class, most often to {answer!r} where the label is {label!r} ({count})"
    ]


def _changes(labels: Sequence[str], before: Sequence[str], after: Sequence[str]) -> list[ClassChange]:
    by_class: dict[str, list[tuple[str, str]]] = {}
    for label, was, now in zip(labels, before, after, strict=True):
        by_class.setdefault(label, []).append((was, now))
    return [_change(name, own) for name, own in by_class.items()]


def _change(name: str, own: Sequence[tuple[str, str]]) -> ClassChange:
    lost = Counter(now for was, now in own if was == name != now)
    taken_by, taken = min(lost.items(), key=lambda item: (-item[1], item[0]), default=(None, 0))
    return ClassChange(
        name=name,
        texts=len(own),
        correct_before=sum(was == name for was, _ in own),
        correct_after=sum(now == name for _, now in own),
        lost=lost.total(),
        taken_by=taken_by,
        taken=taken,
    )


def _wrong(labels: Sequence[str], answers: Sequence[str]) -> int:
    return sum(label != answer for label, answer in zip(labels, answers, strict=True))


def _gained(labels: Sequence[str], before: Sequence[str], after: Sequence[str]) -> int:
    return sum(was != label == now for label, was, now in zip(labels, before, after, strict=True))


def _taken(labels: Sequence[str], before: Sequence[str], after: Sequence[str]) -> Counter[tuple[str, str]]:
    """Lost texts, by their class and the one that took them."""
    answered = zip(labels, before, after, strict=True)
    return Counter((label, now) for label, was, now in answered if was == label != now)


def drawn(seed: int, example: Example) -> bytes:
    """What texts are drawn by: it looks random, but is the same for the same text and seed."""
    return sha256(f"{seed} {example!r}".encode()).digest()
