"""Waiting for another process, without becoming deaf to Ctrl+C."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from specchat.bench.rivals.contract import ShouldStop
from specengine.errors import Stopped

T = TypeVar("T")

_EVERY_S: Final = 0.1


def patiently(work: Callable[[], T], should_stop: ShouldStop, limit_s: float, abandon: Callable[[], None]) -> T:
    """Does blocking work in a thread of its own and returns its result; `abandon` must make the work break off.

    Raises:
        Stopped: `should_stop` returned true.
        TimeoutError: the work took longer than `limit_s`.
        Exception: whatever the work raised.
    """
    ended: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            ended.put(work())
        except Exception as error:
            ended.put(error)

    threading.Thread(target=run, name="rival", daemon=True).start()
    deadline = time.monotonic() + limit_s
    while True:
        try:
            result = ended.get(timeout=_EVERY_S)
        except queue.Empty:
            if should_stop():
                abandon()
                raise Stopped from None
            if time.monotonic() > deadline:
                abandon()
                raise TimeoutError(f"nothing came within {limit_s:,.0f} s") from None
        else:
            if isinstance(result, Exception):
                raise result
            return result
