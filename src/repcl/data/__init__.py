"""Examples, tasks, streams and batches."""

from repcl.data.augmentation import mask_tokens, same_class_partners
from repcl.data.batches import Batch, Batches, TokenizedExample
from repcl.data.examples import Example, InputKind, Provenance, Span, Task, TaskStream
from repcl.data.order import class_order, equal_parts, round_seed

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
