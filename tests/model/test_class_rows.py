"""Rows of classes that are merged or removed, as the module that owns them declares it."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import nn

from repcl.model import GrowingLinear, Merge, RowOwner, lowest_row, mean_row, total_row


class Owner(RowOwner):
    """Four classes, each with three kinds of rows; and a tensor that belongs to no class."""

    class_rows: ClassVar[Mapping[str, Merge]] = {"means": mean_row, "sums": total_row, "first": lowest_row}
    other_rows = ("examples",)

    def __init__(self) -> None:
        super().__init__()
        self.means = nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]))
        self.register_buffer("sums", torch.tensor([1, 2, 3, 4]))
        self.register_buffer("first", torch.tensor([4, 3, 2, 1]))
        self.register_buffer("examples", torch.arange(9))


def test_rows_of_merged_classes_become_one_as_declared() -> None:
    owner = Owner()
    owner.regroup_rows([[1], [0, 3], [2]], 4)
    assert owner.means.tolist() == [[3.0, 4.0], [4.0, 5.0], [5.0, 6.0]]
    assert owner.sums.tolist() == [2, 5, 3]
    assert owner.first.tolist() == [3, 1, 2]


def test_rows_of_classes_in_no_group_are_dropped() -> None:
    owner = Owner()
    owner.regroup_rows([[0], [3]], 4)
    assert owner.sums.tolist() == [1, 4]


def test_nothing_is_left_of_no_classes() -> None:
    owner = Owner()
    owner.regroup_rows([], 4)
    assert owner.means.shape == (0, 2)
    assert owner.sums.tolist() == []


def test_spare_rows_behind_the_classes_stay() -> None:
    owner = Owner()
    owner.regroup_rows([[0, 1]], 2)
    assert owner.sums.tolist() == [3, 3, 4]


def test_parameters_stay_trainable_and_buffers_stay_buffers() -> None:
    owner = Owner()
    owner.regroup_rows([[0], [1, 2]], 4)
    assert isinstance(owner.means, nn.Parameter)
    assert owner.means.requires_grad
    assert "sums" in dict(owner.named_buffers())


def test_rows_of_something_else_are_left_alone() -> None:
    owner = Owner()
    owner.regroup_rows([[0]], 4)
    assert owner.examples.tolist() == list(range(9))


def test_a_classifier_without_bias_has_the_mean_row_of_merged_classes() -> None:
    layer = GrowingLinear(2)
    layer.weight = nn.Parameter(torch.tensor([[1.0, 0.0], [3.0, 2.0]]))
    layer.regroup_rows([[0, 1]], 2)
    assert layer.weight.tolist() == [[2.0, 1.0]]
    assert layer.bias is None
