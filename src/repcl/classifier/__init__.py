"""What a user holds: a classifier that keeps learning, and the folder it lives in."""

from typing import TYPE_CHECKING

from repcl.lazy import lazy_names

if TYPE_CHECKING:
    from repcl.classifier.estimator import ContinualClassifier
    from repcl.classifier.guard import ForgettingWarning
    from repcl.classifier.inputs import InvalidInput
    from repcl.classifier.store.folder import ModelFolder
    from repcl.classifier.store.records import Update

__all__ = ["ContinualClassifier", "ForgettingWarning", "InvalidInput", "ModelFolder", "Update"]

__getattr__ = lazy_names(
    __name__,
    {
        "estimator": ["ContinualClassifier"],
        "guard": ["ForgettingWarning"],
        "inputs": ["InvalidInput"],
        "store.folder": ["ModelFolder"],
        "store.records": ["Update"],
    },
)
