"""Memory of pictures, given back to the system as soon as it is free."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt, in glibc's malloc.h
_LARGE = 4 << 20  # bytes
_FREE_AT_THE_END = 16 << 20


def give_back_large_blocks() -> bool:
    """Let glibc take large blocks from the system and give them back, each by itself; whether that can be set.

    On its own, after the first large block was freed, glibc takes blocks of that size for usual and keeps them for the
    next ones, between small ones that are still used: one picture of 49 million pixels kept 1.4 GB.

    Examples
    --------
    >>> from pictopic.server.memory import give_back_large_blocks
    >>> give_back_large_blocks() in (True, False)
    True
    """
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):  # another library than glibc
        libc = ctypes.CDLL(None)
        return bool(libc.mallopt(_M_MMAP_THRESHOLD, _LARGE) and libc.mallopt(_M_TRIM_THRESHOLD, _FREE_AT_THE_END))
    return False
