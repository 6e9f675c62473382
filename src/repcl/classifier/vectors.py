"""Texts as vectors of unit length: those asked about, and those that are kept of what was learned."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from repcl.classifier.state import ClassifierState
from repcl.data import Example
from repcl.methods.frozen.method import FrozenMethod

Vectors = NDArray[np.float64]
Labels = NDArray[np.int64]


def embed(state: ClassifierState, examples: Sequence[Example]) -> Vectors:
    """Representations at unit length, (examples, size)."""
    method = state.method
    if not examples:
        return np.zeros((0, method.encoder.representation_size))
    if isinstance(method, FrozenMethod):
        return _unit(method.embed(examples).double().numpy())
    return _unit(method.for_all(examples, method.encoder.represent).double().numpy())


def kept(state: ClassifierState) -> tuple[Vectors, Labels]:
    """What is kept of learned texts, with classes: all embeddings, or exemplars and held-out texts."""
    method = state.method
    if isinstance(method, FrozenMethod) and method.keeps_rows:
        rows = method.ledger.kept
        return _unit(rows.rows.double().numpy()), rows.labels.numpy().astype(np.int64)
    column = {name: index for index, name in enumerate(method.classes)}
    examples = list(dict.fromkeys([*method.memory, *state.held_out]))
    return embed(state, examples), np.array([column[one.label] for one in examples], dtype=np.int64)


def of_last_layer(state: ClassifierState, vectors: Vectors) -> Vectors:
    """The part of sentences' vectors that was read from the deepest layer, at unit length.

    By it alone groups of few or uneven numbers of texts are better; of twenty texts and more they are better
    on BANKING77, and worse on CLINC150.
    """
    readout = state.method.encoder.readout
    if readout.kind != "sentence" or len(readout.depths) == 1:
        return vectors
    deepest = int(np.argmax(readout.depths))
    return _unit(vectors.reshape(len(vectors), len(readout.depths), -1)[:, deepest])


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12)
    return unit
