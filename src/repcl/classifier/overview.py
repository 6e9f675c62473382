"""What is known about each class: texts learned and kept, held-out recall, what it is confused with."""

from collections import Counter
from dataclasses import dataclass

from repcl.classifier.state import ClassifierState


@dataclass(frozen=True)
class ClassOverview:
    """A class at a glance.

    Attributes:
        name: of the class.
        learned: texts it was learned from; None where that was not counted.
        exemplars: texts of it that are kept to be learned again.
        held_out: texts of it that are never learned from.
        recall: share of the held-out texts that get its label; None without any.
        confused_with: the class with which held-out texts are mixed up most, either way; None if with none.
        confusions: how many held-out texts these are.
    """

    name: str
    learned: int | None
    exemplars: int
    held_out: int
    recall: float | None
    confused_with: str | None
    confusions: int


def overview(state: ClassifierState) -> list[ClassOverview]:
    """All classes by name."""
    answers = state.held_out_answers()
    held_out = Counter(example.label for example, _ in answers)
    right = Counter(answer for example, answer in answers if answer == example.label)
    mixed = {name: Counter[str]() for name in state.names}
    for example, answer in answers:
        if answer != example.label:
            mixed[example.label][answer] += 1
            mixed[answer][example.label] += 1
    exemplars = Counter(example.label for example in state.method.memory)
    learned = state.texts_learned()
    found = []
    for name in sorted(state.names):
        other, count = min(mixed[name].items(), key=lambda pair: (-pair[1], pair[0]), default=(None, 0))
        found.append(
            ClassOverview(
                name=name,
                learned=learned.get(name, 0),
                exemplars=exemplars[name],
                held_out=held_out[name],
                recall=right[name] / held_out[name] if held_out[name] else None,
                confused_with=other,
                confusions=count,
            )
        )
    return found
