"""`ClassifierState`: what a classifier has learned, and what it is before it learned anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np

from repcl.classifier.calibration import (
    ENOUGH,
    Scores,
    UnknownRule,
    calibrate,
    probabilities,
    unknown_rule,
)
from repcl.classifier.inputs import Label
from repcl.classifier.store.records import Calibration, LabelType, Update
from repcl.data import Example, InputKind
from repcl.errors import InvalidSetting
from repcl.methods import METHODS, Method, build_method
from repcl.methods.build import method_class
from repcl.presets import load_preset

MOST_ASKED = 1000
"""Texts that temperature and threshold are chosen by, and that are scored at a time."""


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
        calibration: how scores become probabilities.
        updates_made: since the classifier was made.
        updates: those since it was last saved.
        correct: which held-out texts get their label, as far as that is known since the last change.
    """

    method: Method
    name: str
    label_type: LabelType
    origins: dict[str, tuple[str, ...]] = field(default_factory=dict)
    declared: tuple[str, ...] = ()
    held_out: list[Example] = field(default_factory=list)
    calibration: Calibration = field(default_factory=Calibration)
    updates_made: int = 0
    updates: list[Update] = field(default_factory=list)
    correct: dict[Example, bool] = field(default_factory=dict)

    @property
    def kind(self) -> InputKind:
        """The kind of input it takes."""
        return self.method.encoder.readout.kind

    @property
    def names(self) -> list[str]:
        """All classes, also those announced only."""
        return list(dict.fromkeys([*self.method.classes, *self.declared]))

    def scores(self, examples: Sequence[Example]) -> Scores:
        """Scores of the learned classes, in the method's order, (examples, classes)."""
        if not examples:
            return np.zeros((0, len(self.method.classes)))
        found: Scores = self.method.scores(examples).double().numpy()
        return found

    def probabilities(self, examples: Sequence[Example]) -> Scores:
        """Calibrated probabilities of the learned classes, in the method's order."""
        scores = self.scores(examples)
        return probabilities(scores, self.calibration.temperature) if len(scores) else scores

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

    def correct_before(self, examples: Sequence[Example]) -> list[bool]:
        """Which held-out examples get the label they have, before something is changed."""
        if not all(example in self.correct for example in examples):
            answers = self.answers(examples)
            return [answer == example.label for answer, example in zip(answers, examples, strict=True)]
        return [self.correct[example] for example in examples]

    def recalibrate(self) -> dict[Example, bool]:
        """Choose temperature and threshold by held-out texts, and also by exemplars where those are few.

        Returns:
            Which held-out texts get their label.
        """
        asked = self.held_out[:: max(1, ceil(len(self.held_out) / MOST_ASKED))]
        if len(asked) < ENOUGH:
            asked = [*asked, *self.method.memory]
        column = {name: index for index, name in enumerate(self.method.classes)}
        scores = self.scores(asked)
        self.calibration = calibrate(scores, [column[example.label] for example in asked])
        known = dict(zip(asked, scores.argmax(axis=1).tolist(), strict=True)) if asked else {}
        rest = [example for example in self.held_out if example not in known]
        known |= {example: column[name] for example, name in zip(rest, self.answers(rest), strict=True)}
        self.correct = {example: known[example] == column[example.label] for example in self.held_out}
        return self.correct

    def record(self, update: Update) -> None:
        """Note an update for the next revision."""
        self.updates_made += 1
        self.updates.append(update)


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
) -> dict[str, Any]:
    """The preset's settings, the user's on top, and the memory budget where the method has one."""
    chosen = method_class(method)
    if memory_per_class == 0 and _keeps_texts(chosen):
        free = [name for name, other in METHODS.items() if not _keeps_texts(other)]
        raise InvalidSetting(
            f"Expected memory_per_class of at least 1, found 0: method {method!r} learns from kept texts. "
            f"Methods that keep none: {', '.join(free)}."
        )
    values = load_preset(preset).settings_for(method, "", kind)
    if "memory_per_class" in chosen.Settings.model_fields:
        values |= {"memory_per_class": memory_per_class, "memory_total": memory_total}
    return values | dict(settings)


def _keeps_texts(method: type[Method]) -> bool:
    return "memory_per_class" in method.Settings.model_fields or method.keeps_everything
