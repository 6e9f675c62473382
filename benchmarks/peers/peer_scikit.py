"""What a user would build first: embeddings of all texts, and scikit-learn on top.

Embeddings are the mean of the encoder's last layer at unit length, as sentence-transformers makes them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from contract import Peer, bytes_in

REQUIREMENTS: tuple[str, ...] = ()
FILE = "embeddings.npz"
MOST_TRIED, STRENGTHS = 2000, (1.0, 10.0, 100.0)


class OnEmbeddings:
    """A scikit-learn classifier that is fitted anew on all embeddings after each task.

    Args:
        make: the classifier.
        encoder: a folder.
    """

    def __init__(self, make: Callable[[], Any], encoder: Path) -> None:
        from repcl.model import Embedder, load_encoder
        from repcl.model.readouts import SentenceReadout

        self.make, self.model = make, make()
        self.embedder = Embedder(load_encoder(str(encoder), SentenceReadout(), device="cpu").eval())
        self.rows, self.labels = np.zeros((0, 384), dtype=np.float32), np.zeros(0, dtype=np.str_)

    def learn(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        self.rows = np.concatenate([self.rows, self.embed(texts)])
        self.labels = np.concatenate([self.labels, np.array(labels)])
        self.model = self.make().fit(self.rows, self.labels)

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [str(label) for label in self.model.predict(self.embed(texts))]

    def save(self, folder: Path) -> int:
        np.savez(folder / FILE, rows=self.rows, labels=self.labels)
        return bytes_in(folder)

    def load(self, folder: Path) -> None:
        with np.load(folder / FILE) as kept:
            self.rows, self.labels = kept["rows"], kept["labels"]
        self.model = self.make().fit(self.rows, self.labels)

    def embed(self, texts: Sequence[str]) -> Any:
        from repcl.data import Example

        rows = self.embedder([Example(text, "") for text in texts]).numpy()
        return rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-12)


class ChosenLogistic:
    """Logistic regression; its C is chosen by a fifth of at most `MOST_TRIED` learned texts."""

    def fit(self, rows: Any, labels: Any) -> "ChosenLogistic":
        some = slice(None, None, -(-len(rows) // MOST_TRIED))
        is_held = np.arange(len(rows[some])) % 5 == 0

        def held_out_score(strength: float) -> float:
            model = _logistic(strength).fit(rows[some][~is_held], labels[some][~is_held])
            return float(model.score(rows[some][is_held], labels[some][is_held]))

        self.model = _logistic(max(STRENGTHS, key=held_out_score)).fit(rows, labels)
        return self

    def predict(self, rows: Any) -> Any:
        return self.model.predict(rows)


def _logistic(strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, max_iter=1000)


def _nearest_mean() -> Any:
    from sklearn.neighbors import NearestCentroid

    return NearestCentroid()


def _nearest_texts() -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(n_neighbors=5, weights="distance")


def _on_embeddings(make: Callable[[], Any]) -> Callable[[Path], Peer]:
    return lambda encoder: OnEmbeddings(make, encoder)


LEARNERS = {
    "logistic regression on all embeddings": _on_embeddings(ChosenLogistic),
    "nearest mean": _on_embeddings(_nearest_mean),
    "five nearest texts": _on_embeddings(_nearest_texts),
}
