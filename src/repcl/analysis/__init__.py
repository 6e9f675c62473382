"""Questions asked of finished runs: mutual information, spectrum, drift, transfer; arrays in, numbers out."""

from repcl.analysis.bounds import fano_bound
from repcl.analysis.drift import Confusion, Movement, centroid_movements, taken_for_newer
from repcl.analysis.estimator_settings import AUTHORS, EstimatorSettings
from repcl.analysis.mutual_information import (
    MutualInformation,
    class_information,
    input_information,
    pair_information,
)
from repcl.analysis.snapshots import Snapshot, Snapshots
from repcl.analysis.spectrum import Spectrum, spectrum
from repcl.analysis.transfer import (
    SHOTS,
    ProbeMatrix,
    forward_transfer,
    masked_backward_transfer,
    probe_accuracy,
    probe_matrix,
    steps_to_halve,
)

__all__ = [
    "AUTHORS",
    "SHOTS",
    "Confusion",
    "EstimatorSettings",
    "Movement",
    "MutualInformation",
    "ProbeMatrix",
    "Snapshot",
    "Snapshots",
    "Spectrum",
    "centroid_movements",
    "class_information",
    "fano_bound",
    "forward_transfer",
    "input_information",
    "masked_backward_transfer",
    "pair_information",
    "probe_accuracy",
    "probe_matrix",
    "spectrum",
    "steps_to_halve",
    "taken_for_newer",
]
