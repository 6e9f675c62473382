"""What becomes of freed memory: kept from step to step, given back where there is too much of it."""

import ctypes
import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

# The names and numbers of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
NEVER = 2**31 - 1
OWN_MEMORY = Path("/proc/self/statm")
LITTLE = 2**30
"""Bytes. Steps on short texts leave less behind."""
ROOM = 2
"""Times what a step takes: batches of many shapes leave gaps that the next ones do not fit into."""


class KeptMemory:
    """Watches how a process grows from step to step, and gives freed memory back where it is too much.

    With long texts a process that keeps everything grows to a multiple of what a step takes; one that gives
    back after every step spends much of its time on getting memory again. So it may grow by `ROOM` times
    what a step takes, which shows in the step after a release. Where the machine has plenty, it may grow by
    half of a core's share, as if every core had a process like this one.
    """

    def __init__(self) -> None:
        keep_freed_memory()
        release_freed_memory()  # of what came before
        self._base = resident_bytes()
        self._allowed = max(LITTLE, memory_per_core() // 2)
        self._is_fresh = True

    def step_ends(self) -> bool:
        """Give back what is freed if the process has grown by too much; gives whether it has."""
        grown = resident_bytes() - self._base
        if self._is_fresh:
            self._allowed = max(self._allowed, ROOM * grown)
        self._is_fresh = grown > self._allowed and release_freed_memory()
        if self._is_fresh:
            self._base = resident_bytes()
        return self._is_fresh


@cache
def keep_freed_memory() -> bool:
    """Tell glibc, once, to keep what is freed; gives whether it listened. Other libraries are left alone.

    A training step takes and frees hundreds of megabytes. By default each large piece is mapped anew, and the
    system clears every page of it, which takes a share of every step. Where the system does not say how
    much memory a process holds, nothing is kept, because it could grow without being noticed.
    """
    adjust = _of_glibc("mallopt")
    if adjust is None or not resident_bytes():
        return False
    return bool(adjust(M_MMAP_MAX, 0)) and bool(adjust(M_TRIM_THRESHOLD, NEVER))


def release_freed_memory() -> bool:
    """Give what is freed back to the system; gives whether there was any.

    Pieces below 32 megabytes stay with the process by default, and those that lie between others cannot be
    used for larger ones: a few matrices later, hundreds of megabytes are held by nobody.
    """
    release = _of_glibc("malloc_trim")
    return release is not None and bool(release(ctypes.c_size_t(0)))


def share_one_heap() -> bool:
    """Tell glibc, before there are threads, to keep one heap for all of them; gives whether it listened.

    A service loads revisions in one thread and asks them in another. With a heap for each, what one of them
    frees is of no use to the other, and every switch leaves more behind.
    """
    adjust = _of_glibc("mallopt")
    return adjust is not None and bool(adjust(M_ARENA_MAX, 1))


def resident_bytes() -> int:
    """Memory that the process holds; 0 where the system does not say."""
    try:
        pages = int(OWN_MEMORY.read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_per_core() -> int:
    """The machine's memory over its cores; 0 where the system does not say."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not a Unix
        return 0
    return memory // (os.cpu_count() or 1)


@cache
def _of_glibc(name: str) -> Any:
    """A function of the C library, if it is glibc."""
    if platform.libc_ver()[0] != "glibc":
        return None
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
