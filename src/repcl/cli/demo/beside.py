"""Other ways to learn the two weeks of the demo, from stored runs: they take minutes."""

import sys
from dataclasses import dataclass
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class OtherWay:
    """Accuracies of a way to learn, means over rounds.

    Attributes:
        name: what it is, in a few words.
        old_before: on the first week's classes after that week; None where nothing was trained by then.
        old: on the first week's classes after the second week.
        new: on the second week's classes.
        all: on all classes.
    """

    name: str
    old_before: float | None
    old: float
    new: float
    all: float


@dataclass(frozen=True)
class StoredRuns:
    """The other ways, and where their numbers come from."""

    ways: tuple[OtherWay, ...]
    rounds: int
    command: str


def stored_runs() -> StoredRuns:
    """What comes with the package."""
    text = resources.files("repcl.cli.demo").joinpath("stored.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)
    ways = tuple(OtherWay(old_before=way.pop("old_before", None), **way) for way in found["ways"])
    return StoredRuns(ways, found["rounds"], found["command"])
