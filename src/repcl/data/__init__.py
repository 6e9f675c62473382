"""Examples, tasks, streams and batches."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from repcl.data.examples import Example, InputKind, Provenance, Span, Task, TaskStream
from repcl.data.order import class_order, equal_parts, round_seed

if TYPE_CHECKING:
    from repcl.data.augmentation import mask_tokens, same_class_partners
    from repcl.data.batches import Batch, Batches, TokenizedExample

__all__ = [
    "Batch",
    "Batches",
    "Example",
    "InputKind",
    "Provenance",
    "Span",
    "Task",
    "TaskStream",
    "TokenizedExample",
    "class_order",
    "equal_parts",
    "mask_tokens",
    "round_seed",
    "same_class_partners",
]

_NEED_TORCH = {
    "Batch": "batches",
    "Batches": "batches",
    "TokenizedExample": "batches",
    "mask_tokens": "augmentation",
    "same_class_partners": "augmentation",
}


def __getattr__(name: str) -> Any:
    # examples can be read without torch, which takes a second to import
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_NEED_TORCH[name]}"), name)
