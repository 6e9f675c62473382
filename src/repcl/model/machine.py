"""How much memory this machine has, and a refusal of what cannot fit before any of it is taken."""

import os

GIGABYTE = 1 << 30


def memory_of_machine() -> int | None:
    """Bytes of memory; None where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None


def too_large(needed: int, share: float = 1.0) -> str | None:
    """What to say when so many bytes are over a share of this machine's memory; None when they fit."""
    there = memory_of_machine()
    if there is None or needed <= share * there:
        return None
    return f"{needed / GIGABYTE:,.0f} GB of memory, this machine has {there / GIGABYTE:,.0f} GB"
