"""What a revision took is given back once it no longer answers: a service runs for months."""

import ctypes
import gc
import os
import platform
from collections.abc import Callable

# The name and number of glibc's malloc.h.
M_ARENA_MAX = -8


def share_one_heap() -> None:
    """Tell glibc, before there are threads, to keep one heap for all of them.

    Revisions are loaded by one thread and asked by another. With a heap for each, what one of them frees is
    of no use to the other, and every switch leaves more behind.
    """
    if (adjust := _of_glibc("mallopt")) is not None:
        adjust(M_ARENA_MAX, 1)


def give_back() -> None:
    """Free what nothing refers to any more, and return its pages to the system."""
    gc.collect()  # modules refer to each other, and are only found this way
    if (trim := _of_glibc("malloc_trim")) is not None:
        trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    """A function of the C library; None where it is another one."""
    if os.name != "posix" or platform.libc_ver()[0] != "glibc":
        return None
    return getattr(ctypes.CDLL(None), name, None)
