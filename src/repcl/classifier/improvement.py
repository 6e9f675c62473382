"""Improvement: from a learner on a frozen encoder to a duet, whose other half is trained on the texts kept.

Of every text that was learned the embedding is kept; those become the frozen half, and nothing is lost. Word
for word only a few texts of each class are kept, unless the user gives them again; on these a second encoder
is trained. What the model and the duet answer to texts that neither has learned decides which is used.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, cast

import torch
from torch import Tensor

from repcl.classifier.guard import accuracy, compare, hold_out
from repcl.classifier.inputs import InvalidInput
from repcl.classifier.state import ClassifierState, method_settings
from repcl.classifier.store.records import Update, now
from repcl.data import Example, Task
from repcl.errors import InvalidSetting
from repcl.methods import build_method
from repcl.methods.base import BEFORE_THE_FIRST_TASK, seeded
from repcl.methods.build import method_class
from repcl.methods.duet import FROZEN, Duet
from repcl.methods.frozen.instant import InstantSettings
from repcl.methods.frozen.left_out import row_keys, times_of
from repcl.methods.frozen.method import FrozenMethod
from repcl.methods.frozen.reader import FrozenSettings
from repcl.methods.settings import make_settings
from repcl.model import Encoder
from repcl.training import Observer

DUET = "duet@statistics"
FEWEST_TEXTS = 3
"""Of each class, on average, to train on; fewer teach an encoder nothing."""
WORTH_ASKING = 300
"""Texts learned from which on a user is told about it."""
ASKED = 32
PASSES = 40
"""Forward passes that training takes for each text: five epochs, about eight for a step of RepCL."""


@dataclass(frozen=True)
class Limits:
    """How many texts a model may keep.

    Attributes:
        memory_per_class: exemplars of each class.
        memory_total: exemplars of all classes; None for any number.
        holdout_per_class: texts of each class that are held out to compare by.
    """

    memory_per_class: int
    memory_total: int | None
    holdout_per_class: int

    def check(self) -> None:
        """Refuse limits under which there cannot be a duet."""
        if 0 in (self.memory_per_class, self.memory_total):
            raise InvalidSetting(
                "Expected a model that may keep exemplars, found memory_per_class or memory_total = 0: a "
                "duet learns from them. Teach a new model that may keep some."
            )
        if not self.holdout_per_class:
            raise InvalidSetting(
                "Expected holdout_per_class of at least 1, found 0: held-out texts decide whether a duet is "
                "used. Set it higher with the next texts to learn."
            )


@dataclass(frozen=True)
class Improved:
    """A duet made from a model, and what it did to the texts that were held out."""

    state: ClassifierState
    settings: Mapping[str, Any]
    update: Update


def check_improvable(state: ClassifierState) -> FrozenMethod:
    """The learner that a duet can be made from; an error says why there is none."""
    method = state.method
    if not isinstance(method, FrozenMethod):
        raise InvalidSetting(
            f"Only a model whose encoder is frozen can be improved, and {state.name!r} trains its own: teach "
            "a new model with method duet."
        )
    if not method.keeps_rows:
        raise InvalidSetting(
            "A duet is made from the embeddings of all texts, and this model keeps none (keep_embeddings = "
            "false): teach a new model with method duet."
        )
    if method.is_multilabel:
        raise InvalidSetting("A duet gives each text one label, and this model several (multilabel).")
    return method


def training_texts(state: ClassifierState, given: Sequence[Example] = ()) -> list[Example]:
    """What a second encoder can be trained on: texts kept word for word, and given ones that were learned."""
    method = check_improvable(state)
    is_known = method.may_have_learned(given)
    learned = [example for example, is_one in zip(given, is_known, strict=True) if is_one]
    return list(dict.fromkeys([*state.kept_texts(), *learned]))


def expected_seconds(state: ClassifierState, texts: Sequence[Example]) -> float:
    """How long training would take here: by the time that encoding a few of the texts takes."""
    method = check_improvable(state)
    few = list(texts)[:ASKED]
    started = time.perf_counter()
    method.embedder.encode(few)
    return (time.perf_counter() - started) / max(1, len(few)) * len(texts) * PASSES


def improve(
    state: ClassifierState,
    given: Sequence[Example],
    *,
    settings: Mapping[str, Any],
    preset: str,
    limits: Limits,
    tolerance: float,
    observer: Observer | None = None,
) -> Improved:
    """A duet that knows all that a model learned; the model stays as it is.

    Args:
        state: the model.
        given: texts that it learned, to train on beside those that it keeps.
        settings: what to change about the trained half.
        preset: where its settings come from.
        limits: of what it keeps; texts that are held out are also what the two are compared by.
        tolerance: share of the held-out texts that may be lost.
        observer: hears about progress.
    """
    method = check_improvable(state)
    limits.check()
    train, held = _divided(state, training_texts(state, given), limits.holdout_per_class)
    before = _answers_before(state, method, held)
    wanted = {**_carried(method), **settings}
    chosen = method_settings(
        DUET,
        state.kind,
        preset=preset,
        settings=wanted,
        memory_per_class=limits.memory_per_class,
        memory_total=limits.memory_total,
        holdout_per_class=limits.holdout_per_class,
    )
    duet = _trained_duet(method, chosen, train, observer or Observer())
    unlearned = held if state.leaves_out else []  # else they never were learned
    _take_over(duet, method, unlearned)
    known = deepcopy(state.known)
    known.discard(unlearned)
    better = replace(
        state,
        method=duet,
        name="duet",
        held_out=held,
        known=known,
        checked=None,
        updates=[*state.updates],
    )
    after = better.recalibrate()
    comparison = compare(
        [one.label for one in held], before, [after[one].answer for one in held], tolerance=tolerance
    )
    update = Update(
        action="improve",
        when=now(),
        examples=len(train),
        held_out=len(held),
        accuracy=accuracy([check.is_correct for check in after.values()]),
        **dict(comparison),
    )
    return Improved(better, wanted, _refused_unless_better(update))


def _divided(
    state: ClassifierState, texts: Sequence[Example], per_class: int
) -> tuple[list[Example], list[Example]]:
    """Texts to train on, and texts to compare by; refused where there are too few of either.

    A model that cannot leave texts out in their turn is asked only about those that it holds out.
    """
    if state.leaves_out:
        train, held = hold_out(texts, [], per_class=per_class, seed=state.method.seed)
    else:
        is_held = set(state.held_out)
        train, held = [example for example in texts if example not in is_held], list(state.held_out)
    classes, found = state.method.classes, Counter(example.label for example in train)
    missing = [name for name in classes if not found[name]]
    if not held and not state.leaves_out:
        raise InvalidInput(
            "Expected held-out texts to compare by, found none: this model has learned every text. Teach it "
            "more texts with holdout_per_class of at least 1, at least five of a class at once."
        )
    if len(classes) < 2 or missing or len(train) < FEWEST_TEXTS * len(classes) or not held:
        raise InvalidInput(
            f"Expected at least {FEWEST_TEXTS} texts of each of {len(classes)} classes to train on and a few "
            f"to compare by, found {len(train)} and {len(held)} that are kept word for word or were given: "
            "give the texts that the model learned (`repcl improve MODEL --data FILE`, or improve(X, y))."
        )
    return train, held


def _answers_before(state: ClassifierState, method: FrozenMethod, held: Sequence[Example]) -> list[str]:
    """What the model answers to the held-out texts, each as if it had not been learned."""
    if not state.leaves_out:
        return state.answers(held)
    found, labels = _rows_kept(method, held), method.indices(held)
    scores = method.left_out_scores(method.ledger.kept.rows[found], labels, _copies(method, found))
    return [method.classes[best] for best in scores.argmax(dim=1).tolist()]


def _rows_kept(method: FrozenMethod, learned: Sequence[Example]) -> Tensor:
    """Where the embeddings of learned texts are kept."""
    found = method.find_kept(learned, are_known=True)
    return torch.tensor([index for index in found if index is not None], dtype=torch.int64)


def _copies(method: FrozenMethod, indices: Tensor) -> Tensor:
    """How many times each of these texts was learned."""
    kept = method.ledger.kept
    return times_of(row_keys(kept.rows), kept.labels, indices)


def _carried(method: FrozenMethod) -> dict[str, Any]:
    """What the frozen half takes over from the learner's settings."""
    known = InstantSettings if isinstance(method.settings, InstantSettings) else FrozenSettings
    values, (_, fixed) = method.settings.model_dump(mode="json"), FROZEN["vote"]
    return {key: values[key] for key in known.model_fields if key not in fixed}


