"""The updates of a classifier: learn, forget, rename, merge, remove, absorb; all compare before and after."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal

from repcl.classifier.arrivals import Arrival, as_arrivals, doubtful_texts, least_usual, margins_of
from repcl.classifier.calibration import renamed
from repcl.classifier.corrections import (
    as_learned,
    compare_with_known,
    leaves_no_trace,
    list_learned,
    plan_removal,
    recognized,
    texts_left,
)
from repcl.classifier.guard import TOLERANCE, accuracy, compare, hold_out, keep_words, lost_texts
from repcl.classifier.inputs import InvalidInput, as_classes, label_type
from repcl.classifier.known import unlabeled
from repcl.classifier.state import Checked, Checks, ClassifierState, spread
from repcl.classifier.store.records import Comparison, Update, now
from repcl.classifier.wording import REMOVED
from repcl.data import Example, Task
from repcl.errors import InvalidSetting, UnknownName
from repcl.methods.frozen.instant import Instant
from repcl.methods.frozen.method import FrozenMethod
from repcl.training import Observer

Groups = Mapping[str, Sequence[str]]
"""New classes, and the old ones that each is made of."""


def learn(
    state: ClassifierState,
    examples: Sequence[Example],
    *,
    per_class: int,
    keeps_hashes: bool = True,
    tolerance: float = TOLERANCE,
    observer: Observer | None = None,
) -> Update:
    """Learn examples of new and old classes, and say what happened to the held-out texts of old classes.

    A text that is known under another label loses that one.

    Args:
        state: what is changed.
        examples: in an order that does not depend on the order given.
        per_class: how many texts of a class to hold out; with 0 none is, also not of those held out before.
        keeps_hashes: whether hashes may be kept, by which texts are recognized when they come again.
        tolerance: largest drop of accuracy that is not refused.
        observer: hears about progress.
    """
    method, old = state.method, set(state.method.classes)
    lesson = compare_with_known(state, examples)
    outdated = as_learned(state, lesson.outdated.learned)
    is_exact = method.keeps_everything or leaves_no_trace(state, lesson.outdated)
    held_before = [example for example in state.held_out if example not in lesson.outdated.held_out]
    if not per_class and not method.takes_back_exactly:
        held_before = []  # those that come again are learned like all others
    never = lesson.corrections | lesson.repeated
    divide = keep_words if state.leaves_out else hold_out
    train, held = divide(examples, held_before, per_class=per_class, seed=method.seed, never=never)
    repeated = lesson.repeated if method.takes_back_exactly else frozenset()
    train = [example for example in train if example not in repeated]
    train, held = _with_last_texts(state, outdated, train, held)
    if not per_class:
        train, held = _without_held_out(state, train, held)
    before = state.checks_before()
    suspected = _check_suspects(state, train, outdated)
    fresh = [example for example in dict.fromkeys(train) if example not in never]
    arrived = [] if state.leaves_out else _asked_before(state, fresh)
    names = list(dict.fromkeys(example.label for example in train))
    method.take_back(outdated)
    if train:
        _teach(state, train, observer)
    elif outdated:
        method.regroup_classes({name: [name] for name in method.classes})
    list_learned(state, train, outdated, keeps_hashes=keeps_hashes)
    is_new = frozenset(held).difference(state.held_out)
    state.held_out = held
    emptied = _emptied(state, lesson.outdated.labels)
    _leave_out(state, emptied)
    after = state.recalibrate()
    compared = _both(before, after)
    if state.leaves_out and not state.is_multilabel:
        arrived = _asked_left_out(state, fresh, compared)
    else:
        arrived += _asked_after(state, before, after, set(names), compared)
    comparison = _comparison(
        state,
        before,
        after,
        more=(suspected, state.check_again(suspected.keys())),
        new_classes=set(names) - old,
        arrived=arrived,
        tolerance=tolerance,
    )
    return Update(
        action="learn",
        when=now(),
        new_classes=tuple(name for name in names if name not in old),
        more_of=tuple(name for name in names if name in old),
        examples=len(set(map(unlabeled, train))) if state.is_multilabel else len(train),
        held_out=0 if state.leaves_out else len(is_new),
        accuracy=accuracy([check.is_correct for check in after.values()]),
        corrected=len(lesson.outdated.texts),
        repeated=len(repeated),
        emptied=len(emptied),
        is_exact=is_exact,
        recognized=recognized(state, keeps_hashes=keeps_hashes),
        is_balanced=isinstance(method, Instant) and method.is_balanced,
        **dict(comparison),
    )


def forget_texts(
    state: ClassifierState,
    examples: Sequence[Example],
    *,
    keeps_hashes: bool = True,
    tolerance: float = TOLERANCE,
) -> Update:
    """Take back texts that were learned or held out; a class that loses its last one is removed.

    Args:
        state: what is changed.
        examples: the texts; one without a label goes under all labels that it is known by.
        keeps_hashes: whether hashes may be kept.
        tolerance: largest drop of accuracy that is not worth a warning.
    """
    method = state.method
    _check_known(state, list(dict.fromkeys(example.label for example in examples if example.label)))
    removal = plan_removal(state, examples)
    gone = [*as_learned(state, removal.known.learned), *removal.claimed]
    is_exact = leaves_no_trace(state, removal.known) and (method.takes_back_exactly or not removal.claimed)
    held = [example for example in state.held_out if example not in removal.known.held_out]
    last, held = _with_last_texts(state, gone, [], held)
    left = texts_left(state, gone)
    labels = {*removal.known.labels, *(example.label for example in gone)}
    stay = {example.label for example in [*held, *last]}
    learned = state.texts_of_classes()
    emptied = [name for name in labels - stay if left.get(name, learned.get(name)) == 0]
    if any(count < 0 for count in left.values()):
        name = min(left, key=lambda one: left[one])
        raise InvalidInput(f"More texts of {name!r} are to be forgotten than were learned: check the labels.")
    if len(emptied) == len(method.classes):
        raise InvalidInput("These are all texts that the model has learned: delete the model instead.")
    before = state.checks_before()
    _take_back(state, gone[: len(gone) - len(removal.claimed)], removal.claimed)
    list_learned(state, (), removal.known.learned, keeps_hashes=keeps_hashes)
    state.held_out = held
    _leave_out(state, emptied, always=True)
    state.declared = tuple(name for name in state.declared if name not in emptied)
    if last:
        _teach(state, last, None)
        list_learned(state, last, (), keeps_hashes=keeps_hashes)
    return _compared(
        "forget",
        state,
        before,
        tolerance=tolerance,
        forgotten=removal.texts,
        not_found=removal.not_found,
        unchecked=removal.unchecked,
        emptied=len(emptied),
        is_exact=is_exact,
        recognized=recognized(state, keeps_hashes=keeps_hashes),
    )


def rename_class(state: ClassifierState, old: str, new: str) -> Update:
    """Give a class another name; that of a class without texts, which was only announced, is free."""
    is_announced = _is_announced(state, old)
    if not is_announced:
        _check_known(state, [old])
    if new in (state.names if is_announced else state.method.classes):
        advice = "choose" if is_announced else f"merge {old!r} into it, or choose"
        raise InvalidInput(f"There is a class {new!r} already: {advice} another name.")
    if not is_announced:
        _regroup(state, {new if name == old else name: [name] for name in state.method.classes})
        state.calibration = renamed(state.calibration, old, new)
    state.declared = tuple(dict.fromkeys(new if name == old else name for name in state.declared))
    return Update(action="rename", when=now(), new_classes=(new,))


def merge_classes(
    state: ClassifierState,
    names: Sequence[str],
    into: str,
    *,
    per_class: int,
    keeps_hashes: bool = True,
    tolerance: float = TOLERANCE,
) -> Update:
    """Make one class of several; it stands where the first of them stood.

    Args:
        state: what is changed.
        names: the classes.
        into: the name of the union, a new one or one of theirs.
        per_class: held-out texts that a class may have.
        keeps_hashes: whether hashes may be kept.
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
    before = _renamed(state.checks_before(), _new_names(groups))
    _regroup(state, groups)
    state.declared = tuple(name for name in state.declared if name not in parts or name == into)
    own = [example for example in state.held_out if example.label == into]
    state.held_out = [example for example in state.held_out if example.label != into]
    _hold_out_more(state, own, per_class=per_class, keeps_hashes=keeps_hashes)
    update = _compared("merge", state, before, tolerance=tolerance)
    return update.model_copy(update={"new_classes": (into,)})  # a name; there are no new texts


