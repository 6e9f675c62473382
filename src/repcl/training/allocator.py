"""Memory that a step frees is kept for the next one, instead of being returned and taken again by pages."""

import ctypes
import platform
from functools import cache

# The names and numbers of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
NEVER = 2**31 - 1


@cache
def keep_freed_memory() -> bool:
    """Tell glibc, once, to keep what is freed; gives whether it listened. Other libraries are left alone.

    A training step takes and frees hundreds of megabytes. By default each large piece is mapped anew, and the
    system clears every page of it, which takes a share of every step.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    try:
        adjust = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(adjust(M_MMAP_MAX, 0)) and bool(adjust(M_TRIM_THRESHOLD, NEVER))
