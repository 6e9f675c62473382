"""Between which values a setting is searched."""

import pytest

from repcl.methods.search_ranges import Choices, Range


@pytest.mark.parametrize(
    ("drawn", "rounded"), [(0.123456, 0.123), (0.1004, 0.1), (0.0999, 0.1), (0.99951, 0.9995), (0.5, 0.5)]
)
def test_a_drawn_number_has_three_digits_and_stays_in_its_range(drawn: float, rounded: float) -> None:
    assert Range(0.1, 0.9995).rounded(drawn) == rounded


def test_a_whole_number_is_tried_as_it_is() -> None:
    assert Range(1, 5000, is_whole=True).rounded(1234) == 1234


def test_a_range_is_idle_beside_any_of_the_values_that_make_it_so() -> None:
    searched = Range(0.0, 1.0, unless={"contrast": "none", "epochs": 0})
    assert not searched.is_idle({"contrast": "supinfonce", "epochs": 1})
    assert searched.is_idle({"contrast": "none", "epochs": 1})
    assert searched.is_idle({"contrast": "supinfonce", "epochs": 0})


def test_a_range_is_widened_no_farther_than_needed() -> None:
    assert Range(1.0, 2.0, is_log=True).including(3.0) == Range(1.0, 3.0, is_log=True)
    assert Range(1.0, 2.0).including(0.5) == Range(0.5, 2.0)


def test_choices_hold_every_value_once() -> None:
    assert Choices(("a", "b")).including("c") == Choices(("a", "b", "c"))
    assert Choices(("a", "b")).including("a") == Choices(("a", "b"))
