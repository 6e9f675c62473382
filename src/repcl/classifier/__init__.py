"""What a user holds: a classifier that keeps learning, and the folder it lives in."""

from typing import TYPE_CHECKING

from repcl.lazy import lazy_names

if TYPE_CHECKING:
    from repcl.classifier.estimator import ContinualClassifier
    from repcl.classifier.guard import ForgettingWarning
    from repcl.classifier.inputs import InvalidInput
    from repcl.classifier.labels import LabelWarning
    from repcl.classifier.store.folder import ModelFolder
    from repcl.classifier.store.records import Update

__all__ = [
    "ContinualClassifier",
    "ForgettingWarning",
    "InvalidInput",
    "LabelWarning",
    "ModelFolder",
    "Update",
]

__getattr__ = lazy_names(
    __name__,
    {
        "estimator": ["ContinualClassifier"],
        "guard": ["ForgettingWarning"],
        "inputs": ["InvalidInput"],
        "labels": ["LabelWarning"],
        "store.folder": ["ModelFolder"],
        "store.records": ["Update"],
    },
)
