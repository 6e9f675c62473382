"""setfit: the encoder is trained by contrast, anew on up to ten kept texts per class and the new ones."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from contract import bytes_in

REQUIREMENTS = ("torch==2.13.0", "setfit==1.2.0")
KEPT, ITERATIONS = 10, 5
FILE = "kept.json"


class Retrained:
    """A `SetFitModel` that starts over after each task.

    Args:
        encoder: a folder.
    """

    def __init__(self, encoder: Path) -> None:
        self.encoder, self.kept = encoder, dict[str, list[str]]()
        self.model: Any = None

    def learn(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        from datasets import Dataset
        from setfit import SetFitModel, Trainer, TrainingArguments

        old = [(text, label) for label, own in self.kept.items() for text in own]
        pairs = [*old, *zip(texts, labels, strict=True)]
        data = Dataset.from_dict(
            {"text": [text for text, _ in pairs], "label": [label for _, label in pairs]}
        )
        self.model = SetFitModel.from_pretrained(str(self.encoder))
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder, num_iterations=ITERATIONS, report_to="none", save_strategy="no"
            )
            Trainer(model=self.model, args=arguments, train_dataset=data).train()
        for label in sorted(set(labels)):
            own = [text for text, other in zip(texts, labels, strict=True) if other == label]
            self.kept[label] = Random(0).sample(own, min(KEPT, len(own)))

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [str(label) for label in self.model.predict(list(texts))]

    def save(self, folder: Path) -> int:
        self.model.save_pretrained(str(folder))
        (folder / FILE).write_text(json.dumps(self.kept), encoding="utf-8")
        return bytes_in(folder)  # the encoder is trained, and so part of what is stored

    def load(self, folder: Path) -> None:
        from setfit import SetFitModel

        self.model = SetFitModel.from_pretrained(str(folder))
        self.kept = json.loads((folder / FILE).read_text(encoding="utf-8"))


LEARNERS = {"setfit": Retrained}
