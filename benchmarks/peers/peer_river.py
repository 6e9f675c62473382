"""river: learners that see one text at a time, on sentence embeddings."""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contract import Peer, bytes_in
from sentences import Sentences

REQUIREMENTS = ("torch==2.13.0", "transformers", "river==0.26.1")
FILE = "learner.pickle"


class OneByOne:
    """A river classifier.

    Args:
        make: the classifier.
        encoder: a folder.
    """

    def __init__(self, make: Callable[[], Any], encoder: Path) -> None:
        self.learner, self.embed = make(), Sentences(encoder)

    def learn(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        for row, label in zip(self.embed(texts), labels, strict=True):
            self.learner.learn_one(_numbered(row), label)

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [str(self.learner.predict_one(_numbered(row))) for row in self.embed(texts)]

    def save(self, folder: Path) -> int:
        (folder / FILE).write_bytes(pickle.dumps(self.learner))
        return bytes_in(folder)

    def load(self, folder: Path) -> None:
        self.learner = pickle.loads((folder / FILE).read_bytes())


def _numbered(row: Any) -> dict[int, float]:
    return dict(enumerate(row.tolist()))


def _naive_bayes() -> Any:
    from river.naive_bayes import GaussianNB

    return GaussianNB()


def _softmax() -> Any:
    from river.linear_model import SoftmaxRegression

    return SoftmaxRegression()


def _on_sentences(make: Callable[[], Any]) -> Callable[[Path], Peer]:
    return lambda encoder: OneByOne(make, encoder)


LEARNERS = {
    "river GaussianNB": _on_sentences(_naive_bayes),
    "river SoftmaxRegression": _on_sentences(_softmax),
}
