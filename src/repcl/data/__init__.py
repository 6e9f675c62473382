"""Examples, tasks, streams and batches; only batches need torch, which is loaded when they are used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from repcl.data.examples import Example, InputKind, Provenance, Span, Task, TaskStream
from repcl.data.order import class_order, equal_parts, round_seed

if TYPE_CHECKING:
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
    "round_seed",
]


def __getattr__(name: str) -> Any:
    if name not in ("Batch", "Batches", "TokenizedExample"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("repcl.data.batches"), name)
