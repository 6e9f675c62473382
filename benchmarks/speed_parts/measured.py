"""Ratios of CPU time with 95 % intervals, as they are stored and shown."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from repcl.experiments.runs.result import processor_name

DRAWS = 2000
LOW, HIGH = 2.5, 97.5

Groups = Mapping[str, Sequence[float]]
"""CPU seconds of several kinds of work, which are drawn apart from each other."""


@dataclass(frozen=True)
class Row:
    """A number of a table.

    Attributes:
        what: was measured.
        value: the number.
        low: where the 95 % interval begins.
        high: where it ends.
        aim: the largest value wanted; None if there is none.
    """

    what: str
    value: float
    low: float
    high: float
    aim: float | None = None


@dataclass(frozen=True)
class Part:
    """What one part of the measurement found, and how it was made."""

    name: str
    unit: str
    rows: tuple[Row, ...]

    def write(self, folder: Path, command: str) -> None:
        """Put it into a file of its name."""
        folder.mkdir(parents=True, exist_ok=True)
        made = {"command": command, "processor": processor_name(), "date": time.strftime("%Y-%m-%d")}
        text = json.dumps(made | asdict(self), indent=1)
        (folder / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")

    def show(self) -> None:
        """Print it as a table."""
        print(f"{self.name} ({self.unit})")
        for row in self.rows:
            aim = "" if row.aim is None else f"{row.aim:7.2f}{'' if row.value <= row.aim else '  missed'}"
            print(f"  {row.what:52} {row.value:8.2f} [{row.low:.2f}, {row.high:.2f}] {aim}")


def ratio(
    what: str, ours: Sequence[float] | Groups, theirs: Sequence[float] | Groups, aim: float | None = None
) -> Row:
    """The ratio of two sums of times, its interval by drawing times again with replacement."""
    upper, lower = _grouped(ours), _grouped(theirs)
    value = _sum(upper) / _sum(lower)
    random = np.random.default_rng(0)
    drawn = _drawn_sums(upper, random) / _drawn_sums(lower, random)
    low, high = np.percentile(drawn, [LOW, HIGH])
    return Row(what, value, float(low), float(high), aim)


def ratio_of_medians(
    what: str, ours: Sequence[float], theirs: Sequence[float], aim: float | None = None
) -> Row:
    """The same for single answers, where now and then one takes far longer than all others."""
    random = np.random.default_rng(0)
    drawn = [np.median(random.choice(times, (DRAWS, len(times))), axis=1) for times in (ours, theirs)]
    low, high = np.percentile(drawn[0] / drawn[1], [LOW, HIGH])
    return Row(what, float(np.median(ours) / np.median(theirs)), float(low), float(high), aim)


def exact(what: str, value: float, aim: float | None = None) -> Row:
    """A number that is counted, so that it has no spread."""
    return Row(what, value, value, value, aim)


def cpu_time(work: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _grouped(times: Sequence[float] | Groups) -> Groups:
    return times if isinstance(times, Mapping) else {"all": times}


def _sum(groups: Groups) -> float:
    return float(sum(map(sum, groups.values())))


def _drawn_sums(groups: Groups, random: np.random.Generator) -> np.ndarray:
    return sum(random.choice(times, (DRAWS, len(times))).sum(axis=1) for times in groups.values())
