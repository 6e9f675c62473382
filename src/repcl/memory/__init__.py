"""What a learner keeps of old classes, and how it is chosen."""

from repcl.memory.exemplars import ExemplarMemory
from repcl.memory.prototypes import class_means
from repcl.memory.selection import nearest_to_centers, nearest_to_mean

__all__ = ["ExemplarMemory", "class_means", "nearest_to_centers", "nearest_to_mean"]
