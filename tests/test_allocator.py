"""Freed memory is kept, where the C library can be told so."""

import ctypes
import os
import platform
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any

import pytest

from repcl import allocator
from repcl.allocator import (
    OWN_MEMORY,
    KeptMemory,
    keep_freed_memory,
    memory_per_core,
    release_freed_memory,
    resident_bytes,
    share_one_heap,
)

MEGABYTE = 2**20


@pytest.fixture(autouse=True)
def _not_told_yet() -> None:
    keep_freed_memory.cache_clear()
    allocator._of_glibc.cache_clear()


def test_glibc_is_told_once_not_to_map_and_not_to_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []

    class Library:
        def __init__(self, name: None) -> None: ...

        @staticmethod
        def mallopt(option: int, value: int) -> int:
            told.append((option, value))
            return 1

    monkeypatch.setattr(ctypes, "CDLL", Library)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.31"))
    assert keep_freed_memory()
    assert keep_freed_memory()
    assert told == [(-4, 0), (-1, 2**31 - 1)]


def test_nothing_is_kept_where_nobody_says_how_much_memory_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(allocator, "_of_glibc", {"mallopt": lambda *pair: told.append(pair) or 1}.get)
    monkeypatch.setattr(allocator, "resident_bytes", lambda: 0)
    assert not keep_freed_memory()
    assert told == []


@dataclass
class Machine:
    """Memory in megabytes: what the process holds after each step, and how often it gave some back."""

    resident: int = 500
    in_use: int = 500
    releases: int = 0

    def release(self) -> bool:
        self.resident, self.releases = self.in_use, self.releases + 1
        return True

    def grow(self, kept: KeptMemory, *residents: int) -> list[bool]:
        """Whether memory was given back after steps that leave the process at these sizes."""
        given = []
        for self.resident in residents:
            given.append(kept.step_ends())
        return given


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a gigabyte for each core, so that its own plenty allows nothing more."""
    machine = Machine()
    monkeypatch.setattr(allocator, "resident_bytes", lambda: machine.resident * MEGABYTE)
    monkeypatch.setattr(allocator, "memory_per_core", lambda: 1024 * MEGABYTE)
    monkeypatch.setattr(allocator, "release_freed_memory", machine.release)
    return machine


def test_a_process_may_grow_by_a_gigabyte(machine: Machine) -> None:
    kept = KeptMemory()
    assert machine.grow(kept, 800, 1524, 1525) == [False, False, True]


def test_a_process_may_grow_by_twice_what_its_first_step_took(machine: Machine) -> None:
    kept = KeptMemory()
    assert machine.grow(kept, 1500, 2500, 2501) == [False, False, True]


def test_the_step_after_a_release_tells_what_a_step_takes(machine: Machine) -> None:
    kept = KeptMemory()
    assert machine.grow(kept, 600, 2000) == [False, True]
    # from 500 to 2100: a step takes 1,600, so that 3,200 are allowed
    assert machine.grow(kept, 2100, 3700, 3701) == [False, False, True]


def test_where_there_is_plenty_a_process_may_grow_by_half_a_cores_share(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocator, "memory_per_core", lambda: 8000 * MEGABYTE)
    kept = KeptMemory()
    assert machine.grow(kept, 600, 4500, 4501) == [False, False, True]


def test_what_came_before_is_given_back_at_the_start(machine: Machine) -> None:
    machine.resident = 4000
    KeptMemory()
    assert (machine.resident, machine.releases) == (500, 1)


@pytest.mark.skipif(not OWN_MEMORY.exists(), reason="this system does not say")
def test_what_a_process_holds_is_counted() -> None:
    before = resident_bytes()
    # pages of its own: a heap that keeps what was freed need not grow for 64 megabytes more
    with mmap(-1, 64 * MEGABYTE) as held:
        held.write(b"x" * (64 * MEGABYTE))
        assert resident_bytes() - before > 60 * MEGABYTE


def test_a_system_that_says_nothing_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(allocator, "OWN_MEMORY", tmp_path / "none")
    assert resident_bytes() == 0
    monkeypatch.delattr(os, "sysconf")
    assert memory_per_core() == 0


def test_all_threads_share_one_heap_where_a_service_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(allocator, "_of_glibc", {"mallopt": lambda *pair: told.append(pair) or 1}.get)
    assert share_one_heap()
    assert told == [(-8, 1)]


def test_other_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("another library was opened")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not keep_freed_memory()
    assert not release_freed_memory()
    assert not share_one_heap()


def test_a_library_without_the_function_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.31"))
    assert not keep_freed_memory()
    assert not release_freed_memory()


def test_freed_memory_is_given_back_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []

    class Library:
        def __init__(self, name: None) -> None: ...

        @staticmethod
        def malloc_trim(pad: ctypes.c_size_t) -> int:
            left.append(pad.value)
            return 1

    monkeypatch.setattr(ctypes, "CDLL", Library)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.31"))
    assert release_freed_memory()
    assert release_freed_memory()
    assert left == [0, 0]
