"""`ClassifierState`: what a classifier has learned, and what it is before it learned anything."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
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
        learned: how many texts of each class were learned, where they were counted.
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
    learned: dict[str, int] = field(default_factory=dict)
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
        if not examples:
            return []
        return [self.method.classes[index] for index in self.scores(examples).argmax(axis=1)]

    def kept_texts(self) -> list[Example]:
        """Exemplars and held-out texts, each once."""
        return list(dict.fromkeys([*self.method.memory, *self.held_out]))

    def embed(self, examples: Sequence[Example]) -> Scores:
        """Representations at unit length, (examples, size)."""
        method = self.method
        if not examples:
            return np.zeros((0, method.encoder.representation_size))
        vectors: Scores = method.for_all(examples, method.encoder.represent).double().numpy()
        unit: Scores = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12)
        return unit

    def count_learned(self, examples: Sequence[Example], known: Collection[str]) -> None:
        """Count texts that were learned; a known class that was never counted stays so."""
        for name, count in Counter(example.label for example in examples).items():
            if name in self.learned or name not in known:
                self.learned[name] = self.learned.get(name, 0) + count

    def texts_learned(self) -> dict[str, int | None]:
        """How many texts each class was learned from: by the method's own books, else as counted."""
        sizes = self.method.class_sizes()
        return {
            name: self.learned.get(name) if sizes is None else sizes[index]
            for index, name in enumerate(self.method.classes)
        }

    def held_out_answers(self) -> list[tuple[Example, str]]:
        """Held-out texts, and the class that is the answer to each: what is known about single classes."""
        return list(zip(self.held_out, self.answers(self.held_out), strict=True))

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
        asked = [*self.held_out]
        if len(asked) < ENOUGH:
            asked += list(self.method.memory)
        column = {name: index for index, name in enumerate(self.method.classes)}
        labels = [column[example.label] for example in asked]
        scores = self.scores(asked)
        self.calibration = calibrate(scores, labels)
        correct = [bool(row.argmax() == label) for row, label in zip(scores, labels, strict=True)]
        self.correct = dict(zip(self.held_out, correct, strict=False))
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
