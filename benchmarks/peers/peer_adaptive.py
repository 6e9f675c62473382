"""adaptive-classifier: prototypes and a small neural head on a frozen encoder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contract import bytes_in

REQUIREMENTS = ("torch==2.13.0", "adaptive-classifier==0.3.1")


class Adaptive:
    """An `AdaptiveClassifier` with its default settings.

    Args:
        encoder: a folder.
    """

    def __init__(self, encoder: Path) -> None:
        from adaptive_classifier import AdaptiveClassifier

        self.classifier: Any = AdaptiveClassifier(str(encoder), device="cpu", use_onnx=False)

    def learn(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        self.classifier.add_examples(list(texts), list(labels))

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [ranked[0][0] for ranked in self.classifier.predict_batch(list(texts), k=1)]

    def save(self, folder: Path) -> int:
        self.classifier.save(str(folder), include_onnx=False)
        return bytes_in(folder)

    def load(self, folder: Path) -> None:
        from adaptive_classifier import AdaptiveClassifier

        self.classifier = AdaptiveClassifier.load(str(folder), device="cpu", use_onnx=False)


LEARNERS = {"adaptive-classifier": Adaptive}
