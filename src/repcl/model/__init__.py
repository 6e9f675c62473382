"""Encoders, readouts and heads."""

from repcl.model.copies import follow, frozen_copy, momentum_copy
from repcl.model.disentangled import DisentangledHead, Reading
from repcl.model.embedding import Embedder, fingerprint
from repcl.model.encoder import Encoder
from repcl.model.encoders import (
    DEFAULT_ENCODER,
    ENCODERS,
    best_device,
    check_encoder,
    chosen_device,
    load_encoder,
)
from repcl.model.heads import ClassifierHead, ContrastHead, FeatureMapHead, GrowingLinear, TokenHead
from repcl.model.layered import FROZEN_READOUTS
from repcl.model.processes import (
    Processes,
    average_gradients,
    is_equal_everywhere,
    of_the_first,
    processes,
    working_as,
)
from repcl.model.random_features import FEATURE_STEPS, REPRESENTATION_STEPS, RandomFeatures, on_grid
from repcl.model.readouts import READOUTS, Readout
from repcl.model.ridge import choose_ridge, ridge_weights

__all__ = [
    "DEFAULT_ENCODER",
    "ENCODERS",
    "FEATURE_STEPS",
    "FROZEN_READOUTS",
    "READOUTS",
    "REPRESENTATION_STEPS",
    "ClassifierHead",
    "ContrastHead",
    "DisentangledHead",
    "Embedder",
    "Encoder",
    "FeatureMapHead",
    "GrowingLinear",
    "Processes",
    "RandomFeatures",
    "Reading",
    "Readout",
    "TokenHead",
    "average_gradients",
    "best_device",
    "check_encoder",
    "choose_ridge",
    "chosen_device",
    "fingerprint",
    "follow",
    "frozen_copy",
    "is_equal_everywhere",
    "load_encoder",
    "momentum_copy",
    "of_the_first",
    "on_grid",
    "processes",
    "ridge_weights",
    "working_as",
]
