"""Has what comes in changed? Shares of unknown texts and of classes, against those learned or seen before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import asin, sqrt
from typing import Any

import numpy as np

from repcl.classifier.calibration import ACCEPTED
from repcl.classifier.inputs import InvalidInput, as_examples, common_kind
from repcl.classifier.state import ClassifierState
from repcl.errors import InvalidSetting, listed
from repcl.evaluation.statistics import holm

ALPHA = 0.05
NOTABLE = 0.1
"""Cohen's h below which a change is not worth a word, however sure it is: 5 % that become 7.4 %."""
FEWEST = 20
"""Texts below which hardly any change could be told from chance."""
NAMED = 3


@dataclass(frozen=True)
class Share:
    """A share of the texts, in the reference and now.

    Attributes:
        name: of the class; "unknown" for texts of no class.
        before: the share in the reference.
        now: the share among the texts asked about.
        texts: how many of them that is.
        p_value: of the change, corrected for the number of shares that were compared (Holm).
        effect: Cohen's h, 2 asin √now − 2 asin √before; 0.2 is a small change, 0.5 a medium, 0.8 a large one.
    """

    name: str
    before: float
    now: float
    texts: int
    p_value: float
    effect: float

    @property
    def is_changed(self) -> bool:
        """Whether the change is beyond chance and large enough to matter."""
        return self.p_value < ALPHA and abs(self.effect) >= NOTABLE


@dataclass(frozen=True)
class Drift:
    """What has changed between a reference and the texts that come in.

    Attributes:
        texts: how many were looked at.
        reference: what they were compared with, in words.
        unknown: the share of texts of no class; None where no threshold could be chosen.
        classes: the share of each class among the texts that are not unknown, the largest change first; empty
            where there is nothing to compare with.
        distance: half the sum of all changes of class shares, from 0 (none) to 1 (no class in common).
        verdict: one sentence.
    """

    texts: int
    reference: str
    unknown: Share | None
    classes: tuple[Share, ...]
    distance: float | None
    verdict: str

    @property
    def is_changed(self) -> bool:
        """Whether anything changed beyond chance and enough to matter."""
        return any(share.is_changed for share in (self.unknown, *self.classes) if share is not None)


@dataclass(frozen=True)
class _Counts:
    """Texts of each class, and of none. Counts of unknown texts that were promised need not be whole."""

    classes: Mapping[str, int]
    unknown: float | None
    texts: float


def drift(state: ClassifierState, texts: Any, reference: Any = None) -> Drift:
    """Compare texts that come in with those that a classifier learned, or with earlier ones.

    Args:
        state: of the classifier.
        texts: a sequence of str or of `Example`.
        reference: earlier texts; if not given, the texts that were learned.
    """
    now = _asked(state, texts, "texts")
    if reference is None:
        before, said = _learned(state)
    else:
        before = _asked(state, reference, "earlier texts")
        said = f"{before.texts:.0f} earlier texts, asked about in the same way"
    if before.unknown is None and not before.classes:
        raise InvalidSetting(
            f"Method {state.name!r} does not know how many texts of each class it learned, and there are no "
            "held-out texts to choose a threshold by: give earlier texts to compare with (--reference)."
        )
    unknown, classes = _compared(state.method.classes, before, now, is_promise=reference is None)
    known = [share for share in (unknown, *classes) if share is not None]
    corrected = [
        replace(share, p_value=p)
        for share, p in zip(known, holm([share.p_value for share in known]), strict=True)
    ]
    unknown = corrected.pop(0) if unknown is not None else None
    ordered = tuple(sorted(corrected, key=_surest_first))
    distance = sum(abs(share.now - share.before) for share in ordered) / 2 if ordered else None
    verdict = _verdict(int(now.texts), unknown, ordered)
    return Drift(int(now.texts), said, unknown, ordered, distance, verdict)


def cohens_h(now: float, before: float) -> float:
    """The difference of two shares on a scale on which it means the same everywhere (Cohen, 1988)."""
    return 2 * asin(sqrt(now)) - 2 * asin(sqrt(before))


def unknown_p_value(unknown: int, texts: int, *, before: float, of: float) -> float:
    """How often as many texts or more would be unknown, if nothing had changed.

    The threshold lies at an order statistic of the texts it was chosen by, `before` of `of` below it. Then
    the number below it among as many further texts of the same kind is beta-binomial, whatever the
    distribution of confidences; the chance in choosing the threshold is counted in.
    """
    from scipy.stats import betabinom  # takes a second to import

    return float(betabinom.sf(unknown - 1, texts, before + 1, of - before))


