"""`Answerer`: whoever answers questions about texts, an export of a revision or the revision itself."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from repcl.classifier.answering import Evidence, Scores, UnknownRule, unknown_rule
from repcl.classifier.inputs import Label, as_classes, common_kind
from repcl.classifier.store.folder import ModelFolder
from repcl.classifier.store.records import Calibration, Contents
from repcl.data import Example, InputKind


class Answered(NamedTuple):
    """Answers to texts.

    Attributes:
        probabilities: (texts, classes), columns follow `Answerer.classes_`.
        is_unknown: which texts are unknown, (texts,).
    """

    probabilities: Scores
    is_unknown: NDArray[np.bool_]


class Answerer(ABC):
    """Answers questions about texts, and changes nothing.

    Attributes:
        revision: the number of the revision that it answers for.
        kind: the input kind that it takes.
        classes_: the labels, sorted, in the type they were given in.
        calibration: how scores become probabilities.
    """

    def __init__(self, revision: int, contents: Contents, calibration: Calibration) -> None:
        self.revision = revision
        self.kind: InputKind = contents.kind
        self.calibration = calibration
        self.classes_ = as_classes(contents.names, contents.label_type)
        self._names = contents.names

    @abstractmethod
    def evidence(self, examples: Sequence[Example], *, with_nearness: bool = True) -> Evidence:
        """What is known about texts before it is decided whether they are unknown."""

    def unknown_rule(self, threshold: float | str = "auto", answer: Label | None = None) -> UnknownRule:
        """When a text is unknown, and what is answered then."""
        return unknown_rule(self.calibration, self._names, threshold=threshold, answer=answer)

    def answer(self, examples: Sequence[Example], rule: UnknownRule | None = None) -> Answered:
        """Probabilities of all classes for each text and, by the rule if one is given, which are unknown."""
        common_kind(examples, self.kind)
        if not examples:
            return Answered(np.zeros((0, len(self.classes_))), np.zeros(0, dtype=np.bool_))
        found = self.evidence(examples, with_nearness=rule is not None and rule.familiarity is not None)
        is_unknown = rule.applies(found) if rule else np.zeros(len(examples), dtype=np.bool_)
        return Answered(in_columns(found.probabilities, found.names, self.classes_), is_unknown)


def in_columns(probabilities: Scores, names: Sequence[str], classes: Any) -> Scores:
    """Probabilities in the order of all classes; those announced only have 0."""
    column = {str(label): index for index, label in enumerate(classes)}
    found = np.zeros((len(probabilities), len(column)))
    found[:, [column[name] for name in names]] = probabilities
    return found


def open_answerer(
    path: str | Path,
    *,
    revision: int | None = None,
    device: str | None = None,
    threads: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Answerer:
    """Whoever answers for a revision fastest: its export if there is one, which needs no torch.

    Args:
        path: of the model folder.
        revision: the one in use if not given.
        device: of torch; if given, no export is used.
        threads: of an export; as many as there are cores if not given.
        tell: hears in a sentence why an export is not used.
    """
    from repcl.classifier.exported import open_export

    folder = ModelFolder(path)
    exported = open_export(folder, revision, threads=threads, tell=tell) if device is None else None
    if exported is not None:
        return exported
    from repcl.classifier.learned import Learned  # with torch, which takes seconds
    from repcl.classifier.store.snapshot import unpack

    record, state = folder.open(partial(unpack, device=device), revision)
    return Learned(record.number, record.contents, state)
