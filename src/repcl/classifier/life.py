"""What a user can do to the classes of a classifier: rename, merge, remove, and absorb those of another."""

import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

from repcl.classifier.guard import ForgettingWarning, Update
from repcl.classifier.inputs import Label
from repcl.classifier.knowledge import Knowledge
from repcl.classifier.lifecycle import absorb, merge_classes, remove_class, rename_class
from repcl.classifier.persistence import Persistent
from repcl.errors import RepclError

Own = TypeVar("Own", bound="ClassLife")


class ClassLife(Persistent):
    """A classifier whose classes can be changed; each change is told in `last_update_`."""

    holdout_per_class: int
    tolerance: float

    def rename_class(self: Own, old: Label, new: Label) -> Own:
        """Give a class another label."""
        names = self.name_of(old), self.name_of(new)
        return self._change(lambda knowledge: rename_class(knowledge, *names))

    def merge_classes(self: Own, labels: Sequence[Label], into: Label) -> Own:
        """Make one class of several; `into` is a new label or one of theirs."""
        names, union = [self.name_of(label) for label in labels], self.name_of(into)
        holdout, tolerance = self.holdout_per_class, self.tolerance
        return self._change(
            lambda knowledge: merge_classes(knowledge, names, union, holdout=holdout, tolerance=tolerance)
        )

    def remove_class(self: Own, label: Label) -> Own:
        """Forget a class: exemplars, held-back texts, classifier row and statistics."""
        name, tolerance = self.name_of(label), self.tolerance
        return self._change(lambda knowledge: remove_class(knowledge, name, tolerance=tolerance))

    def absorb(self: Own, other: "ClassLife") -> Own:
        """Also know what another classifier learned, exactly; for the frozen learners (`instant`, ...)."""
        theirs, holdout, tolerance = other.known(), self.holdout_per_class, self.tolerance
        return self._change(lambda knowledge: absorb(knowledge, theirs, holdout=holdout, tolerance=tolerance))

    def _change(self: Own, change: Callable[[Knowledge], Update]) -> Own:
        with self._changing(refused_by=(RepclError,)) as knowledge:
            update = change(knowledge)
        self._remember(update)
        return self

    def _remember(self, update: Update) -> None:
        self.known().record(update)
        self.last_update_ = update
        if update.is_refused:
            warnings.warn(
                f"This update harms old classes: {'; '.join(update.reasons)}.",
                ForgettingWarning,
                stacklevel=4,
            )
