"""What a user holds: a classifier that keeps learning, and the folder it lives in."""

from repcl.classifier.estimator import ContinualClassifier
from repcl.classifier.folder import ModelFolder
from repcl.classifier.guard import ForgettingWarning, Update
from repcl.classifier.inputs import InvalidInput

__all__ = ["ContinualClassifier", "ForgettingWarning", "InvalidInput", "ModelFolder", "Update"]
