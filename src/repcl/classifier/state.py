"""`ClassifierState`: what a classifier has learned, and what it is before it learned anything."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import torch

from repcl.classifier.answering import Evidence, Scores, UnknownRule, probabilities, unknown_rule
from repcl.classifier.arrivals import margins_of
from repcl.classifier.calibration import ENOUGH, Nearness, calibrate
from repcl.classifier.inputs import Label
from repcl.classifier.known import KnownTexts
from repcl.classifier.label_rules import Mask, calibrate_labels, has_labels, label_probabilities
from repcl.classifier.labels import as_typed
from repcl.classifier.store.records import Calibration, LabelType, Update
from repcl.data import Example, InputKind
from repcl.errors import InvalidSetting
from repcl.methods import METHODS, Method, build_method
from repcl.methods.build import method_class
from repcl.methods.frozen.left_out import row_keys
from repcl.methods.frozen.method import FrozenMethod
from repcl.methods.variants import split_variant, variant_settings
from repcl.presets import load_preset

AUTO, BEST_WITHIN_SECONDS = "auto", "instant"
"""What a user gets who names no method: the best learner that learns a class within seconds."""
MOST_ASKED = 1000
"""Texts that temperature and threshold are chosen by, and that are scored at a time."""


class Checked(NamedTuple):
    """A text that was asked about as if it had not been learned: its label and the answer."""

    label: str
    answer: str

    @property
    def is_correct(self) -> bool:
        """Whether it got its label."""
        return self.label == self.answer


Checks = Mapping[Hashable, Checked]
"""Checked texts by what tells them apart: the example that is held out, or the key of a kept row (with the
label that was asked about, where a text may have several)."""


@dataclass(frozen=True)
class _Asked:
    scores: Scores
    labels: list[int]
    checks: Checks
    margins: Mapping[Hashable, float]
    nearness: Nearness | None


@dataclass
class ClassifierState:
    """The learned state of a classifier; classes have the names that the method knows them by.

    Attributes:
        method: predicts and learns.
        name: of the method in `METHODS`.
        label_type: what labels are for the user.
        origins: of each class, what identifies it through renames and merges.
        declared: classes that were announced and may have no example yet.
        held_out: texts that are never trained on.
        known: which texts were learned under which label.
        calibration: how scores become probabilities.
        updates_made: since the classifier was made.
        updates: those since it was last saved.
        checked: answers to checked texts since the last change; None where they have to be asked again.
        margins: of checked texts at the last calibration, how far the label scores above all others.
    """

    method: Method
    name: str
    label_type: LabelType
    origins: dict[str, tuple[str, ...]] = field(default_factory=dict)
    declared: tuple[str, ...] = ()
    held_out: list[Example] = field(default_factory=list)
    known: KnownTexts = field(default_factory=KnownTexts)
    calibration: Calibration = field(default_factory=Calibration)
    updates_made: int = 0
    updates: list[Update] = field(default_factory=list)
    checked: "Checks | None" = None
    margins: Mapping[Hashable, float] = field(default_factory=dict)

    @property
    def kind(self) -> InputKind:
        """The kind of input it takes."""
        return self.method.encoder.readout.kind

    @property
    def names(self) -> list[str]:
        """All classes, also those announced only."""
        return list(dict.fromkeys([*self.method.classes, *self.declared]))

    def texts_of_classes(self) -> dict[str, int | None]:
        """How many texts each class was learned from, each as often as it was; None where nobody knows."""
        counted = self.method.class_sizes()
        return {
            name: counted.get(name, None if name in self.known.unlisted else self.known.texts_of(name))
            for name in self.names
        }

    def scores(self, examples: Sequence[Example]) -> Scores:
        """Scores of the learned classes, in the method's order, (examples, classes)."""
        if not examples:
            return np.zeros((0, len(self.method.classes)))
        found: Scores = self.method.scores(examples).double().numpy()
        return found

    def probabilities(self, examples: Sequence[Example]) -> Scores:
        """Calibrated probabilities of the learned classes, in the method's order."""
        scores = self.scores(examples)
        if self.calibration.labels is not None:
            return label_probabilities(scores, self.calibration.labels, self.method.classes)
        return probabilities(scores, self.calibration.temperature) if len(scores) else scores

    @property
    def is_multilabel(self) -> bool:
        """Whether a text may have several labels."""
        return isinstance(self.method, FrozenMethod) and self.method.is_multilabel

    def label_of(self, typed: str) -> Label:
        """A label in the type that labels were given in, from what a user typed: the class that it names."""
        return as_typed(typed, self.names, self.label_type)

    def has_labels(
        self, found: Scores, threshold: float | str = "auto", names: Sequence[str] | None = None
    ) -> Mask:
        """Which labels texts have by their probabilities; where each has one label, the most likely one.

        Args:
            found: probabilities, (texts, classes).
            threshold: the least probability of a label; "auto" for each label's own.
            names: of the columns; the method's classes if not given.
        """
        if self.calibration.labels is None:
            is_best: Mask = np.arange(found.shape[1]) == found.argmax(axis=1)[:, None]
            return is_best
        return has_labels(found, self.calibration.labels, names or self.method.classes, threshold)

    def unknown_rule(self, threshold: float | str = "auto", answer: Label | None = None) -> UnknownRule:
        """When a text is unknown to it, and what is answered then."""
        return unknown_rule(self.calibration, self.names, threshold=threshold, answer=answer)

    def answers(self, examples: Sequence[Example]) -> list[str]:
        """The most likely class of each example."""
        found: list[str] = []
        for start in range(0, len(examples), MOST_ASKED):  # all scores of many classes would not fit
            best = self.scores(examples[start : start + MOST_ASKED]).argmax(axis=1)
            found += [self.method.classes[index] for index in best]
        return found

    def check_readable(self, examples: Sequence[Example]) -> None:
        """Turn examples into tokens: what is wrong with one shows before anything is changed."""
        for start in range(0, len(examples), MOST_ASKED):
            self.method.encoder.tokenize(examples[start : start + MOST_ASKED])

    def kept_texts(self) -> list[Example]:
        """Exemplars and held-out texts, each once."""
        return list(dict.fromkeys([*self.method.memory, *self.held_out]))

    @property
    def leaves_out(self) -> bool:
        """Whether it says what it would answer to a text had it not learned it; then no text is held out."""
        return isinstance(self.method, FrozenMethod) and self.method.leaves_out

    def checks_before(self) -> Checks:
        """Answers to checked texts, before something is changed."""
        if self.checked is None:
            self.checked = self._ask_about_labels()[1] if self.is_multilabel else self._ask().checks
        return self.checked

    def recalibrate(self) -> Checks:
        """Choose temperature and thresholds by answers to checked texts, and return these."""
        if self.is_multilabel:
            self.calibration, self.checked = self._ask_about_labels()
            return self.checked
        asked, method = self._ask(), self.method
        strangers = method.strangers() if isinstance(method, FrozenMethod) and method.leaves_out else None
        self.calibration = calibrate(asked.scores, asked.labels, method.classes, asked.nearness, strangers)
        self.checked, self.margins = asked.checks, asked.margins
        return self.checked

    @property
    def can_check_more(self) -> bool:
        """Whether there are learned texts, of one label each, that are not checked after each update."""
        if not isinstance(self.method, FrozenMethod) or not self.leaves_out or self.is_multilabel:
            return False
        return len(self.method.ledger.kept.rows) > MOST_ASKED

    def check_more(self, names: Collection[str]) -> Checks:
        """Answers to more texts of these classes than are checked anyway: of each to as many again."""
        if not isinstance(self.method, FrozenMethod):
            return {}
        found = self.check_again(self.method.next_left_out(names).tolist())
        usual = self.checks_before()
        return {key: check for key, check in found.items() if key not in usual}  # of a text learned twice

    def check_again(self, keys: Collection[Hashable]) -> Checks:
        """Answers to learned texts with these keys, as far as they are still there."""
        if not keys or not isinstance(self.method, FrozenMethod):
            return {}
        names = self.method.classes
        found, labels, scores = self.method.left_out_by_key(torch.tensor(list(keys)))
        answers = zip(labels.tolist(), scores.argmax(dim=1).tolist(), strict=True)
        checks = (Checked(names[label], names[answer]) for label, answer in answers)
        return dict(zip(found.tolist(), checks, strict=True))

    def words(self, names: Collection[str]) -> dict[Hashable, Example]:
        """The checked texts of these classes that are kept word for word, by their keys."""
        examples = [example for example in self.held_out if example.label in names]
        if isinstance(self.method, FrozenMethod) and self.method.leaves_out:
            keys: list[Hashable] = row_keys(self.method.embed(examples)).tolist()
            if self.is_multilabel:
                keys = [(key, example.label) for key, example in zip(keys, examples, strict=True)]
            return dict(zip(keys, examples, strict=True))
        return {example: example for example in examples}

    def evidence(self, examples: Sequence[Example], *, with_nearness: bool = True) -> Evidence:
        """What is known about examples before it is decided whether they are unknown."""
        found, nearness = self.probabilities(examples), None
        is_asked = with_nearness and self.calibration.familiarity is not None
        if is_asked and isinstance(self.method, FrozenMethod):
            nearness = self.method.nearness(examples).double().numpy()
        return Evidence(self.method.classes, found, nearness)

    def _ask(self) -> "_Asked":
        """Ask about texts as if they had not been learned; and about exemplars where there are few others."""
        names = self.method.classes
        if isinstance(self.method, FrozenMethod) and self.method.leaves_out and names:
            found = self.method.left_out()
            scores, labels = found.scores.double().numpy(), found.labels.tolist()
            keys: list[Hashable] = found.keys.tolist()
            near = Nearness(
                found.near.numpy(), found.nearest.double().numpy(), found.nearest_stranger.double().numpy()
            )
        else:
            held = spread(self.held_out)
            asked = held if len(held) >= ENOUGH else [*held, *self.method.memory]
            column = {name: index for index, name in enumerate(names)}
            scores, labels, near = self.scores(asked), [column[example.label] for example in asked], None
            keys = list(held)
        checks = {
            key: Checked(names[label], names[row.argmax()])
            for key, label, row in zip(keys, labels, scores, strict=False)
        }
        margins = dict(zip(keys, margins_of(scores, labels).tolist(), strict=False))
        if not self.leaves_out:
            rest = [example for example in self.held_out if example not in checks]
            answers = self.answers(rest)
            checks |= {one: Checked(one.label, answer) for one, answer in zip(rest, answers, strict=True)}
        return _Asked(scores, labels, checks, margins, near)

    def _ask_about_labels(self) -> tuple[Calibration, Checks]:
        """Ask about texts that may have several labels, each label against those that its text has not."""
        method, names = self.method, self.method.classes
        if not isinstance(method, FrozenMethod) or not names:
            return Calibration(), {}
        left = method.left_out_texts()
        calibration = calibrate_labels(left, names)
        if calibration.labels is None:
            return calibration, {}
        found = label_probabilities(left.scores.double().numpy(), calibration.labels, names)
        has_label = left.has_label.numpy()
        checks: dict[Hashable, Checked] = {}
        for text, label in np.argwhere(has_label):
            rivals = ~has_label[text]
            rivals[label] = True
            answer = np.where(rivals, found[text], -1.0).argmax()
            checks[int(left.keys[text]), names[label]] = Checked(names[label], names[answer])
        return calibration, checks

    def record(self, update: Update) -> None:
        """Note an update for the next revision."""
        self.updates_made += 1
        self.updates.append(update)


