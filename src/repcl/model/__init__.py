"""Encoders, readouts and heads."""

from repcl.model.copies import follow, frozen_copy, momentum_copy
from repcl.model.disentangled import DisentangledHead, Reading
from repcl.model.embedding import Embedder, fingerprint
from repcl.model.encoder import Encoder
from repcl.model.encoders import DEFAULT_ENCODER, ENCODERS, best_device, check_encoder, load_encoder
from repcl.model.heads import ClassifierHead, ContrastHead, FeatureMapHead, GrowingLinear, TokenHead
from repcl.model.layered import FROZEN_READOUTS
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
    "RandomFeatures",
    "Reading",
    "Readout",
    "TokenHead",
    "best_device",
    "check_encoder",
    "choose_ridge",
    "fingerprint",
    "follow",
    "frozen_copy",
    "load_encoder",
    "momentum_copy",
    "on_grid",
    "ridge_weights",
]
