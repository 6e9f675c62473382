"""Between which values `repcl tune` searches a setting; every `Settings` class names its own in `search`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

SIGNIFICANT_DIGITS = 3  # of what is tried: more would suggest a precision that no search has


@dataclass(frozen=True)
class Range:
    """All numbers from `low` to `high`, drawn evenly or evenly in their logarithm.

    `unless` names values of other settings, any of which makes this one idle: not worth a search.
    """

    low: float
    high: float
    is_log: bool = False
    is_whole: bool = False
    unless: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that must be valid for the whole range to be."""
        return self.low, self.high

    def including(self, value: Any) -> "Range":
        """The range, widened as far as needed to hold a number."""
        return replace(self, low=min(self.low, value), high=max(self.high, value))

    def is_idle(self, settings: Mapping[str, Any]) -> bool:
        """Whether it changes nothing beside these settings."""
        return any(settings[key] == value for key, value in self.unless.items())

    def rounded(self, value: float) -> float:
        """A drawn number in a form that people can read."""
        if self.is_whole:
            return value
        return min(max(float(f"{value:.{SIGNIFICANT_DIGITS}g}"), self.low), self.high)


@dataclass(frozen=True)
class Choices:
    """One of several values."""

    values: tuple[Any, ...]

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that must be valid."""
        return self.values

    def including(self, value: Any) -> "Choices":
        """The choices, and one more if it is not among them."""
        return Choices(tuple(dict.fromkeys((*self.values, value))))

    def rounded(self, value: Any) -> Any:
        """A drawn value as it is."""
        return value


Dimension = Range | Choices
