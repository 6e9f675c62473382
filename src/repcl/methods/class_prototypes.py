"""Prototypes of all seen classes, for methods that predict with them."""

import torch
from torch import Tensor

from repcl.data import Task
from repcl.memory import class_means
from repcl.methods.base import Method


def class_prototypes(method: Method, task: Task, *, before: Tensor) -> Tensor:
    """Mean feature of the exemplars of every seen class, (classes, size), in evaluation mode.

    A class without exemplars (a memory smaller than the number of classes) has the mean of its new examples
    instead, and one without those the prototype it had.

    Args:
        method: whose exemplars, features and classes they are.
        task: the task being learned.
        before: (older classes, size) the prototypes until now.
    """
    examples = [*method.memory, *(new for new in task.train if not method.memory.of(new.label))]
    number = {name: place for place, name in enumerate(method.classes)}
    labels = torch.tensor([number[example.label] for example in examples], device=before.device)
    features = method.for_all(examples, method.exemplar_features).to(before.device)
    prototypes = class_means(features, labels, len(method.classes))
    is_lost = torch.bincount(labels, minlength=len(method.classes))[: len(before)] == 0
    prototypes[: len(before)][is_lost] = before[is_lost]
    return prototypes
