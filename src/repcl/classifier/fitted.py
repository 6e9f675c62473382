"""What every part of the classifier asks of the fitted one: what it knows, its classes, its labels."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from repcl.classifier.guard import Update
from repcl.classifier.inputs import Label, as_classes, as_labels, label_type
from repcl.classifier.knowledge import Knowledge
from repcl.errors import RepclError
from repcl.methods import Method


class Fitted(BaseEstimator):  # type: ignore[misc]
    """The learned side of an estimator."""

    _knowledge: Knowledge | None = None
    _home: tuple[Path, int] | None = None  # the model folder and revision that it was loaded from or saved to
    _is_interrupted = False
    last_update_: Update

    def __sklearn_is_fitted__(self) -> bool:
        return self._knowledge is not None

    @property
    def classes_(self) -> Any:
        """The labels, sorted, as an array of the type they were given in."""
        if self._knowledge is None:
            raise AttributeError("classes_ is there after fit or partial_fit")
        return as_classes(self._knowledge.names, self._knowledge.label_type)

    @property
    def method_(self) -> Method:
        """The method with its encoder and memory."""
        if self._knowledge is None:
            raise AttributeError("method_ is there after fit or partial_fit")
        return self._knowledge.method

    def known(self) -> Knowledge:
        """What was learned; an error where nothing was, or where learning was broken off."""
        if self._knowledge is None:
            raise NotFittedError(
                "This ContinualClassifier has learned nothing yet: call fit or partial_fit, or load a model."
            )
        if self._is_interrupted:
            raise RepclError(
                "This classifier was interrupted while it learned, and is neither old nor new: "
                "load its last revision again, or fit it anew."
            )
        return self._knowledge

    def name_of(self, label: Label) -> str:
        """The name under which the method knows a label."""
        (checked,) = as_labels([label], 1)
        label_type([checked], self.known().label_type)
        return str(checked)

    def label_of(self, word: str) -> Label:
        """A label as it was given in, from a word that was typed."""
        is_number = self.known().label_type == "number" and word.lstrip("-").isdecimal()
        return int(word) if is_number else word

    @contextmanager
    def _changing(self, *, refused_by: tuple[type[Exception], ...] = ()) -> Iterator[Knowledge]:
        """Change what is known; if that breaks off, what is left is not used any more.

        Args:
            refused_by: errors that come before anything is changed.
        """
        knowledge = self.known()
        self._is_interrupted = True
        try:
            yield knowledge
        except refused_by:
            self._is_interrupted = False
            raise
        except BaseException:
            if knowledge.updates_made == 0:
                self._knowledge, self._is_interrupted = None, False
            raise
        self._is_interrupted = False