def spread(examples: Sequence[Example]) -> Sequence[Example]:
    """At most `MOST_ASKED` of them, evenly spread."""
    return examples[:: max(1, ceil(len(examples) / MOST_ASKED))]


def new_state(
    method: str,
    kind: InputKind,
    label_type: LabelType,
    *,
    encoder: str,
    settings: Mapping[str, Any],
    seed: int,
    device: str | None,
) -> ClassifierState:
    """A classifier that has learned nothing yet."""
    method, _ = split_variant(method)
    built = build_method(method, kind, encoder=encoder, settings=settings, seed=seed, device=device)
    for tensor in [*built.parameters(), *built.buffers()]:
        # weights read from a file may lie at an odd address, where other kernels give other last bits than
        # they will give after save and load
        tensor.data = tensor.data.clone()
    return ClassifierState(built, method, label_type)


def method_settings(
    method: str,
    kind: InputKind,
    *,
    preset: str,
    settings: Mapping[str, Any],
    memory_per_class: int,
    memory_total: int | None,
    holdout_per_class: int,
    multilabel: bool = False,
) -> dict[str, Any]:
    """The preset's settings, the user's on top, and the memory budget where the method has one.

    Where no text may be kept, no text's embedding is kept either, unless the user asks for it.
    """
    name, variant = split_variant(method)
    chosen = method_class(name)
    if memory_per_class == 0 and _keeps_texts(chosen):
        free = [name for name, other in METHODS.items() if not _keeps_texts(other)]
        raise InvalidSetting(
            f"Expected memory_per_class of at least 1, found 0: method {method!r} learns from kept texts. "
            f"Methods that keep none: {', '.join(free)}."
        )
    wanted = {**variant_settings(name, variant), **settings}
    values = load_preset(preset).settings_for(name, "", kind, wanted)
    if "memory_per_class" in chosen.Settings.model_fields:
        values |= {"memory_per_class": memory_per_class, "memory_total": memory_total}
    if "keep_embeddings" in chosen.Settings.model_fields and not memory_per_class and not holdout_per_class:
        values["keep_embeddings"] = False
    if multilabel:
        _check_takes_several(name)
        values["multilabel"] = True
    return values | wanted


def decided(method: str) -> str:
    """The method that is meant: "auto" is the best learner that learns a class within seconds."""
    return BEST_WITHIN_SECONDS if method == AUTO else method


def _check_takes_several(method: str) -> None:
    able = [name for name, other in METHODS.items() if other.takes_several_labels]
    if method not in able:
        raise InvalidSetting(
            f"Expected a method that can give a text several labels (multilabel), found {method!r}, which "
            f"gives each text one: use {' or '.join(able)}."
        )


def _keeps_texts(method: type[Method]) -> bool:
    return "memory_per_class" in method.Settings.model_fields or method.keeps_everything
