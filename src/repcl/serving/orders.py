"""What a job is asked to do to a model, as it travels to the learning process."""

from dataclasses import dataclass

from repcl.data import Example


@dataclass(frozen=True)
class Learn:
    """Teach texts; `collected` are the collected texts that this settles."""

    examples: tuple[Example, ...]
    collected: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rename:
    """Give a class another name."""

    old: str
    new: str


@dataclass(frozen=True)
class Merge:
    """Make one class of several."""

    labels: tuple[str, ...]
    into: str


@dataclass(frozen=True)
class Remove:
    """Forget a class, and with `purge` every revision that holds it."""

    label: str
    purge: bool = False


@dataclass(frozen=True)
class Rollback:
    """Use another revision."""

    revision: int


Order = Learn | Rename | Merge | Remove | Rollback
