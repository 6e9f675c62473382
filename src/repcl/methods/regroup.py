"""Classes removed, merged or renamed: what becomes of the rows and exemplars that belong to them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

import torch
from torch import Tensor, nn

from repcl.data import Example
from repcl.errors import InvalidSetting
from repcl.memory import ExemplarMemory

ROWS = ("head.output.weight", "head.output.bias", "prototypes")
"""Tensors with a row for each class, in the methods that have them."""


def regroup_rows(method: nn.Module, places: Sequence[Sequence[int]], classes: int) -> None:
    """Give classifier and prototypes one row for each group, the mean of the rows it is made of.

    Args:
        method: whose tensors they are.
        places: the old rows that each new one is made of.
        classes: how many there were; rows behind them are spare and stay.
    """
    for name, rows in _rows_of_classes(method).items():
        spare = [[place] for place in range(classes, len(rows))]
        kept = torch.stack([rows[list(group)].mean(dim=0) for group in [*places, *spare]])
        path, _, leaf = name.rpartition(".")
        owner = method.get_submodule(path)
        setattr(owner, leaf, nn.Parameter(kept) if isinstance(getattr(owner, leaf), nn.Parameter) else kept)


def regroup_memory(memory: ExemplarMemory, groups: Mapping[str, Sequence[str]]) -> ExemplarMemory:
    """A memory with these classes; a merged one takes the most telling exemplars of its parts in turn."""
    fresh = ExemplarMemory(memory.per_class, memory.total)
    limit = memory.budget(len(groups)) if memory.per_class else None  # `joint` keeps everything
    for name, parts in groups.items():
        turns = zip_longest(*(memory.of(part) for part in parts))
        in_turn = [example for turn in turns for example in turn if example is not None]
        unique = dict.fromkeys(_relabeled(example, name) for example in in_turn)
        if unique:
            fresh.keep(name, list(unique)[:limit])
    return fresh


def _relabeled(example: Example, name: str) -> Example:
    return example if example.label == name else replace(example, label=name)


def _rows_of_classes(method: nn.Module) -> dict[str, Tensor]:
    """The tensors with a row for each class; a method that keeps others has to override `regroup_classes`."""
    parameters = dict(method.named_parameters())
    kept = {name: tensor for name, tensor in method.state_dict().items() if not name.startswith("encoder.")}
    for name in kept:
        if name not in parameters and name not in ROWS:
            raise InvalidSetting(
                f"{type(method).__name__} keeps {name!r}, of which no row belongs to one class, so classes "
                "cannot be merged or removed: teach a new classifier instead."
            )
    return {name: kept[name] for name in ROWS if name in kept}
