"""Where memory goes that is freed while weights are loaded, or laid out anew."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MMAP_THRESHOLD: Final = -3
_TRIM_THRESHOLD: Final = -1
"""glibc's parameters for `mallopt`."""
_LARGE: Final = 1 << 20
_LARGEST: Final = 32 << 20
"""What glibc raises the first threshold to in the course of time; the second then is twice as much."""


@contextmanager
def freed_at_once() -> Iterator[None]:
    """While it lasts, blocks of a megabyte and more go back to the system when they are freed, where that is glibc's to
    decide.

    Quantising takes and frees one tensor at full precision after the other, and between them lies what stays: in a heap
    that only grows, a model of 0.5 billion weights took 1.4 GB of memory instead of 0.5.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "mallopt"):
        yield
        return
    libc.mallopt(_MMAP_THRESHOLD, _LARGE)
    try:
        yield
    finally:
        # Passes come and go with blocks of this size, which are faster to have again from the heap.
        libc.mallopt(_MMAP_THRESHOLD, _LARGEST)
        libc.mallopt(_TRIM_THRESHOLD, 2 * _LARGEST)
