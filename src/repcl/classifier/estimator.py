"""`ContinualClassifier`: scikit-learn's contract, and new classes in any call, for ever."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from repcl.classifier.guard import TOLERANCE
from repcl.classifier.inputs import (
    InvalidInput,
    Label,
    LabelType,
    as_examples,
    as_labels,
    common_kind,
    label_type,
    labeled,
)
from repcl.classifier.knowledge import Knowledge
from repcl.classifier.learning import learn, method_settings, new_knowledge
from repcl.classifier.life import ClassLife
from repcl.classifier.unknown import mark_unknown
from repcl.data import Example, InputKind
from repcl.training import Observer


class ContinualClassifier(ClassifierMixin, ClassLife):  # type: ignore[misc]
    """A text classifier that learns new classes in any call of `partial_fit` and keeps the old ones.

    Args:
        method: a name in `METHODS`.
        encoder: a bundled name, a local folder or a Hugging Face id.
        memory_per_class: exemplars kept of each class; 0 for methods that need none.
        memory_total: exemplars kept in all.
        holdout_per_class: texts of each class that are put aside to measure updates and calibrate confidence;
            at most one in five.
        preset: where the method's settings come from.
        settings: what to change about them.
        tolerance: drop of accuracy on held-back texts of old classes that is not worth a warning, a share.
        seed: decides every random draw.
        device: the best one present if not given.

    Attributes:
        classes_: the labels, sorted, in the type they were given in.
        method_: the method with its encoder and memory.
        last_update_: what the last change did to held-back texts of old classes.

    Example:
        >>> from repcl import ContinualClassifier
        >>> clf = ContinualClassifier(method="instant")  # doctest: +SKIP
        >>> clf.partial_fit(["where is my parcel"], ["delivery"])  # doctest: +SKIP
        >>> clf.predict(["my parcel is late"])  # doctest: +SKIP
    """

    def __init__(  # noqa: PLR0913 (scikit-learn wants every parameter here)
        self,
        method: str = "repcl",
        encoder: str = "minilm-l6",
        memory_per_class: int = 10,
        memory_total: int | None = None,
        holdout_per_class: int = 5,
        preset: str = "cpu",
        settings: Mapping[str, Any] | None = None,
        tolerance: float = TOLERANCE,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.memory_per_class = memory_per_class
        self.memory_total = memory_total
        self.holdout_per_class = holdout_per_class
        self.preset = preset
        self.settings = settings
        self.tolerance = tolerance
        self.seed = seed
        self.device = device

    # ---- learning -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> "ContinualClassifier":
        """Forget everything and learn texts `X` with labels `y`."""
        examples, labels = _read(X, y)
        self._knowledge = self._new_knowledge(common_kind(examples), label_type(labels))
        self._home, self._is_interrupted = None, False
        self._teach(labeled(examples, labels))
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, observer: Observer | None = None
    ) -> "ContinualClassifier":
        """Learn texts `X` with labels `y`; labels not seen before are new classes.

        Args:
            X: a sequence of str, or of `Example` for relations and events.
            y: their labels, str or int.
            classes: if given, labels outside it are refused, and all of it is in `classes_` at once.
            observer: hears about progress.
        """
        examples, labels = _read(X, y)
        before = self.known() if self._knowledge is not None else None
        kind = common_kind(examples, before.kind if before else None)
        declared = as_labels(classes, len(classes)) if classes is not None else labels
        labels_are = label_type([*labels, *declared], before.label_type if before else None)
        allowed = set(declared)
        for label in labels:
            if label not in allowed:
                raise InvalidInput(f"Expected labels among `classes`, found {label!r}: add it to them.")
        checked = labeled(examples, labels)
        if before is None:
            self._knowledge = before = self._new_knowledge(kind, labels_are)
        if classes is not None:
            before.declared = tuple(dict.fromkeys([*before.declared, *map(str, declared)]))
        self._teach(checked, observer)
        return self

    # ---- predicting -----------------------------------------------------------------------------

    def predict(self, X: Any, *, unknown: Label | None = None, threshold: float | str = "auto") -> Any:
        """The most likely label of each text.

        Args:
            X: texts.
            unknown: if given, what to answer for texts of which no class is likely enough.
            threshold: the least confidence, from 0 to 1; "auto" lets 95 % of held-back texts pass.
        """
        probabilities = self.predict_proba(X)
        answers = self.classes_[probabilities.argmax(axis=1)]
        if unknown is None:
            return answers
        if str(unknown) in self.known().names:
            raise InvalidInput(f"{unknown!r} is one of the classes: give another word for unknown texts.")
        least = self.known().calibration.least_confidence(threshold)
        return mark_unknown(answers, probabilities.max(axis=1) < least, unknown)

    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities, (texts, classes); columns follow `classes_`, rows sum to 1."""
        knowledge = self.known()
        examples = as_examples(X)
        common_kind(examples, knowledge.kind)
        column = {str(label): place for place, label in enumerate(self.classes_)}
        probabilities = np.zeros((len(examples), len(column)))
        places = [column[name] for name in knowledge.method.classes]
        probabilities[:, places] = knowledge.probabilities(examples)
        return probabilities

    # ---- inside ---------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def _new_knowledge(self, kind: InputKind, labels_are: LabelType) -> Knowledge:
        settings = method_settings(
            self.method,
            kind,
            preset=self.preset,
            settings=self.settings or {},
            memory_per_class=self.memory_per_class,
            memory_total=self.memory_total,
        )
        return new_knowledge(
            self.method,
            kind,
            labels_are,
            encoder=str(self.encoder),
            settings=settings,
            seed=int(self.seed),
            device=self.device,
        )

    def _teach(self, examples: Sequence[Example], observer: Observer | None = None) -> None:
        with self._changing() as knowledge:
            knowledge.method.observer = observer or Observer()
            update = learn(knowledge, examples, holdout=self.holdout_per_class, tolerance=self.tolerance)
            knowledge.method.observer = Observer()
        self._remember(update)


def _read(X: Any, y: Any) -> tuple[list[Example], list[Label]]:
    """Texts and labels to learn from, checked."""
    examples = as_examples(X)
    labels = as_labels(y, len(examples))
    if not examples:
        raise InvalidInput("Expected at least one text to learn from, found none.")
    return examples, labels
