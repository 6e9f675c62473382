"""The revision itself as an answerer, on torch."""

from collections.abc import Sequence

from repcl.classifier.answerer import Answerer
from repcl.classifier.answering import Evidence
from repcl.classifier.state import ClassifierState
from repcl.classifier.store.records import Contents
from repcl.data import Example


class Learned(Answerer):
    """Answers with the method that learned.

    Args:
        revision: its number.
        contents: its record.
        state: what was unpacked from it.
    """

    def __init__(self, revision: int, contents: Contents, state: ClassifierState) -> None:
        super().__init__(revision, contents, state.calibration)
        self.state = state

    def evidence(self, examples: Sequence[Example], *, with_nearness: bool = True) -> Evidence:
        """What is known about texts before it is decided whether they are unknown."""
        return self.state.evidence(examples, with_nearness=with_nearness)