def _trained_duet(
    method: FrozenMethod, settings: Mapping[str, Any], train: Sequence[Example], observer: Observer
) -> Duet:
    """A duet on the learner's encoder, whose trained half has learned the texts as one task."""
    chosen, kind = method_class("duet"), method.encoder.readout.kind
    readout = chosen.readout(make_settings(chosen.settings_class(settings), settings), kind)
    old = method.encoder
    with seeded(method.seed, BEFORE_THE_FIRST_TASK, old.device):  # markers are drawn
        encoder = Encoder(
            deepcopy(old.backbone).requires_grad_(True),
            deepcopy(old.tokenizer),
            readout,
            name=old.name,
            processes=old.processes,
        ).to(old.device)
    duet = cast(
        Duet,
        build_method("duet", kind, encoder=encoder, settings=settings, seed=method.seed, device=old.device),
    )
    duet.trained.observer = observer
    duet.trained.learn(Task(tuple(method.classes), list(train), []))
    duet.trained.observer = Observer()
    return duet.eval()


def _take_over(duet: Duet, method: FrozenMethod, held: Sequence[Example]) -> None:
    """Give the frozen half all that the learner knows, but for the texts that are held out."""
    duet.resume(method.classes, 1)
    frozen = cast(FrozenMethod, duet.frozen["vote"])
    kept = method.ledger.kept
    frozen.ledger.grow_to(len(method.classes))
    frozen.ledger.book_in(kept.rows.clone(), kept.labels.long(), frozen.features)
    if held:
        copies = _copies(method, _rows_kept(method, held)).int().tolist()
        frozen.take_back([one for one, times in zip(held, copies, strict=True) for _ in range(times)])
    frozen.regroup_classes({name: [name] for name in method.classes})