def remove_class(state: ClassifierState, name: str, *, tolerance: float = TOLERANCE) -> Update:
    """Forget a class: exemplars, held-out texts, classifier row and statistics; its name is not kept."""
    if _is_announced(state, name):
        state.declared = tuple(other for other in state.declared if other != name)
        return Update(action="remove", when=now())
    _check_known(state, [name])
    if len(state.method.classes) < 2:
        raise InvalidInput(f"{name!r} is the only class: delete the model instead.")
    before = {key: check for key, check in state.checks_before().items() if check.label != name}
    state.method.forget_class(name)
    state.held_out = [example for example in state.held_out if example.label != name]
    origins = state.origins.pop(name)
    state.known.regroup({other: [other] for other in state.method.classes})
    state.declared = tuple(other for other in state.declared if other != name)
    _drop_names(state, {name, *_first_names(origins)})
    return _compared("remove", state, before, tolerance=tolerance)


def absorb(
    state: ClassifierState,
    other: ClassifierState,
    *,
    per_class: int,
    keeps_hashes: bool = True,
    tolerance: float = TOLERANCE,
) -> Update:
    """Take over what another classifier learned; exact, for methods that can be united.

    Args:
        state: what is changed.
        other: stays as it is.
        per_class: held-out texts that a class may have.
        keeps_hashes: whether hashes may be kept.
        tolerance: largest drop of accuracy that is not worth a warning.
    """
    unite = getattr(state.method, "absorb", None)
    if unite is None:
        raise InvalidSetting(
            f"Method {state.name!r} cannot take over what another classifier learned: use instant, ncm, "
            "lda or refit, or learn the texts."
        )
    label_type([as_classes(other.names, other.label_type)[0].item()], state.label_type)
    old, before = set(state.method.classes), state.checks_before()
    unite(other.method)
    for name in state.method.classes:
        both = [*state.origins.get(name, ()), *other.origins.get(name, ())]
        state.origins[name] = tuple(dict.fromkeys(both))
    state.known.absorb(other.known)
    _hold_out_more(state, other.held_out, per_class=per_class, keeps_hashes=keeps_hashes)
    new = tuple(name for name in state.method.classes if name not in old)
    return _compared("absorb", state, before, tolerance=tolerance, new_classes=new)


