"""What becomes of freed memory: kept from step to step, given back where there is much of it."""

import ctypes
import platform
from functools import cache
from typing import Any

# The names and numbers of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
NEVER = 2**31 - 1
MUCH = 2**30
"""Bytes. Steps on short texts leave less behind."""


class _HeapInfo(ctypes.Structure):
    """`struct mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


@cache
def keep_freed_memory() -> bool:
    """Tell glibc, once, to keep what is freed; gives whether it listened. Other libraries are left alone.

    A training step takes and frees hundreds of megabytes. By default each large piece is mapped anew, and the
    system clears every page of it, which takes a share of every step. A glibc that cannot say how much it
    keeps (before 2.33) is left alone.
    """
    adjust = _of_glibc("mallopt")
    if adjust is None or _of_glibc("mallinfo2") is None:
        return False
    return bool(adjust(M_MMAP_MAX, 0)) and bool(adjust(M_TRIM_THRESHOLD, NEVER))


def release_much_freed_memory() -> bool:
    """Give what is freed back to the system if it is much; gives whether it was.

    Batches of many shapes leave gaps that the next ones do not fit into: with long texts a process would
    grow to a multiple of what a step takes.
    """
    return freed_bytes() > MUCH and release_freed_memory()


def freed_bytes() -> int:
    """Memory that is freed and kept, as far as glibc can tell."""
    ask = _of_glibc("mallinfo2")
    if ask is None:
        return 0
    ask.restype = _HeapInfo
    return int(ask().fordblks)


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


@cache
def _of_glibc(name: str) -> Any:
    """A function of the C library, if it is glibc."""
    if platform.libc_ver()[0] != "glibc":
        return None
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
