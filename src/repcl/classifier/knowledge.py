"""What a classifier has learned: the method, the classes, the held-back texts and the calibration."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from repcl.classifier.guard import Update
from repcl.classifier.inputs import LabelType
from repcl.classifier.unknown import ENOUGH, Calibration, Scores, calibrate, probabilities
from repcl.data import Example, InputKind
from repcl.methods import Method


@dataclass
class Knowledge:
    """The learned state of a classifier; classes have the names that the method knows them by.

    Attributes:
        method: predicts and learns.
        name: of the method in `METHODS`.
        label_type: what labels are for the user.
        origins: of each class, what identifies it through renames and merges.
        declared: classes that were announced and may have no example yet.
        held_back: texts that are never trained on.
        calibration: how scores become probabilities.
        updates_made: in all.
        updates: those since it was last saved.
        right_now: which held-back texts get the right answer, as far as that is known since the last change.
    """

    method: Method
    name: str
    label_type: LabelType
    origins: dict[str, tuple[str, ...]] = field(default_factory=dict)
    declared: tuple[str, ...] = ()
    held_back: list[Example] = field(default_factory=list)
    calibration: Calibration = field(default_factory=Calibration)
    updates_made: int = 0
    updates: list[Update] = field(default_factory=list)
    right_now: dict[Example, bool] = field(default_factory=dict)

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

    def answers(self, examples: Sequence[Example]) -> list[str]:
        """The most likely class of each example."""
        return (
            [self.method.classes[place] for place in self.scores(examples).argmax(axis=1)] if examples else []
        )

    def right_before(self, examples: Sequence[Example]) -> list[bool]:
        """Which held-back examples get the label they have, before something is changed."""
        if not all(example in self.right_now for example in examples):
            answers = self.answers(examples)
            return [answer == example.label for answer, example in zip(answers, examples, strict=True)]
        return [self.right_now[example] for example in examples]

    def recalibrate(self) -> dict[Example, bool]:
        """Choose temperature and threshold anew, by held-back texts, and by exemplars where those are few.

        Returns:
            Which held-back texts get the right answer.
        """
        asked = [*self.held_back]
        if len(asked) < ENOUGH:
            asked += list(self.method.memory)
        column = {name: place for place, name in enumerate(self.method.classes)}
        labels = [column[example.label] for example in asked]
        scores = self.scores(asked)
        self.calibration = calibrate(scores, labels)
        right = [bool(row.argmax() == label) for row, label in zip(scores, labels, strict=True)]
        self.right_now = dict(zip(self.held_back, right, strict=False))
        return self.right_now

    def record(self, update: Update) -> None:
        """Add an update to the story."""
        self.updates_made += 1
        self.updates.append(update)
