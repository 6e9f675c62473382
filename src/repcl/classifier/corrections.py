"""Texts that come again: under another label they move, under the same one they are no news; or they go."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from repcl.classifier.inputs import InvalidInput
from repcl.classifier.known import KnownTexts, unlabeled
from repcl.classifier.state import ClassifierState
from repcl.data import Example
from repcl.methods.frozen.method import FrozenMethod


@dataclass(frozen=True)
class Found:
    """What a classifier has of texts, each with a label that it has them under.

    Attributes:
        learned: they were learned from.
        held_out: they are held out.
    """

    learned: frozenset[Example] = frozenset()
    held_out: frozenset[Example] = frozenset()

    @property
    def texts(self) -> set[Example]:
        """The texts, without labels."""
        return {unlabeled(example) for example in self.learned | self.held_out}

    @property
    def labels(self) -> set[str]:
        """The labels that it has them under."""
        return {example.label for example in self.learned | self.held_out}


@dataclass(frozen=True)
class Lesson:
    """How examples to learn relate to what is known.

    Attributes:
        outdated: texts under labels that they have no longer.
        corrections: the examples that say so.
        repeated: examples that were learned before as they are.
    """

    outdated: Found
    corrections: frozenset[Example]
    repeated: frozenset[Example]


def find(state: ClassifierState, texts: Iterable[Example]) -> Found:
    """What there is of texts, under whatever labels."""
    asked = list(dict.fromkeys(map(unlabeled, texts)))
    names = state.known.labels(asked)
    learned = {
        replace(text, label=name) for text, labels in zip(asked, names, strict=True) for name in labels
    }
    wanted = set(asked)
    held_out = {example for example in state.held_out if unlabeled(example) in wanted}
    return Found(frozenset(learned | _learned_unlisted(state, held_out - learned)), frozenset(held_out))


def leaves_no_trace(state: ClassifierState, found: Found) -> bool:
    """Whether nothing is left of texts when they are taken back; asked before that.

    Of a held-out text that has no hash nobody knows whether it was learned, too, if its row is not found.
    """
    open_ones = found.held_out - found.learned if state.leaves_out else ()
    if any(example.label in state.known.unlisted for example in open_ones):
        return False
    return not found.learned or state.method.takes_back_exactly


def _learned_unlisted(state: ClassifierState, held_out: Iterable[Example]) -> set[Example]:
    """Those of the held-out texts that were learned without a hash, as learners do that leave texts out."""
    method = state.method
    if not isinstance(method, FrozenMethod) or not state.leaves_out:
        return set()
    open_ones = [example for example in held_out if example.label in state.known.unlisted]
    is_there = method.may_have_learned(open_ones)
    return {example for example, is_one in zip(open_ones, is_there, strict=True) if is_one}


def compare_with_known(state: ClassifierState, examples: Sequence[Example]) -> Lesson:
    """Sort examples to learn by what is known of their texts.

    A text that comes under several labels at once has all of them; it loses only those that it does not come
    with.
    """
    found, coming = find(state, examples), frozenset(examples)
    outdated = Found(found.learned - coming, found.held_out - coming)
    moved = outdated.texts
    corrections = {example for example in coming if unlabeled(example) in moved}
    repeated = frozenset(example for example, _ in _still_there(state, found.learned & coming))
    return Lesson(outdated, frozenset(corrections), repeated)


def as_learned(state: ClassifierState, examples: Iterable[Example]) -> list[Example]:
    """Examples as many times as each counts, in an order that is always the same."""
    ordered = sorted(examples, key=lambda example: (example.label, repr(example)))
    if state.is_multilabel:  # a text has a label once, however often it came with it
        return ordered
    return [example for example in ordered for _ in range(max(1, state.known.times(example)))]


def list_learned(
    state: ClassifierState, learned: Sequence[Example], taken_back: Iterable[Example], *, keeps_hashes: bool
) -> None:
    """Bring the list of known texts up to date, or keep none where nothing of a text may be kept."""
    if not keeps_hashes:
        state.known = KnownTexts(unlisted=state.method.classes)
        return
    state.known.discard(taken_back)
    state.known.add(learned)


def recognized(state: ClassifierState, *, keeps_hashes: bool) -> Literal["all", "some", "none"]:
    """Which of the texts learned so far will be recognized when they come again."""
    if not keeps_hashes:
        return "none"
    return "some" if state.known.unlisted else "all"


@dataclass(frozen=True)
class Removal:
    """What it takes to forget texts.

    Attributes:
        known: what is known of them.
        claimed: examples that are not listed, of a class of which not all texts are; the statistics allow to
            take them out.
        unchecked: how many of them nothing can be checked by.
        texts: how many texts are forgotten.
        not_found: how many are not known.
    """

    known: Found
    claimed: tuple[Example, ...]
    unchecked: int
    texts: int
    not_found: int


def plan_removal(state: ClassifierState, examples: Sequence[Example]) -> Removal:
    """Find the texts to forget; an example without a label means its text under all labels."""
    every = find(state, examples)
    wanted, texts = set(examples), {unlabeled(example) for example in examples if not example.label}

    def is_meant(example: Example) -> bool:
        return example in wanted or unlabeled(example) in texts

    known = Found(frozenset(filter(is_meant, every.learned)), frozenset(filter(is_meant, every.held_out)))
    there = known.texts
    open_ones = [
        example
        for example in examples
        if unlabeled(example) not in there and example.label in state.known.unlisted
    ]
    claimed, unchecked = _claimed(state, open_ones)
    gone = there | set(map(unlabeled, claimed))
    missing = {unlabeled(example) for example in examples} - gone
    if not gone:
        raise InvalidInput(
            f"None of the {len(missing)} texts to forget is known{_why(state, examples)}: check the texts"
            f"{' and labels' if any(example.label for example in examples) else ''}."
        )
    return Removal(known, claimed, unchecked, len(gone), len(missing))


def texts_left(state: ClassifierState, gone: Sequence[Example]) -> dict[str, int]:
    """How many texts each class that loses some is still learned from, where that is known."""
    learned, left = state.texts_of_classes(), {}
    counted = {number: example.label for example, number in _still_there(state, gone)}
    for name, taken in Counter(counted.values()).items():
        there = learned.get(name)
        if there is not None:
            left[name] = there - taken
    return left


def _still_there(state: ClassifierState, examples: Iterable[Example]) -> list[tuple[Example, int]]:
    """Learned examples, each with a number that those have in common which count as one.

    Where a text may have several labels, texts that look the same to the encoder are one to the learner, and
    when one of them is forgotten, none is there any more.
    """
    method, learned = state.method, list(examples)
    if not isinstance(method, FrozenMethod) or not method.is_multilabel or not learned:
        return [(example, number) for number, example in enumerate(learned)]
    rows = method.find_kept(learned, are_known=True)
    return [(example, row) for example, row in zip(learned, rows, strict=True) if row is not None]


def _claimed(state: ClassifierState, examples: Sequence[Example]) -> tuple[tuple[Example, ...], int]:
    """Those examples that may have been learned, and how many of them are taken on the user's word."""
    method = state.method
    if not isinstance(method, FrozenMethod):
        return (), 0
    is_there = method.may_have_learned(examples)
    claimed = tuple(one for one, is_one in zip(examples, is_there, strict=True) if is_one)
    return claimed, 0 if method.keeps_rows else len(claimed)


def _why(state: ClassifierState, examples: Sequence[Example]) -> str:
    if state.known.unlisted and not all(example.label for example in examples):
        return " (where no hash is kept, learners on a frozen encoder find texts by their labels)"
    return ""
