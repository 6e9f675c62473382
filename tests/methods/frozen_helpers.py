"""What tests of the frozen learners share."""

from collections.abc import Sequence

from repcl.data import Example
from repcl.methods.frozen.method import FrozenMethod


def forget(method: FrozenMethod, examples: Sequence[Example]) -> None:
    """Take examples out and solve again without the classes that are empty now, as the classifier does."""
    method.take_back(examples, are_known=False)
    touched, left = {example.label for example in examples}, method.class_sizes()
    method.regroup_classes({name: [name] for name in method.classes if name not in touched or left[name]})
