"""For `make mutants` only: which tests reach a function, and an end to those that hang."""

import gc
import json
import os
import signal
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from mutmut.state import state

SLOWER, AT_LEAST = 20, 60  # a test fails after twenty times its own seconds, but not before sixty

_reached_by_fixture: dict[object, set[str]] = {}


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
    """Give tests the attribute that mutmut 3.8 reads and pytest 9.2 has not."""
    for item in items:
        item._nodeid = item.nodeid  # type: ignore[attr-defined]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """Note what a fixture reaches: it is set up for one test, and others use it too."""
    before, hits = set(state()._stats), state()._stats
    hits.clear()
    result = yield
    _reached_by_fixture[fixturedef] = set(hits)
    hits |= before
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Count what a test's fixtures reach for the test, and stop a test that a mutant keeps from ending."""
    if os.environ.get("MUTANT_UNDER_TEST") == "stats":
        _forget_cached_results(item)
        for definitions in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined]
            for definition in definitions:
                state()._stats |= _reached_by_fixture.get(definition, set())
    seconds = seconds_of_tests().get(item.nodeid)
    if seconds is not None:
        signal.signal(signal.SIGPROF, _too_long)
        signal.setitimer(signal.ITIMER_PROF, max(AT_LEAST, SLOWER * seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _forget_cached_results(item: pytest.Item) -> None:
    """A result that one test left in a cache is made anew, so that each test reaches what it depends on."""
    for value in list(vars(item.module).values()):  # type: ignore[attr-defined]
        if hasattr(value, "cache_clear") and getattr(value, "__module__", "") == item.module.__name__:  # type: ignore[attr-defined]
            value.cache_clear()


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("The test did not end.")
