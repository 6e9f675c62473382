"""Freed memory is kept, where the C library can be told so."""

import ctypes
import platform
from typing import Any

import pytest

from repcl import allocator
from repcl.allocator import (
    MUCH,
    freed_bytes,
    keep_freed_memory,
    release_freed_memory,
    release_much_freed_memory,
    share_one_heap,
)


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

        mallinfo2 = mallopt

    monkeypatch.setattr(ctypes, "CDLL", Library)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.31"))
    assert keep_freed_memory()
    assert keep_freed_memory()
    assert told == [(-4, 0), (-1, 2**31 - 1)]


def test_a_glibc_that_cannot_say_what_it_keeps_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(allocator, "_of_glibc", {"mallopt": lambda *pair: told.append(pair) or 1}.get)
    assert not keep_freed_memory()
    assert told == []


@pytest.mark.parametrize(("freed", "is_released"), [(MUCH, False), (MUCH + 1, True)])
def test_only_much_freed_memory_is_given_back(
    monkeypatch: pytest.MonkeyPatch, freed: int, is_released: bool
) -> None:
    monkeypatch.setattr(allocator, "freed_bytes", lambda: freed)
    monkeypatch.setattr(allocator, "release_freed_memory", lambda: True)
    assert release_much_freed_memory() == is_released


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked")
def test_what_is_freed_is_counted() -> None:
    pieces = [bytearray(2000) for _ in range(5000)]
    last, before = bytearray(2000), freed_bytes()  # the last one keeps the others from the heap's end
    del pieces
    assert freed_bytes() - before > 9_000_000
    assert len(last) == 2000


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
