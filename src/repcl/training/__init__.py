"""The optimization loop and what belongs to it."""

from repcl.training.adversarial import adversarial_losses, ascend
from repcl.training.observer import Observer, Observers, Stage
from repcl.training.settings import StageSettings
from repcl.training.stage import Learner, LossTerms, run_stage

__all__ = [
    "Learner",
    "LossTerms",
    "Observer",
    "Observers",
    "Stage",
    "StageSettings",
    "adversarial_losses",
    "ascend",
    "run_stage",
]
