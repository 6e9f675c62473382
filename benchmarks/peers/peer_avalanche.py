"""Avalanche: two of its strategies on sentence embeddings, replay with a linear head and streaming LDA.

Avalanche imports torchvision for data sets of images, none of which is used here. Beside a torch without CUDA
the compiled part of torchvision may not load: then two operators are declared in its place, and never called.
"""

import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contract import Peer, bytes_in
from sentences import Sentences

REQUIREMENTS = ("torch==2.13.0", "torchvision==0.28.0", "avalanche-lib==0.6.0", "transformers")
SIZE, MOST_CLASSES = 384, 200
KEPT, EPOCHS, BATCH, LEARNING_RATE = 10, 30, 32, 1e-3  # chosen by held-out training texts of HWU64, round 5
NAMES, STATE = "names.json", "strategy"


class OnSentences:
    """A strategy of Avalanche that learns one experience after another.

    Args:
        make: the strategy.
        encoder: a folder.
    """

    def __init__(self, make: Callable[[], Any], encoder: Path) -> None:
        _import_torchvision()
        self.embed, self.names = Sentences(encoder), list[str]()
        self.strategy = make()

    def learn(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        import torch
        from avalanche.benchmarks import benchmark_from_datasets, with_classes_timeline
        from avalanche.benchmarks.utils import AvalancheDataset, DataAttribute
        from torch.utils.data import TensorDataset

        self.names += sorted(set(labels) - set(self.names))
        targets = torch.tensor([self.names.index(label) for label in labels])
        attributes = [
            DataAttribute(targets.tolist(), "targets"),
            DataAttribute([0] * len(targets), "targets_task_labels", use_in_getitem=True),
        ]
        rows = TensorDataset(torch.from_numpy(self.embed(texts)), targets)
        data = AvalancheDataset([rows], data_attributes=attributes)
        self.strategy.train(with_classes_timeline(benchmark_from_datasets(train=[data])).train_stream)

    def predict(self, texts: Sequence[str]) -> list[str]:
        import torch

        with torch.no_grad():
            scores = self.scores(torch.from_numpy(self.embed(texts)))[:, : len(self.names)]
        return [self.names[best] for best in scores.argmax(dim=1)]

    def scores(self, rows: Any) -> Any:
        return self.strategy.model.eval()(rows)

    def save(self, folder: Path) -> int:
        # not `save_checkpoint`: it fails beside typing_extensions 4.16
        (folder / STATE).write_bytes(pickle.dumps((self.strategy, self.names)))
        return bytes_in(folder)

    def load(self, folder: Path) -> None:
        self.strategy, self.names = pickle.loads((folder / STATE).read_bytes())


class Streaming(OnSentences):
    """Streaming LDA, which scores and saves in its own way."""

    def scores(self, rows: Any) -> Any:
        return self.strategy.predict(rows)

    def save(self, folder: Path) -> int:
        self.strategy.save_model(folder, STATE)
        (folder / NAMES).write_text(json.dumps(self.names), encoding="utf-8")
        return bytes_in(folder)

    def load(self, folder: Path) -> None:
        self.strategy.load_model(folder, STATE)
        self.names = json.loads((folder / NAMES).read_text(encoding="utf-8"))


def _import_torchvision() -> None:
    import torch

    try:
        import torchvision
    except RuntimeError:
        for name in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )
        import torchvision  # noqa: F401


def _replay() -> Any:
    import torch
    from avalanche.models import IncrementalClassifier
    from avalanche.training import ClassBalancedBuffer
    from avalanche.training.plugins import ReplayPlugin
    from avalanche.training.supervised import Naive

    torch.manual_seed(0)
    model = IncrementalClassifier(SIZE)
    kept = KEPT * MOST_CLASSES
    memory = ClassBalancedBuffer(kept, adaptive_size=False, total_num_classes=MOST_CLASSES)
    return Naive(
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=LEARNING_RATE),
        criterion=torch.nn.CrossEntropyLoss(),
        train_mb_size=BATCH,
        train_epochs=EPOCHS,
        plugins=[ReplayPlugin(kept, storage_policy=memory)],
        evaluator=None,
    )


def _streaming() -> Any:
    import torch
    from avalanche.training.supervised import StreamingLDA

    torch.manual_seed(0)
    return StreamingLDA(
        slda_model=torch.nn.Identity(),
        criterion=torch.nn.CrossEntropyLoss(),
        input_size=SIZE,
        num_classes=MOST_CLASSES,
        train_mb_size=512,  # texts are learned one by one whatever it is; each batch costs a pseudoinverse
        evaluator=None,
    )


def _replaying(encoder: Path) -> Peer:
    return OnSentences(_replay, encoder)


def _streamed(encoder: Path) -> Peer:
    return Streaming(_streaming, encoder)


LEARNERS = {"Avalanche replay": _replaying, "Avalanche StreamingLDA": _streamed}
