"""For `make mutants` only: which tests reach a function, which run first, and an end to those that hang."""

import gc
import json
import math
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from mutmut.state import state

SLOWER, AT_LEAST = 20, 60  # a test fails after twenty times its own seconds, but not before sixty
MOST = 30  # seconds of tests that one mutant meets, the telling ones first: more tests would notice no fewer
NOTICED = Path("noticed.txt").absolute()  # a line for each mutant that was noticed: its function, the test

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
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """First the tests that noticed other mutants of this function, then its module's own, then quick ones."""
    module = _function().rpartition(".")[0].rpartition(".")[2]
    noticed = tests_that_noticed(_function())
    seconds: dict[Path, float] = defaultdict(float)
    first_use: dict[tuple[Path, str], int] = {}
    for index, item in enumerate(items):
        item._nodeid = item.nodeid  # type: ignore[attr-defined]  # mutmut 3.8 reads what pytest 9.2 has not
        seconds[item.path] += seconds_of_tests().get(item.nodeid, 0.0)
        first_use.setdefault((item.path, _parameters(item)), index)
    items.sort(
        key=lambda item: (
            _cost_of_notice(item, noticed),
            not (module and item.path.name.startswith(f"test_{module}")),
            seconds[item.path],
            first_use[item.path, _parameters(item)],  # equal parameters share what their fixtures made
        )
    )
    if _function():
        _leave_out_the_last(config, items)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down which test noticed a mutant: the next one of the same function meets it first."""
    if report.failed and _function():
        with NOTICED.open("a", encoding="utf-8") as file:
            file.write(f"{_function()}\t{report.nodeid}\n")


def tests_that_noticed(function: str) -> Counter[str]:
    """How many mutants of a function each test has noticed so far."""
    lines = NOTICED.read_text(encoding="utf-8").splitlines() if NOTICED.exists() else []
    pairs = (line.split("\t", 1) for line in lines)
    return Counter(test for name, test in pairs if name == function)


def _function() -> str:
    """The function that the mutant under test is made of; empty where there is none."""
    return os.environ.get("MUTANT_UNDER_TEST", "").rpartition("__mutmut_")[0]


def _cost_of_notice(item: pytest.Item, noticed: Counter[str]) -> float:
    """Seconds per mutant noticed, so that cheap and telling tests stand first."""
    if item.nodeid not in noticed:
        return math.inf
    return (seconds_of_tests().get(item.nodeid, 0.0) + 0.1) / noticed[item.nodeid]


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


def _leave_out_the_last(config: pytest.Config, items: list[pytest.Item]) -> None:
    ends = accumulate(seconds_of_tests().get(item.nodeid, 0.0) for item in items)
    count = sum(end <= MOST for end in ends) or 1
    config.hook.pytest_deselected(items=items[count:])
    del items[count:]


def _parameters(item: pytest.Item) -> str:
    return getattr(getattr(item, "callspec", None), "id", "")


def _forget_cached_results(item: pytest.Item) -> None:
    """A result that one test left in a cache is made anew, so that each test reaches what it depends on."""
    for value in list(vars(item.module).values()):  # type: ignore[attr-defined]
        if hasattr(value, "cache_clear") and getattr(value, "__module__", "") == item.module.__name__:  # type: ignore[attr-defined]
            value.cache_clear()


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("The test did not end.")