def _refused_unless_better(update: Update) -> Update:
    """The update, refused if it answers no more of the held-out texts right."""
    gained = (update.accuracy_after or 0.0) - (update.accuracy_before or 0.0)
    if update.is_refused or gained > 0:
        return update
    reason = (
        f"the duet gets {update.accuracy_after or 0.0:.1%} of {update.compared} held-out texts right, the "
        f"model {update.accuracy_before or 0.0:.1%}"
    )
    return update.model_copy(update={"reasons": (*update.reasons, reason)})


def minutes(seconds: float) -> str:
    """A time to wait, in words."""
    whole = ceil(seconds / 60)
    return "less than a minute" if seconds < 60 else f"about {whole} minutes"


def offer(state: ClassifierState, command: str, accuracy: float | None) -> str | None:
    """What training would take, and at most bring, in a sentence; None where it is not worth a word.

    Args:
        state: the model.
        command: what to type.
        accuracy: the share of checked texts that it gets right.
    """
    learned = sum(count or 0 for count in state.texts_of_classes().values())
    if learned < WORTH_ASKING or accuracy is None:
        return None
    try:
        texts = training_texts(state)
        _divided(state, texts, 1)
    except (InvalidSetting, InvalidInput):
        return None
    left, wait = 100 * (1 - accuracy), minutes(expected_seconds(state, texts))
    return (
        f"`{command}` trains a duet, {wait}: {100 * accuracy:.1f} % of checked texts are right now, so it "
        f"can gain at most {left:.1f} points; it is used only if it does better on held-out texts."
    )
