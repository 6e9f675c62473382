"""For `make mutants` only: mutmut 3.8 reads a test's `_nodeid`, which pytest 9.2 calls `nodeid` only."""

from collections.abc import Sequence

import pytest


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        item._nodeid = item.nodeid  # type: ignore[attr-defined]
