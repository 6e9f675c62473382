"""Examples, tasks, streams and batches; only batches need torch, which is loaded when they are used."""

from typing import TYPE_CHECKING

from repcl.data.examples import Example, InputKind, Provenance, Span, Task, TaskStream, TokenizedExample
from repcl.data.order import class_order, equal_parts, round_seed
from repcl.lazy import lazy_names

if TYPE_CHECKING:
    from repcl.data.batches import Batch, Batches

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

__getattr__ = lazy_names(
    __name__,
    {
        "batches": ["Batch", "Batches"],
    },
)
