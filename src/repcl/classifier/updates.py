"""The updates of a classifier: learn, rename, merge, remove, absorb; each compares before and after."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from repcl.classifier.guard import TOLERANCE, accuracy, compare, hold_out
from repcl.classifier.inputs import InvalidInput, as_classes, label_type
from repcl.classifier.state import ClassifierState
from repcl.classifier.store.records import Update, now
from repcl.data import Example, Task
from repcl.errors import InvalidSetting, UnknownName
from repcl.training import Observer

Groups = Mapping[str, Sequence[str]]
"""New classes, and the old ones that each is made of."""


def learn(
    state: ClassifierState,
    examples: Sequence[Example],
    *,
    per_class: int,
    tolerance: float = TOLERANCE,
    observer: Observer | None = None,
) -> Update:
    """Learn examples of new and old classes, and say what happened to the held-out texts of old classes.

    Args:
        state: what is changed.
        examples: in an order that does not depend on the order given.
        per_class: how many texts of a class to hold out.
        tolerance: largest drop of accuracy that is not refused.
        observer: hears about progress.
    """
    method, old = state.method, set(state.method.classes)
    train, held = hold_out(examples, state.held_out, per_class=per_class, seed=method.seed)
    held_before = set(state.held_out)
    compared = [example for example in held if example in held_before]
    before = state.correct_before(compared)
    names = list(dict.fromkeys(example.label for example in train))
    method.observer = observer or Observer()
    try:
        method.learn(Task(tuple(names), train, []))
    finally:
        method.observer = Observer()
    for name in method.classes:
        state.origins.setdefault(name, (f"{state.updates_made}:{name}",))
    state.count_learned(train, old)
    state.held_out = held
    after = state.recalibrate()
    comparison = compare(
        [example.label for example in compared],
        before,
        [after[example] for example in compared],
        tolerance=tolerance,
    )
    return Update(
        action="learn",
        when=now(),
        new_classes=tuple(name for name in names if name not in old),
        more_of=tuple(name for name in names if name in old),
        examples=len(train),
        held_out=len(set(held) - held_before),
        accuracy=accuracy(list(after.values())),
        **dict(comparison),
    )


def rename_class(state: ClassifierState, old: str, new: str) -> Update:
    """Give a class another name."""
    _check_known(state, [old])
    if new in state.names:
        raise InvalidInput(
            f"There is a class {new!r} already: merge {old!r} into it, or choose another name."
        )
    _regroup(state, {new if name == old else name: [name] for name in state.method.classes})
    state.declared = tuple(new if name == old else name for name in state.declared)
    return Update(action="rename", when=now(), new_classes=(new,))


def merge_classes(
    state: ClassifierState, names: Sequence[str], into: str, *, per_class: int, tolerance: float = TOLERANCE
) -> Update:
    """Make one class of several; it stands where the first of them stood.

    Args:
        state: what is changed.
        names: the classes.
        into: the name of the union, a new one or one of theirs.
        per_class: held-out texts that a class may have.
        tolerance: largest drop of accuracy that is not worth a warning.
    """
    _check_known(state, names)
    known = state.method.classes
    parts = {*names, into} if into in known else set(names)
    if len(parts) < 2:
        raise InvalidInput(f"Expected two or more classes to merge, found {', '.join(map(repr, names))}.")
    groups: dict[str, list[str]] = {}
    for name in known:
        groups.setdefault(into if name in parts else name, []).append(name)
    answers, new_names = state.answers(state.held_out), _new_names(groups)
    before = {
        replace(example, label=new_names[example.label]): new_names[answer]
        for example, answer in zip(state.held_out, answers, strict=True)
    }
    _regroup(state, groups)
    state.declared = tuple(name for name in state.declared if name not in parts or name == into)
    own = [example for example in state.held_out if example.label == into]
    dropped = set(own[per_class:])
    state.held_out = [example for example in state.held_out if example not in dropped]
    held = state.held_out
    correct = [before[example] == example.label for example in held]
    return _compared("merge", state, held, correct, tolerance=tolerance, new_classes=(into,))


def remove_class(state: ClassifierState, name: str, *, tolerance: float = TOLERANCE) -> Update:
    """Forget a class: exemplars, held-out texts, classifier row and statistics; its name is not kept."""
    _check_known(state, [name])
    if len(state.method.classes) < 2:
        raise InvalidInput(f"{name!r} is the only class: delete the model instead.")
    kept = [example for example in state.held_out if example.label != name]
    before = state.correct_before(kept)
    state.method.forget_class(name)
    state.held_out = kept
    state.origins.pop(name)
    state.learned.pop(name, None)
    state.declared = tuple(other for other in state.declared if other != name)
    return _compared("remove", state, kept, before, tolerance=tolerance)


def absorb(
    state: ClassifierState, other: ClassifierState, *, per_class: int, tolerance: float = TOLERANCE
) -> Update:
    """Take over what another classifier learned; exact, for methods that can be united.

    Args:
        state: what is changed.
        other: stays as it is.
        per_class: held-out texts that a class may have.
        tolerance: largest drop of accuracy that is not worth a warning.
    """
    unite = getattr(state.method, "absorb", None)
    if unite is None:
        raise InvalidSetting(
            f"Method {state.name!r} cannot take over what another classifier learned: use instant, ncm, "
            "lda or refit, or learn the texts."
        )
    label_type([as_classes(other.names, other.label_type)[0].item()], state.label_type)
    held = list(state.held_out)
    old, before = set(state.method.classes), state.correct_before(held)
    unite(other.method)
    for name in state.method.classes:
        both = [*state.origins.get(name, ()), *other.origins.get(name, ())]
        state.origins[name] = tuple(dict.fromkeys(both))
    counts, kept = Counter(example.label for example in state.held_out), set(state.held_out)
    for example in other.held_out:
        if counts[example.label] < per_class and example not in kept:
            state.held_out.append(example)
            counts[example.label] += 1
            kept.add(example)
    new = tuple(name for name in state.method.classes if name not in old)
    return _compared("absorb", state, held, before, tolerance=tolerance, new_classes=new)


def _check_known(state: ClassifierState, names: Sequence[str]) -> None:
    for name in names:
        if name not in state.method.classes:
            raise UnknownName("class", name, sorted(state.method.classes))


def _regroup(state: ClassifierState, groups: Groups) -> None:
    state.method.regroup_classes(groups)
    state.correct = {}  # its examples have their old labels
    state.origins = {
        name: tuple(dict.fromkeys(origin for part in parts for origin in state.origins[part]))
        for name, parts in groups.items()
    }
    state.learned = {
        name: sum(state.learned[part] for part in parts)
        for name, parts in groups.items()
        if all(part in state.learned for part in parts)
    }
    new_names = _new_names(groups)
    renamed = (replace(example, label=new_names[example.label]) for example in state.held_out)
    state.held_out = list(dict.fromkeys(renamed))


def _new_names(groups: Groups) -> dict[str, str]:
    """By the name of each old class, that of the new one."""
    return {part: new for new, parts in groups.items() for part in parts}


def _compared(
    action: Literal["merge", "remove", "absorb"],
    state: ClassifierState,
    held: Sequence[Example],
    before: Sequence[bool],
    *,
    tolerance: float,
    new_classes: tuple[str, ...] = (),
) -> Update:
    """The update, with what it did to the held-out texts that are left."""
    after = state.recalibrate()
    labels = [example.label for example in held]
    comparison = compare(labels, before, [after[example] for example in held], tolerance=tolerance)
    return Update(
        action=action,
        when=now(),
        new_classes=new_classes,
        accuracy=accuracy(list(after.values())),
        **dict(comparison),
    )
