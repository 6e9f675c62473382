"""Which labels name one class: blanks around do not count, nor how é is written; case does, and is noted."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence

from repcl.classifier.inputs import InvalidInput, Label
from repcl.classifier.store.records import LabelType
from repcl.data.normal import normal_label
from repcl.errors import listed, shortened

SHOWN = 5


class LabelWarning(UserWarning):
    """Labels look alike: they were taken for one, or are two classes that differ in case only."""


def settled(labels: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """By each label the class that it names.

    A label that is a class already names that one; else one that is a class but for blanks around it or the
    form of its Unicode; else a class of its own, in the normal form.
    """
    names = list(known)
    exact, by_form = set(names), {normal_label(name): name for name in reversed(names)}
    found: dict[str, str] = {}
    for label in labels:
        if label not in found:
            form = normal_label(label)
            found[label] = label if label in exact else by_form.get(form, form)
    return found


def as_typed(typed: str, names: Iterable[str], kind: LabelType) -> Label:
    """A label in the type that labels were given in, from what a user typed: the class that it names.

    Args:
        typed: such as ` fruit` or `005`.
        names: of the classes.
        kind: of their labels.
    """
    if kind == "number" and re.fullmatch("-?[0-9]{1,19}", typed.strip()):
        return int(typed)
    return settled([typed], names)[typed]


def alike_but_for_case(labels: Iterable[str], known: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of classes that differ in case only, known ones first; each has one that is not known yet."""
    classes = list(dict.fromkeys(known))
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys([*classes, *labels]):
        groups.setdefault(name.casefold(), []).append(name)
    old = set(classes)
    return [tuple(group) for group in groups.values() if len(group) > 1 and not old.issuperset(group)]


def note_spellings(taken: Mapping[str, str], known: Sequence[str]) -> None:
    """Warn about labels that were taken for others, and about those that differ in case only."""
    changed = [f"{shortened(label)} as {shortened(name)}" for label, name in taken.items() if label != name]
    if changed:
        warnings.warn(
            f"Labels were taken without blanks around them and in one form of Unicode: "
            f"{listed(changed, SHOWN)}.",
            LabelWarning,
            stacklevel=4,
        )
    for group in alike_but_for_case(taken.values(), known):
        warnings.warn(
            f"Labels {listed(map(shortened, group), SHOWN)} differ in case only and are "
            f"{len(group)} classes: merge them if they are one.",
            LabelWarning,
            stacklevel=4,
        )


def spoken(label: Label) -> str:
    """A label as words: `cardPaymentFee` and `card_payment_fee` are both `card payment fee`."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(label))
    words = " ".join(re.split(r"[\W_]+", parted)).strip().lower()
    if not any(sign.isalpha() for sign in words):
        raise InvalidInput(
            f"Expected a name that says something, found {shortened(label)}: give a description of the class."
        )
    return words
