"""Rows kept of all examples: how one is found, forgotten and given to another class."""

import pytest
import torch

from repcl.errors import InvalidData
from repcl.methods.frozen.kept_rows import KeptRows


def kept(*rows: tuple[int, int], labels: list[int]) -> KeptRows:
    part = KeptRows(2)
    part.add(torch.tensor(rows, dtype=torch.int16), torch.tensor(labels))
    return part


def row(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int16)


def test_the_nearest_row_of_the_class_is_found() -> None:
    part = kept((10, 10), (10, 12), (10, 11), labels=[0, 0, 1])
    assert part.find(row(10, 11), 1) == 2
    assert part.find(row(10, 13), 0) == 1


@pytest.mark.parametrize(("found", "distance"), [(0, 1), (0, 2), (None, 3)])
def test_a_row_that_differs_by_more_than_two_steps_is_another_text(found: int | None, distance: int) -> None:
    assert kept((10, 10), labels=[0]).find(row(10, 10 - distance), 0) == found


def test_a_row_is_found_once_among_those_not_found_before() -> None:
    part = kept((10, 10), (10, 10), labels=[0, 0])
    assert part.find(row(10, 10), 0, but_not=[0]) == 1
    assert part.find(row(10, 10), 0, but_not=[0, 1]) is None


def test_rows_at_both_ends_of_their_range_are_far_apart() -> None:
    assert kept((32767, 0), labels=[0]).find(row(-32768, 0), 0) is None


def test_rows_are_forgotten_by_their_indices() -> None:
    part = kept((1, 1), (2, 2), (3, 3), labels=[0, 1, 2])
    part.remove([0, 2])
    assert (part.rows.tolist(), part.labels.tolist()) == ([[2, 2]], [1])


def test_rows_go_to_the_class_that_theirs_becomes_part_of_or_are_forgotten() -> None:
    part = kept((1, 1), (2, 2), (3, 3), labels=[0, 1, 2])
    part.regroup_rows([[2], [0]], 3)
    assert (part.rows.tolist(), part.labels.tolist()) == ([[1, 1], [3, 3]], [1, 0])


@pytest.mark.parametrize("labels", [[0, 2], [-1, 1]])
def test_loaded_rows_of_a_class_that_does_not_exist_are_refused(labels: list[int]) -> None:
    with pytest.raises(InvalidData, match=r"^2 kept embeddings do not belong to the 2 classes$"):
        kept((1, 1), (2, 2), labels=labels).check(2)


def test_loaded_rows_need_a_label_each() -> None:
    part = kept((1, 1), (2, 2), labels=[0, 1])
    part.check(2)
    part.labels = part.labels[:1]
    with pytest.raises(InvalidData, match="2 kept embeddings"):
        part.check(2)
