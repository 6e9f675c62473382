"""Encoders, readouts and heads; all but the list of bundled encoders is loaded when it is used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from repcl.model.bundled import DEFAULT_ENCODER, ENCODERS

if TYPE_CHECKING:
    from repcl.model.class_rows import Merge, RowOwner, lowest_row, mean_row, total_row
    from repcl.model.embedding import Embedder, fingerprint
    from repcl.model.encoder import Encoder
    from repcl.model.encoders import best_device, check_encoder, chosen_device, load_encoder
    from repcl.model.heads import ClassifierHead, GrowingLinear
    from repcl.model.layered import FROZEN_READOUTS
    from repcl.model.processes import ALONE, Processes
    from repcl.model.readouts import READOUTS, Readout

__all__ = [
    "ALONE",
    "DEFAULT_ENCODER",
    "ENCODERS",
    "FROZEN_READOUTS",
    "READOUTS",
    "ClassifierHead",
    "Embedder",
    "Encoder",
    "GrowingLinear",
    "Merge",
    "Processes",
    "Readout",
    "RowOwner",
    "best_device",
    "check_encoder",
    "chosen_device",
    "fingerprint",
    "load_encoder",
    "lowest_row",
    "mean_row",
    "total_row",
]

_MODULES = {
    "ALONE": "processes",
    "FROZEN_READOUTS": "layered",
    "READOUTS": "readouts",
    "ClassifierHead": "heads",
    "Embedder": "embedding",
    "Encoder": "encoder",
    "GrowingLinear": "heads",
    "Merge": "class_rows",
    "Processes": "processes",
    "Readout": "readouts",
    "RowOwner": "class_rows",
    "best_device": "encoders",
    "check_encoder": "encoders",
    "chosen_device": "encoders",
    "fingerprint": "embedding",
    "load_encoder": "encoders",
    "lowest_row": "class_rows",
    "mean_row": "class_rows",
    "total_row": "class_rows",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
