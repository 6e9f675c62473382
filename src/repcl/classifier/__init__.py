"""What a user holds: a classifier that keeps learning, and the folder it lives in."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repcl.classifier.estimator import ContinualClassifier
    from repcl.classifier.guard import ForgettingWarning
    from repcl.classifier.inputs import InvalidInput
    from repcl.classifier.store.folder import ModelFolder
    from repcl.classifier.store.records import Update

__all__ = ["ContinualClassifier", "ForgettingWarning", "InvalidInput", "ModelFolder", "Update"]

_MODULES = {
    "ContinualClassifier": "estimator",
    "ForgettingWarning": "guard",
    "InvalidInput": "inputs",
    "ModelFolder": "store.folder",
    "Update": "store.records",
}


def __getattr__(name: str) -> Any:
    # a model folder can be looked into without torch and scikit-learn, which take seconds to import
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
