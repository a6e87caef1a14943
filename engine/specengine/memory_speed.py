"""How fast this machine reads memory, which is what bounds plain decoding.

Other work on the machine makes a measurement smaller and never larger. So the best that was ever seen here is kept, and
what is estimated from it stays the same however busy the machine is.
"""

import contextlib
import os
import platform
import time
from pathlib import Path

import msgspec

from specengine import whole_file

_BLOCK = 256 << 20
"""Bytes that are read: servers have caches of a hundred megabytes and more, where less would be read three times as
fast."""
_PASSES = 8
_LOOKS = 5
"""Measurements after which the best one counts as known."""


class Seen(msgspec.Struct, frozen=True):
    """The best measurement so far, and what it holds for."""

    machine: str
    bytes_per_s: float
    looks: int
    """Measurements that it is the best of."""


def memory_speed(kept: Path, available: int | None, again: bool = False) -> float | None:
    """Bytes per second at which one core reads main memory; None where there is no room to measure it.

    Args:
        kept: the file that the best measurement is kept in; a lost or damaged one only costs new measurements.
        available: bytes of memory that can be had; None where the system doesn't say.
        again: measure also where enough measurements were taken.
    """
    best = _read(kept)
    if best is not None and best.looks >= _LOOKS and not again:
        return best.bytes_per_s
    found = measured(available)
    if found is None:
        return best.bytes_per_s if best else None
    if best is not None:
        found, looks = max(found, best.bytes_per_s), best.looks + 1
    else:
        looks = 1
    with contextlib.suppress(OSError):  # a full disk is no reason to fail
        whole_file.replace(kept, msgspec.json.format(msgspec.json.encode(Seen(_machine(), found, looks))))
    return found


def measured(available: int | None) -> float | None:
    """The best of a few short passes now, in bytes per second."""
    import numpy as np

    size = _BLOCK if available is None else min(_BLOCK, available // 8)
    try:
        block = np.ones(size // 8, np.uint64)
    except MemoryError:
        return None
    best = float("inf")
    for _ in range(_PASSES):
        start = time.perf_counter()
        np.bitwise_or.reduce(block)  # one vector instruction a few words, and no BLAS with threads of its own
        best = min(best, time.perf_counter() - start)
    return size / best if size else None


def _read(kept: Path) -> Seen | None:
    try:
        best = msgspec.json.decode(kept.read_bytes(), type=Seen)
    except (OSError, msgspec.MsgspecError):
        return None
    return best if best.machine == _machine() else None


def _machine() -> str:
    """What tells machines apart that share a home folder."""
    return f"{platform.node()} {platform.machine()} {os.cpu_count()}"