def _teach(state: ClassifierState, train: Sequence[Example], observer: Observer | None) -> None:
    """Let the method learn examples, and give new classes their origins."""
    method, names = state.method, dict.fromkeys(example.label for example in train)
    method.observer = observer or Observer()
    try:
        method.learn(Task(tuple(names), list(train), []))
    finally:
        method.observer = Observer()
    for name in method.classes:
        state.origins.setdefault(name, (f"{state.updates_made}:{name}",))


def _with_last_texts(
    state: ClassifierState, gone: Sequence[Example], train: Sequence[Example], held: Sequence[Example]
) -> tuple[list[Example], list[Example]]:
    """What to learn and to hold out; a class that loses all it was learned from learns its held-out texts.

    Trained methods know a class by their weights, too, and go on holding its texts out.
    """
    if not state.method.takes_back_exactly or state.leaves_out:
        return list(train), list(held)
    taught = {example.label for example in train}
    bare = {name for name, left in texts_left(state, gone).items() if left == 0} - taught
    last = [example for example in held if example.label in bare]
    return [*train, *last], [example for example in held if example.label not in bare]


def _without_held_out(
    state: ClassifierState, train: Sequence[Example], held: Sequence[Example]
) -> tuple[list[Example], list[Example]]:
    """What to learn, and nothing to hold out; no learner that can be corrected exactly loses a text by it."""
    return [*train, *([] if state.leaves_out else held)], []


def _hold_out_more(
    state: ClassifierState, more: Iterable[Example], *, per_class: int, keeps_hashes: bool
) -> None:
    """Hold out texts that were held out for a class or classifier that is part of this one now.

    A text that the other part has learned is held out no more. Learners that can be corrected exactly learn
    the texts of a class beyond `per_class`, so that none is lost.
    """

    def may_be_held_out(example: Example) -> bool:
        return state.leaves_out or example not in state.known

    held = dict.fromkeys(filter(may_be_held_out, state.held_out))
    counts, rest = Counter(example.label for example in held), []
    for example in filter(may_be_held_out, more):
        if example in held:
            continue
        if counts[example.label] < per_class:
            held[example] = None
            counts[example.label] += 1
        else:
            rest.append(example)
    state.held_out = list(held)
    taught = rest if state.method.takes_back_exactly and not state.leaves_out else []
    if taught:
        _teach(state, taught, None)
    list_learned(state, taught, (), keeps_hashes=keeps_hashes)


