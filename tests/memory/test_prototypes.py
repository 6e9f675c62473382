"""Class means against numbers worked out by hand."""

import torch

from repcl.memory import class_means


def test_mean_of_each_class() -> None:
    features = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    means = class_means(features, torch.tensor([0, 1, 0]), 2)
    assert means.tolist() == [[0.5, 0.5], [2.0, 0.0]]


def test_a_class_without_features_has_a_mean_of_zeros() -> None:
    assert class_means(torch.ones(1, 2), torch.tensor([2]), 3).tolist() == [
        [0.0, 0.0],
        [0.0, 0.0],
        [1.0, 1.0],
    ]


def test_no_features_at_all_give_zeros_and_no_classes_give_no_rows() -> None:
    nothing = torch.empty(0, 2), torch.empty(0, dtype=torch.long)
    assert class_means(*nothing, 1).tolist() == [[0.0, 0.0]]
    assert class_means(*nothing, 0).shape == (0, 2)
