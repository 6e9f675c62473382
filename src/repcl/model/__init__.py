"""Encoders, readouts and heads; all but the list of bundled encoders is loaded when it is used."""

from typing import TYPE_CHECKING

from repcl.lazy import lazy_names
from repcl.model.bundled import DEFAULT_ENCODER, ENCODERS

if TYPE_CHECKING:
    from repcl.model.class_rows import Merge, RowOwner, lowest_row, mean_row, total_row
    from repcl.model.embedding import Embedder, fingerprint
    from repcl.model.encoder import Encoder
    from repcl.model.encoders import best_device, check_encoder, chosen_device, load_encoder
    from repcl.model.heads import ClassifierHead, GrowingLinear
    from repcl.model.layered import FROZEN_DEPTHS, LAST_LAYER
    from repcl.model.processes import ALONE, Processes
    from repcl.model.readouts import READOUTS, Readout
    from repcl.model.vocabulary import (
        OccurringRows,
        drop_other_rows,
        follow_decay,
        only_rows,
        output_indices,
        output_rows,
    )

__all__ = [
    "ALONE",
    "DEFAULT_ENCODER",
    "ENCODERS",
    "FROZEN_DEPTHS",
    "LAST_LAYER",
    "READOUTS",
    "ClassifierHead",
    "Embedder",
    "Encoder",
    "GrowingLinear",
    "Merge",
    "OccurringRows",
    "Processes",
    "Readout",
    "RowOwner",
    "best_device",
    "check_encoder",
    "chosen_device",
    "drop_other_rows",
    "fingerprint",
    "follow_decay",
    "load_encoder",
    "lowest_row",
    "mean_row",
    "only_rows",
    "output_indices",
    "output_rows",
    "total_row",
]

__getattr__ = lazy_names(
    __name__,
    {
        "class_rows": ["Merge", "RowOwner", "lowest_row", "mean_row", "total_row"],
        "embedding": ["Embedder", "fingerprint"],
        "encoder": ["Encoder"],
        "encoders": ["best_device", "check_encoder", "chosen_device", "load_encoder"],
        "heads": ["ClassifierHead", "GrowingLinear"],
        "layered": ["FROZEN_DEPTHS", "LAST_LAYER"],
        "processes": ["ALONE", "Processes"],
        "readouts": ["READOUTS", "Readout"],
        "vocabulary": [
            "OccurringRows",
            "drop_other_rows",
            "follow_decay",
            "only_rows",
            "output_indices",
            "output_rows",
        ],
    },
)
