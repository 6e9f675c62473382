"""repcl's own classifier, as a user gets it."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from contract import Peer, bytes_in

REQUIREMENTS: tuple[str, ...] = ()


class Ours:
    """A `ContinualClassifier`.

    Args:
        method: its name.
        encoder: a folder.
    """

    def __init__(self, method: str, encoder: Path) -> None:
        from repcl import ContinualClassifier

        self.classifier = ContinualClassifier(method, encoder=str(encoder), device="cpu", tolerance=1.0)

    def learn(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        self.classifier.partial_fit(texts, labels)

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [str(label) for label in self.classifier.predict(texts)]

    def save(self, folder: Path) -> int:
        self.classifier.save(folder / "model")
        (record,) = (folder / "model" / "revisions").glob("*.json")
        contents = json.loads(record.read_text(encoding="utf-8"))["record"]["contents"]
        of_encoder = [
            blob["file"] for name, blob in contents["tensors"].items() if name.startswith("encoder.")
        ]
        of_encoder += [contents["encoder"]["config"]["file"], contents["encoder"]["tokenizer"]["file"]]
        return bytes_in(folder, without=of_encoder)

    def load(self, folder: Path) -> None:
        from repcl import ContinualClassifier

        self.classifier = ContinualClassifier.load(folder / "model", device="cpu")


def _made_with(method: str) -> Callable[[Path], Peer]:
    return lambda encoder: Ours(method, encoder)


LEARNERS = {f"repcl {method}": _made_with(method) for method in ("instant",)}
