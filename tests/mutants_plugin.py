"""For `make mutants` only: quick tests run first, and a test that hangs fails."""

import gc
import json
import signal
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

SLOWER, AT_LEAST = 20, 30  # a test fails after twenty times its own seconds, but not before thirty


@cache
def seconds_of_tests() -> dict[str, float]:
    """How long each test takes when nothing is broken; mutmut runs in the folder with this file."""
    known = Path("mutmut-stats.json")
    return dict(json.loads(known.read_text())["duration_by_test"]) if known.exists() else {}


def pytest_configure() -> None:
    """Spare the garbage collector what each mutant inherits: going through it was most of the time."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Most mutants are killed by a quick test of their own file, so these stand first."""
    of_file: Counter[Path] = Counter()
    for item in items:
        item._nodeid = item.nodeid  # type: ignore[attr-defined]  # mutmut 3.8 reads it, pytest 9.2 has only nodeid
        of_file[item.path] += seconds_of_tests().get(item.nodeid, 0.0)  # type: ignore[assignment]
    items.sort(key=lambda item: of_file[item.path])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Stop a test that a mutant keeps from ending."""
    seconds = seconds_of_tests().get(item.nodeid)
    if seconds is not None:
        signal.signal(signal.SIGALRM, _too_long)
        signal.setitimer(signal.ITIMER_REAL, max(AT_LEAST, SLOWER * seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("The test did not end.")
