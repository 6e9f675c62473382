"""Numbers too small for a normal float: zero within, themselves outside."""

from collections.abc import Iterator

import pytest
import torch

from repcl.training.tiny_numbers import SMALLEST_NORMAL, tiny_numbers_are_zero

pytestmark = pytest.mark.skipif(
    not torch.set_flush_denormal(False), reason="this processor cannot take them for zero"
)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    torch.set_flush_denormal(False)


def half_of_the_smallest() -> float:
    return (torch.tensor(SMALLEST_NORMAL) * 0.5).item()


def test_within_they_are_zero() -> None:
    with tiny_numbers_are_zero():
        assert half_of_the_smallest() == 0.0


def test_normal_numbers_stay() -> None:
    with tiny_numbers_are_zero():
        assert (torch.tensor(SMALLEST_NORMAL) * 2).item() == 2 * SMALLEST_NORMAL


def test_gradients_are_zero_there() -> None:
    weight = torch.ones((), requires_grad=True)
    with tiny_numbers_are_zero():
        (weight * SMALLEST_NORMAL * 0.5).backward()
    assert weight.grad is not None
    assert weight.grad.item() == 0.0


def test_afterward_they_are_themselves_again() -> None:
    with tiny_numbers_are_zero():
        pass
    assert half_of_the_smallest() == 2.0**-127


def test_they_are_themselves_again_after_an_error() -> None:
    with pytest.raises(KeyError), tiny_numbers_are_zero():
        raise KeyError
    assert half_of_the_smallest() == 2.0**-127


def test_who_had_them_as_zero_before_keeps_that() -> None:
    torch.set_flush_denormal(True)
    with tiny_numbers_are_zero():
        pass
    assert half_of_the_smallest() == 0.0
