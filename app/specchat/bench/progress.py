"""What the bench is doing, on stderr: one line rewritten in place on a terminal, else a plain line for each stage."""

import time
from collections.abc import Callable
from typing import Final, TextIO

from specchat.folding import columns, folded

_EVERY_S: Final = 0.1


class Remaining:
    """How many runs are done of how many, and about how long the rest takes if it goes on like this."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._done = 0
        self._clock = clock
        self._started = clock()

    def finished(self) -> None:
        """One more run is done."""
        self._done += 1

    def __str__(self) -> str:
        run = f"run {min(self._done + 1, self._total)} of {self._total}"
        if not self._done:
            return run
        left_s = (self._clock() - self._started) / self._done * (self._total - self._done)
        return f"{run}, about {_rounded(left_s)} left"


def _rounded(seconds: float) -> str:
    if seconds < 90:
        return f"{max(5, round(seconds / 5) * 5)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Progress:
    """Follows stages, and how far each has come."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._stage = ""
        self._shown_at = 0.0
        self._width = 0

    def tell(self, stage: str, at: str) -> None:
        """Says that `stage` has come as far as `at`."""
        new, self._stage = stage != self._stage, stage
        now = time.monotonic()
        if not self._terminal:
            if new:
                self._write(f"{stage}\n")
        elif new or now - self._shown_at >= _EVERY_S:
            self._shown_at = now
            text = f"{stage}, {at}"[: (columns(self._stream) or 80) - 1]
            self._write("\r" + text.ljust(self._width))
            self._width = len(text)

    def say(self, text: str) -> None:
        """A line that stays."""
        self.end()
        self._write(f"{folded(text, columns(self._stream))}\n")

    def end(self) -> None:
        """Leaves the cursor at the start of an empty line."""
        if self._width:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
