"""Encoders, readouts and heads."""

from repcl.model.copies import follow, frozen_copy, momentum_copy
from repcl.model.encoder import Encoder
from repcl.model.encoders import DEFAULT_ENCODER, ENCODERS, best_device, check_encoder, load_encoder
from repcl.model.heads import ClassifierHead, ContrastHead, FeatureMapHead, GrowingLinear, TokenHead
from repcl.model.readouts import READOUTS, Readout

__all__ = [
    "DEFAULT_ENCODER",
    "ENCODERS",
    "READOUTS",
    "ClassifierHead",
    "ContrastHead",
    "Encoder",
    "FeatureMapHead",
    "GrowingLinear",
    "Readout",
    "TokenHead",
    "best_device",
    "check_encoder",
    "follow",
    "frozen_copy",
    "load_encoder",
    "momentum_copy",
]
