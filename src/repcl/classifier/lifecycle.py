"""The life of a class: another name, union with others, removal, and what a twin has learned."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from repcl.classifier.guard import TOLERANCE, Update, accuracy, compare, now
from repcl.classifier.inputs import InvalidInput, as_classes, label_type
from repcl.classifier.knowledge import Knowledge
from repcl.classifier.records import Revision
from repcl.data import Example
from repcl.errors import InvalidSetting, UnknownName

Groups = Mapping[str, Sequence[str]]
"""New classes, and the old ones that each is made of."""


def rename_class(knowledge: Knowledge, old: str, new: str) -> Update:
    """Give a class another name."""
    _check_known(knowledge, [old])
    if new in knowledge.names:
        raise InvalidInput(
            f"There is a class {new!r} already: merge {old!r} into it, or choose another name."
        )
    _regroup(knowledge, {new if name == old else name: [name] for name in knowledge.method.classes})
    knowledge.declared = tuple(new if name == old else name for name in knowledge.declared)
    return Update(action="rename", when=now(), new_classes=(new,))


def merge_classes(
    knowledge: Knowledge, names: Sequence[str], into: str, *, holdout: int, tolerance: float = TOLERANCE
) -> Update:
    """Make one class of several; it stands where the first of them stood.

    Args:
        knowledge: what is changed.
        names: the classes.
        into: the name of the union, a new one or one of theirs.
        holdout: held-back texts that a class may have.
        tolerance: largest drop of accuracy that is not worth a warning.
    """
    _check_known(knowledge, names)
    known = knowledge.method.classes
    parts = {*names, into} if into in known else set(names)
    if len(parts) < 2:
        raise InvalidInput(f"Expected two or more classes to merge, found {', '.join(map(repr, names))}.")
    groups: dict[str, list[str]] = {}
    for name in known:
        groups.setdefault(into if name in parts else name, []).append(name)
    answers = knowledge.answers(knowledge.held_back)
    before = {
        _renamed(example, groups): _new_name(answer, groups)
        for example, answer in zip(knowledge.held_back, answers, strict=True)
    }
    _regroup(knowledge, groups)
    knowledge.declared = tuple(name for name in knowledge.declared if name not in parts or name == into)
    own = [example for example in knowledge.held_back if example.label == into]
    dropped = set(own[holdout:])
    knowledge.held_back = [example for example in knowledge.held_back if example not in dropped]
    held = knowledge.held_back
    right = [before[example] == example.label for example in held]
    return _compared("merge", knowledge, held, right, tolerance=tolerance, new_classes=(into,))


def remove_class(knowledge: Knowledge, name: str, *, tolerance: float = TOLERANCE) -> Update:
    """Forget a class: exemplars, held-back texts, classifier row and statistics; its name is not kept."""
    _check_known(knowledge, [name])
    if len(knowledge.method.classes) < 2:
        raise InvalidInput(f"{name!r} is the only class: delete the model instead.")
    kept = [example for example in knowledge.held_back if example.label != name]
    before = knowledge.right_before(kept)
    knowledge.method.forget_class(name)
    knowledge.held_back = kept
    knowledge.origins.pop(name)
    knowledge.declared = tuple(other for other in knowledge.declared if other != name)
    return _compared("remove", knowledge, kept, before, tolerance=tolerance)


def absorb(knowledge: Knowledge, other: Knowledge, *, holdout: int, tolerance: float = TOLERANCE) -> Update:
    """Also know what a classifier taught apart has learned; exact, for methods that can be united."""
    unite = getattr(knowledge.method, "absorb", None)
    if unite is None:
        raise InvalidSetting(
            f"Method {knowledge.name!r} cannot take over what another classifier learned: use instant, ncm, "
            "lda or refit, or learn the texts."
        )
    label_type([as_classes(other.names, other.label_type)[0].item()], knowledge.label_type)
    held = list(knowledge.held_back)
    old, before = list(knowledge.method.classes), knowledge.right_before(held)
    unite(other.method)
    for name in knowledge.method.classes:
        both = [*knowledge.origins.get(name, ()), *other.origins.get(name, ())]
        knowledge.origins[name] = tuple(dict.fromkeys(both))
    for example in other.held_back:
        own = [one for one in knowledge.held_back if one.label == example.label]
        if len(own) < holdout and example not in own:
            knowledge.held_back.append(example)
    new = tuple(name for name in knowledge.method.classes if name not in old)
    return _compared("absorb", knowledge, held, before, tolerance=tolerance, new_classes=new)


def holders(revisions: Sequence[Revision], name: str, origins: Sequence[str]) -> list[int]:
    """The revisions that hold a class, under this name or one it had before."""
    wanted = set(origins)
    return [
        revision.number
        for revision in revisions
        if any(record.name == name or wanted & set(record.origins) for record in revision.contents.classes)
    ]


def _check_known(knowledge: Knowledge, names: Sequence[str]) -> None:
    for name in names:
        if name not in knowledge.method.classes:
            raise UnknownName("class", name, sorted(knowledge.method.classes))


def _regroup(knowledge: Knowledge, groups: Groups) -> None:
    knowledge.method.regroup_classes(groups)
    knowledge.right_now = {}  # its examples have their old labels
    knowledge.origins = {
        name: tuple(dict.fromkeys(origin for part in parts for origin in knowledge.origins[part]))
        for name, parts in groups.items()
    }
    knowledge.held_back = list(dict.fromkeys(_renamed(example, groups) for example in knowledge.held_back))


def _new_name(name: str, groups: Groups) -> str:
    return next(new for new, parts in groups.items() if name in parts)


def _renamed(example: Example, groups: Groups) -> Example:
    return replace(example, label=_new_name(example.label, groups))


def _compared(
    action: Literal["merge", "remove", "absorb"],
    knowledge: Knowledge,
    held: Sequence[Example],
    before: Sequence[bool],
    *,
    tolerance: float,
    new_classes: tuple[str, ...] = (),
) -> Update:
    """The update, with what it did to the held-back texts that are left."""
    after = knowledge.recalibrate()
    labels = [example.label for example in held]
    fields = compare(labels, before, [after[example] for example in held], tolerance=tolerance)
    fields["accuracy"] = accuracy(list(after.values()))
    return Update(action=action, when=now(), new_classes=new_classes, **fields)
