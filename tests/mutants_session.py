"""For `make mutants` only: tries mutants, each in a fork of one session in which everything is imported.

To start pytest for each of them would take longer than the tests that notice most of them.
"""

import json
import math
import os
import resource
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from tests.mutants_plugin import seconds_of_tests

TO_TRY = Path(
    "to-try.json"
).absolute()  # names of mutants with the hash of their function, and how many at a time
TRIED = Path("tried.jsonl").absolute()  # a line for each that was tried
NOTICED = Path("noticed.txt").absolute()  # a line for each that was noticed: its function and the test
KILLED, SURVIVED, NO_TESTS = 1, 0, 33  # how the tests of a mutant end; negative: the signal that ended them
MOST_TESTS = 30  # seconds of tests that one mutant meets, the most telling first
MOST_SECONDS = 600  # of CPU time that it may take


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Try all that is to be tried instead of running the tests once; mutants with quick tests come first."""
    asked = json.loads(TO_TRY.read_text(encoding="utf-8"))
    hashes: dict[str, str] = asked["mutants"]
    tests = _tests_of_functions(session)
    running: dict[int, tuple[str, Path]] = {}
    for name in sorted(hashes, key=lambda name: _seconds(tests.get(_function(name), []))):
        while len(running) >= asked["children"]:
            _wait(running, hashes)
        if own := tests.get(_function(name)):
            running |= [_fork(session, name, own)]
        else:
            _note(name, hashes[name], NO_TESTS)
    while running:
        _wait(running, hashes)
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down which test noticed a mutant: the next one of the same function meets it first."""
    function = _function(os.environ.get("MUTANT_UNDER_TEST", ""))
    if report.failed and function:
        with NOTICED.open("a", encoding="utf-8") as file:
            file.write(f"{function}\t{report.nodeid}\n")


def _tests_of_functions(session: pytest.Session) -> dict[str, list[pytest.Item]]:
    """The tests that reach each function, as mutmut saw it when nothing was broken."""
    known = {item.nodeid: item for item in session.items}
    stats = json.loads(Path("mutmut-stats.json").read_text(encoding="utf-8"))
    reached: dict[str, list[str]] = stats["tests_by_mangled_function_name"]
    return {function: [known[test] for test in tests if test in known] for function, tests in reached.items()}


def _fork(session: pytest.Session, name: str, tests: list[pytest.Item]) -> tuple[int, tuple[str, Path]]:
    """Try a mutant in another process; gives its number, the name and a folder to be removed."""
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    number = os.fork()
    if number:
        return number, (name, folder)
    code = KILLED  # whatever goes wrong from here on, the mutant did it
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        os.environ |= {"MUTANT_UNDER_TEST": name, "PYTEST_DEBUG_TEMPROOT": str(folder)}
        code = _run(session, _telling_first(tests, _function(name)))
    finally:
        os._exit(code)


def _run(session: pytest.Session, tests: Sequence[pytest.Item]) -> int:
    """Run tests until one fails."""
    for test, following in pairwise([*tests, None]):
        session.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        if session.testsfailed:
            return KILLED
    return SURVIVED


def _telling_first(tests: Sequence[pytest.Item], function: str) -> list[pytest.Item]:
    """First the tests that noticed other mutants of the function, then its module's own, then quick ones."""
    own = tuple(f"test_{name}" for name in function.split(".")[-3:-1])  # test_store.py, test_folder.py
    noticed = _tests_that_noticed(function)
    files: dict[Path, float] = defaultdict(float)
    first_use: dict[tuple[Path, str], int] = {}
    for index, test in enumerate(tests):
        files[test.path] += _seconds([test])
        first_use.setdefault((test.path, _parameters(test)), index)
    ordered = sorted(
        tests,
        key=lambda test: (
            (_seconds([test]) + 0.1) / noticed[test.nodeid] if test.nodeid in noticed else math.inf,
            not test.path.name.startswith(own),
            files[test.path],
            first_use[test.path, _parameters(test)],  # equal parameters share what their fixtures made
        ),
    )
    ends = accumulate(_seconds([test]) for test in ordered)
    return ordered[: sum(end <= MOST_TESTS for end in ends) or 1]


def _tests_that_noticed(function: str) -> Counter[str]:
    """How many mutants of a function each test has noticed so far."""
    lines = NOTICED.read_text(encoding="utf-8").splitlines() if NOTICED.exists() else []
    pairs = (line.split("\t", 1) for line in lines)
    return Counter(test for name, test in pairs if name == function)


def _wait(running: dict[int, tuple[str, Path]], hashes: dict[str, str]) -> None:
    """Wait until the tests of a mutant have ended, and write down how."""
    number, status = os.wait()
    name, folder = running.pop(number)
    shutil.rmtree(folder, ignore_errors=True)
    _note(name, hashes[name], os.waitstatus_to_exitcode(status))


def _note(name: str, function_hash: str, code: int) -> None:
    with TRIED.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"mutant": name, "function": function_hash, "code": code}) + "\n")


def _function(mutant: str) -> str:
    return mutant.rpartition("__mutmut_")[0]


def _parameters(test: pytest.Item) -> str:
    return getattr(getattr(test, "callspec", None), "id", "")


def _seconds(tests: Sequence[pytest.Item]) -> float:
    return sum(seconds_of_tests().get(test.nodeid, 0.0) for test in tests)
