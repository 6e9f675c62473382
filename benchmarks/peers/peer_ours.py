"""repcl's own classifier, as a user gets it."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contract import Peer, bytes_in

REQUIREMENTS: tuple[str, ...] = ()
TAKES_SPANS = True


class Ours:
    """A `ContinualClassifier`.

    Args:
        method: its name.
        encoder: a folder.
    """

    def __init__(self, method: str, encoder: Path) -> None:
        from repcl import ContinualClassifier

        self.classifier = ContinualClassifier(method, encoder=str(encoder), device="cpu", tolerance=1.0)

    def learn(self, texts: Sequence[Any], labels: Sequence[str]) -> None:
        self.classifier.partial_fit(_read(texts), labels)

    def predict(self, texts: Sequence[Any]) -> list[str]:
        return [str(label) for label in self.classifier.predict(_read(texts))]

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


def _read(texts: Sequence[Any]) -> list[Any]:
    """Texts as they are; those with marked entities as examples, whose labels nobody reads."""
    from repcl.data import Example

    return [text if isinstance(text, str) else Example.from_json({**text, "label": ""}) for text in texts]


def _made_with(method: str) -> Callable[[Path], Peer]:
    return lambda encoder: Ours(method, encoder)


LEARNERS = {f"repcl {method}": _made_with(method) for method in ("instant",)}
