"""What is known about each class: texts learned and kept, recall, what it is confused with."""

from collections import Counter
from dataclasses import dataclass

from repcl.classifier.state import ClassifierState


@dataclass(frozen=True)
class ClassOverview:
    """A class at a glance.

    Attributes:
        name: of the class.
        learned: texts it was learned from; None where that was not counted.
        kept: texts of it that are kept word for word.
        checked: texts of it that were asked about as if they had not been learned.
        recall: share of these that get its label; None without any.
        confused_with: the class with which checked texts are mixed up most, either way; None if with none.
        confusions: how many checked texts these are.
    """

    name: str
    learned: int | None
    kept: int
    checked: int
    recall: float | None
    confused_with: str | None
    confusions: int


def overview(state: ClassifierState) -> list[ClassOverview]:
    """All classes by name."""
    checks = state.checks_before().values()
    checked = Counter(check.label for check in checks)
    right = Counter(check.label for check in checks if check.is_correct)
    mixed = {name: Counter[str]() for name in state.names}
    for check in checks:
        if not check.is_correct:
            mixed[check.label][check.answer] += 1
            mixed[check.answer][check.label] += 1
    kept = Counter(example.label for example in state.kept_texts())
    found, learned = [], state.texts_of_classes()
    for name in sorted(state.names):
        other, count = min(mixed[name].items(), key=lambda pair: (-pair[1], pair[0]), default=(None, 0))
        found.append(
            ClassOverview(
                name=name,
                learned=learned[name],
                kept=kept[name],
                checked=checked[name],
                recall=right[name] / checked[name] if checked[name] else None,
                confused_with=other,
                confusions=count,
            )
        )
    return found