def _take_back(state: ClassifierState, known: Sequence[Example], claimed: Sequence[Example]) -> None:
    """Let the method take examples back: those that it is known to have learned, and others."""
    method = state.method
    if isinstance(method, FrozenMethod):
        method.take_back(claimed, are_known=False)  # first, for it may be refused
    method.take_back(known)


def _emptied(state: ClassifierState, names: Iterable[str]) -> list[str]:
    """Those of the classes that have no text any more."""
    held, learned = {example.label for example in state.held_out}, state.texts_of_classes()
    return [name for name in names if name not in held and learned.get(name) == 0]


def _leave_out(state: ClassifierState, names: Sequence[str], *, always: bool = False) -> None:
    """Drop classes that have no text any more.

    Args:
        state: what is changed.
        names: of the classes.
        always: also where there are none, to settle what was taken back.
    """
    if not names and not always:
        return
    groups = {name: [name] for name in state.method.classes if name not in names}
    state.method.regroup_classes(groups)
    state.known.regroup(groups)
    for name in names:
        state.origins.pop(name, None)


def _drop_names(state: ClassifierState, removed: Collection[str]) -> None:
    """Take the names of a removed class, and all others that are gone, out of updates not saved yet."""
    kept = {*state.names, *_first_names(chain.from_iterable(state.origins.values()))}

    def without(update: Update) -> Update:
        changed = (name for change in update.regressed for name in (change.name, change.taken_by) if name)
        gone = {*removed, *update.new_classes, *update.more_of, *changed} - kept
        reasons = update.reasons
        for name in gone:
            for words in (f"class {name!r}", repr(name)):
                reasons = tuple(reason.replace(words, REMOVED) for reason in reasons)
        left = {
            "new_classes": tuple(name for name in update.new_classes if name in kept),
            "more_of": tuple(name for name in update.more_of if name in kept),
            "regressed": tuple(
                change.model_copy(update={"taken_by": None}) if change.taken_by in gone else change
                for change in update.regressed
                if change.name in kept
            ),
            "reasons": reasons,
            "lost_texts": (),
            "doubtful_texts": (),
        }
        return update.model_copy(update=left)

    state.updates[:] = map(without, state.updates)


def _first_names(origins: Iterable[str]) -> set[str]:
    """The names that classes were first learned under."""
    return {origin.partition(":")[2] for origin in origins}


def _is_announced(state: ClassifierState, name: str) -> bool:
    """Whether a class was announced and has no text yet."""
    return name in state.declared and name not in state.method.classes


def _check_known(state: ClassifierState, names: Sequence[str]) -> None:
    for name in names:
        if name not in state.method.classes:
            raise UnknownName("class", name, sorted(state.method.classes))


def _regroup(state: ClassifierState, groups: Groups) -> None:
    state.method.regroup_classes(groups)
    state.known.regroup(groups)
    state.checked = None  # its texts have their old labels
    state.origins = {
        name: tuple(dict.fromkeys(origin for part in parts for origin in state.origins[part]))
        for name, parts in groups.items()
    }
    new_names = _new_names(groups)
    renamed = (replace(example, label=new_names[example.label]) for example in state.held_out)
    state.held_out = list(dict.fromkeys(renamed))


def _new_names(groups: Groups) -> dict[str, str]:
    """By the name of each old class, that of the new one."""
    return {part: new for new, parts in groups.items() for part in parts}


def _renamed(checks: Checks, new_names: Mapping[str, str]) -> Checks:
    """Checks with the new names of their classes."""
    return {
        _renamed_key(key, new_names): Checked(new_names[check.label], new_names[check.answer])
        for key, check in checks.items()
    }


def _renamed_key(key: Hashable, new_names: Mapping[str, str]) -> Hashable:
    if isinstance(key, Example):
        return replace(key, label=new_names[key.label])
    return (key[0], new_names[key[1]]) if isinstance(key, tuple) else key


