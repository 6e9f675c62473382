"""The optimization loop and what belongs to it."""

from repcl.training.adversarial import adversarial_losses, ascend
from repcl.training.observer import Observer, Observers, Stage
from repcl.training.stage import (
    Learner,
    LossTerms,
    ParameterGroup,
    StageSettings,
    default_groups,
    run_stage,
)

__all__ = [
    "Learner",
    "LossTerms",
    "Observer",
    "Observers",
    "ParameterGroup",
    "Stage",
    "StageSettings",
    "adversarial_losses",
    "ascend",
    "default_groups",
    "run_stage",
]