def _asked(state: ClassifierState, texts: Any, what: str) -> _Counts:
    """How many texts are of each class, and of none, as the classifier sees them."""
    examples = as_examples(texts)
    if not examples:
        raise InvalidInput(f"Expected {what} to look at, found none: give at least one.")
    common_kind(examples, state.kind)
    evidence = state.evidence(examples)
    is_unknown = np.zeros(len(examples), dtype=bool)
    has_rule = state.calibration.threshold is not None
    if has_rule:
        is_unknown = state.unknown_rule().applies(evidence)
    times = state.has_labels(evidence.probabilities[~is_unknown]).sum(axis=0)
    counted = dict(zip(state.method.classes, times.tolist(), strict=True))
    return _Counts(counted, float(is_unknown.sum()) if has_rule else None, float(len(examples)))


def _learned(state: ClassifierState) -> tuple[_Counts, str]:
    """What was learned, and how to call it."""
    method, chosen_by = state.method, state.calibration.texts_of_unknown_rule
    counted = state.texts_of_classes()
    sizes = {name: counted[name] for name in method.classes}
    learned = {name: size for name, size in sizes.items() if size is not None}
    if len(learned) < len(sizes):  # shares of some classes only would mislead
        learned = {}
    parts = []
    promised = None
    if state.calibration.threshold is not None:
        promised = (1 - ACCEPTED) * chosen_by
        parts.append(f"the {1 - ACCEPTED:.0%} of known texts that the threshold calls unknown")
    if learned:
        parts.append(f"the shares of classes among the {sum(learned.values())} texts that were learned")
    return _Counts(learned, promised, float(chosen_by)), " and ".join(parts)


def _compared(
    names: Sequence[str], before: _Counts, now: _Counts, *, is_promise: bool
) -> tuple[Share | None, list[Share]]:
    """The share of unknown texts and of each class, with p values that are not corrected yet."""
    unknown = None
    if before.unknown is not None and now.unknown is not None:
        was, asked = before.unknown / before.texts, int(now.unknown)
        p = (
            unknown_p_value(asked, int(now.texts), before=before.unknown, of=before.texts)
            if is_promise
            else _fisher(asked, int(now.texts), int(before.unknown), int(before.texts))
        )
        share = now.unknown / now.texts
        unknown = Share("unknown", was, share, asked, p, cohens_h(share, was))
    sum_before, sum_now = sum(before.classes.values()), sum(now.classes.values())
    if not sum_before or not sum_now:
        return unknown, []
    classes = []
    for name in names:
        had, has = before.classes.get(name, 0), now.classes.get(name, 0)
        p = _fisher(has, sum_now, had, sum_before)
        old, new = had / sum_before, has / sum_now
        classes.append(Share(name, old, new, has, p, cohens_h(new, old)))
    return unknown, classes


def _fisher(has: int, texts: int, had: int, before: int) -> float:
    """Fisher's exact test of two shares."""
    from scipy.stats import fisher_exact

    return float(fisher_exact(np.array([[has, texts - has], [had, before - had]])).pvalue)


def _verdict(texts: int, unknown: Share | None, classes: Sequence[Share]) -> str:
    changed = [share for share in classes if share.is_changed]
    found = []
    if unknown is not None and unknown.is_changed:
        found.append(
            f"{unknown.now:.1%} of the texts are unknown where {unknown.before:.1%} were expected "
            f"(p {_p(unknown.p_value)})"
        )
    if changed:
        named = listed([f"{share.name} {share.before:.1%} → {share.now:.1%}" for share in changed], NAMED)
        found.append(f"{len(changed)} of {len(classes)} classes have different shares ({named})")
    if found:
        return f"Incoming texts have changed: {'; '.join(found)}."
    if texts < FEWEST:
        return f"No verdict: {texts} texts are too few to tell a change from chance."
    return f"Nothing has changed beyond chance in {texts} texts."


def _surest_first(share: Share) -> tuple[float, float, str]:
    # rounded, or the last bits would decide between two classes of which one lost what the other won
    return round(share.p_value, 12), -round(abs(share.effect), 12), share.name


def _p(value: float) -> str:
    return f"= {value:.3f}" if value >= 0.001 else "< 0.001"
