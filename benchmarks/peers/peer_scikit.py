"""What a user would build first: embeddings of all texts, and scikit-learn on top.

Embeddings are the mean of the encoder's last layer at unit length, as sentence-transformers makes them.
"""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from contract import Peer, bytes_in

REQUIREMENTS: tuple[str, ...] = ()
FILE = "embeddings.npz"
EPOCHS, MOST_CLASSES = 5, 200
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


class PartialFit:
    """scikit-learn's own way to go on learning: each task is seen in `EPOCHS` passes, and no text is kept.

    `partial_fit` wants all classes in its first call; so there is room for `MOST_CLASSES`, which get their
    names as they come.

    Args:
        encoder: a folder.
    """

    def __init__(self, encoder: Path) -> None:
        from sklearn.linear_model import SGDClassifier

        self.embed = OnEmbeddings(_nearest_mean, encoder).embed
        self.model, self.names = SGDClassifier(loss="log_loss", random_state=0), list[str]()

    def learn(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        self.names += sorted(set(labels) - set(self.names))
        rows, targets = self.embed(texts), np.array([self.names.index(label) for label in labels])
        random = np.random.default_rng(0)
        for _ in range(EPOCHS):
            order = random.permutation(len(rows))
            self.model.partial_fit(rows[order], targets[order], classes=np.arange(MOST_CLASSES))

    def predict(self, texts: Sequence[str]) -> list[str]:
        scores = self.model.decision_function(self.embed(texts))[:, : len(self.names)]
        return [self.names[best] for best in scores.argmax(axis=1)]

    def save(self, folder: Path) -> int:
        (folder / FILE).write_bytes(pickle.dumps((self.model, self.names)))
        return bytes_in(folder)

    def load(self, folder: Path) -> None:
        self.model, self.names = pickle.loads((folder / FILE).read_bytes())


def _on_embeddings(make: Callable[[], Any]) -> Callable[[Path], Peer]:
    return lambda encoder: OnEmbeddings(make, encoder)


LEARNERS = {
    "logistic regression on all embeddings": _on_embeddings(ChosenLogistic),
    "nearest mean": _on_embeddings(_nearest_mean),
    "five nearest texts": _on_embeddings(_nearest_texts),
    "SGDClassifier.partial_fit": PartialFit,
}
