"""Two runs of one round compared text by text: which test texts does only one of them answer right?"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from repcl.evaluation.predictions import TestedExample
from repcl.evaluation.statistics import mcnemar


@dataclass(frozen=True, slots=True)
class LastAnswers:
    """Which test texts are answered right in the end; small, so that those of a large grid can be kept.

    Attributes:
        texts: how many there are.
        digest: of their names and classes, for answers to other texts cannot be compared.
        right: a bit for each text, in the order of their names.
    """

    texts: int
    digest: str
    right: int


@dataclass(frozen=True)
class TextComparison:
    """How many texts only the first of two runs, or only the second, answers right in the end."""

    texts: int
    only_first: int
    only_second: int

    @property
    def difference(self) -> float:
        """By how many points of accuracy the first is better."""
        return 100 * (self.only_first - self.only_second) / self.texts

    @property
    def p_value(self) -> float:
        """Of McNemar's exact test."""
        return mcnemar(self.only_first, self.only_second)


def last_answers(tested: Sequence[TestedExample]) -> LastAnswers | None:
    """The answers after the last task; None if nothing was evaluated then."""
    answered = sorted(
        (example.id, example.label, example.predicted[-1] == example.label)
        for example in tested
        if example.predicted[-1] is not None
    )
    if not answered:
        return None
    names = sha256(repr([(name, label) for name, label, _ in answered]).encode()).hexdigest()
    bits = "".join("01"[is_right] for _, _, is_right in answered)
    return LastAnswers(len(answered), names, int(bits, 2))


def compare_answers(first: LastAnswers | None, second: LastAnswers | None) -> TextComparison | None:
    """Compare two runs over the same test texts; None if they are not the same, or not known."""
    if first is None or second is None or first.digest != second.digest:
        return None
    only_first = first.right & ~second.right
    only_second = second.right & ~first.right
    return TextComparison(first.texts, only_first.bit_count(), only_second.bit_count())
