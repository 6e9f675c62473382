"""What a learner keeps of old classes, and how it is chosen."""

from repcl.memory.exemplars import ExemplarMemory
from repcl.memory.ledger import Ledger
from repcl.memory.prototypes import class_means
from repcl.memory.queue import KeyQueue
from repcl.memory.replay import SparseReplay, Step
from repcl.memory.rows import KeptRows
from repcl.memory.selection import nearest_to_centers, nearest_to_mean
from repcl.memory.sums import ClassSums, Moments

__all__ = [
    "ClassSums",
    "ExemplarMemory",
    "KeptRows",
    "KeyQueue",
    "Ledger",
    "Moments",
    "SparseReplay",
    "Step",
    "class_means",
    "nearest_to_centers",
    "nearest_to_mean",
]