def _compared(
    action: Literal["merge", "remove", "absorb", "forget"],
    state: ClassifierState,
    before: Checks,
    *,
    tolerance: float,
    new_classes: tuple[str, ...] = (),
    **more: Any,
) -> Update:
    """The update, with what it did to the checked texts that are left."""
    after = state.recalibrate()
    arrived = _asked_after(state, before, after, new_classes, _both(before, after))
    comparison = _comparison(
        state, before, after, new_classes=new_classes, arrived=arrived, tolerance=tolerance
    )
    return Update(
        action=action,
        when=now(),
        new_classes=new_classes,
        accuracy=accuracy([check.is_correct for check in after.values()]),
        **more,
        **dict(comparison),
    )


def _comparison(
    state: ClassifierState,
    before: Checks,
    after: Checks,
    *,
    more: tuple[Checks, Checks] = ({}, {}),
    new_classes: Collection[str],
    arrived: Sequence[Arrival],
    tolerance: float,
) -> Comparison:
    """What the guard says about texts of old classes, and a few of those that were lost.

    Args:
        state: after the update.
        before: the answers before it.
        after: the answers after it.
        more: the answers before and after it to more texts of suspects.
        new_classes: the classes that it brought.
        arrived: the texts that it brought.
        tolerance: the share of texts that may be lost without a question.
    """
    even = _both(before, after)
    both = [*even, *_both(*more)]
    before, after = {**before, **more[0]}, {**after, **more[1]}
    found = compare(
        [after[key].label for key in both],
        [before[key].answer for key in both],
        [after[key].answer for key in both],
        even=len(even),
        new_classes=new_classes,
        incoming=arrived,
        tolerance=tolerance,
    )
    words = state.words({change.name for change in found.regressed})
    shown = [key for key in both if key in words]
    lost = lost_texts(
        [words[key] for key in shown],
        [before[key].answer for key in shown],
        [after[key].answer for key in shown],
    )
    return found.model_copy(update={"lost_texts": lost, "doubtful_texts": doubtful_texts(arrived)})


def _both(before: Checks, after: Checks) -> list[Hashable]:
    """The texts that were asked about before and after an update, under the same label."""
    return [key for key, check in before.items() if key in after and after[key].label == check.label]


def _check_suspects(state: ClassifierState, train: Sequence[Example], outdated: Sequence[Example]) -> Checks:
    """More answers to texts of old classes that an update may harm, before it.

    Suspects are classes that it touches, and those that its texts get from what was learned so far.
    """
    if not state.can_check_more:
        return {}
    touched = {example.label for example in [*train, *outdated]}
    return state.check_more(touched.union(state.answers(spread(train))))


def _asked_before(state: ClassifierState, fresh: Sequence[Example]) -> list[Arrival]:
    """New texts of known classes, by a learner that has not learned them yet."""
    known = set(state.method.classes)
    asked = spread([example for example in fresh if example.label in known])
    if not asked or not state.held_out:
        return []
    column = {name: index for index, name in enumerate(state.method.classes)}
    held = spread(state.held_out)
    margins = margins_of(state.scores(held), [column[example.label] for example in held])
    return as_arrivals(asked, state.scores(asked), state.method.classes, least_usual(margins.tolist()))


def _asked_left_out(
    state: ClassifierState, fresh: Sequence[Example], compared: Sequence[Hashable]
) -> list[Arrival]:
    """New texts, each by what was learned from all others; `compared` are texts that were learned before."""
    if not fresh or not isinstance(state.method, FrozenMethod):
        return []
    asked = spread(fresh)
    scores = state.method.left_out_examples(asked).double().numpy()
    least = least_usual(state.margins[key] for key in compared)
    return as_arrivals(asked, scores, state.method.classes, least)


def _asked_after(
    state: ClassifierState,
    before: Checks,
    after: Checks,
    taught: Collection[str],
    compared: Sequence[Hashable],
) -> list[Arrival]:
    """Checked texts that came with an update, by a learner that did not learn them."""
    margins = state.margins
    least = least_usual(margins[key] for key in compared if key in margins)
    return [
        Arrival(
            check.label,
            check.answer,
            margins.get(key, 0.0) < least,
            key.text if isinstance(key, Example) else "",
            margins.get(key, 0.0),
        )
        for key, check in after.items()
        if key not in before and check.label in taught
    ]
