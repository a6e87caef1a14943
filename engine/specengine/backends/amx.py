"""Keeps llama.cpp off AMX, the matrix unit of some server processors.

Built by GCC 12 (Debian 12's compiler), llama.cpp's AMX kernels crash at their first pass: the compiler drops half of
the tile configuration. Consumer processors have no AMX, so little is lost where specchat is used.
"""

import contextlib
import ctypes
import platform
import sys
from collections.abc import Iterator
from typing import Final

_ALTERNATE_STACK_BYTES: Final = 8192
"""Enough for a signal frame with AVX-512 state (under 4 KiB), too little for one with AMX tiles (over 10 KiB)."""


@contextlib.contextmanager
def amx_refused() -> Iterator[None]:
    """Makes Linux refuse AMX to this process while the block runs, so that llama.cpp falls back to AVX kernels.

    Linux grants AMX on request only (arch_prctl, ARCH_REQ_XCOMP_PERM), and refuses while a thread's alternate signal
    stack is too small to hold its registers. llama.cpp asks once, when it first lists its kernels.
    """
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    memory = ctypes.create_string_buffer(_ALTERNATE_STACK_BYTES)
    small = _Stack(ctypes.addressof(memory), 0, _ALTERNATE_STACK_BYTES)
    before = _Stack()
    changed = libc.sigaltstack(ctypes.byref(small), ctypes.byref(before)) == 0
    try:
        yield
    finally:
        if changed:
            libc.sigaltstack(ctypes.byref(before), None)


class _Stack(ctypes.Structure):
    """stack_t of <signal.h>."""

    _fields_ = (("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))
