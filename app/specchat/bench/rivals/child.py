"""A process of a rival's: out of reach of the terminal's Ctrl+C, its output in the log, gone when we are."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypeVar

from specchat.engine_log import EngineLog
from specengine import hardware
from specengine.errors import EngineError

_GRACE_S: Final = 5.0
_STAMP: Final = re.compile(r"^[\d.]+ [A-Z] ")
"""What llama.cpp's programs put before a line: the time and a letter for its kind."""


class Child:
    """A Python module of ours, run as a process that ends with its stdin."""

    def __init__(self, module: str, arguments: Sequence[str], log_file: Path, *, pipe: bool = False) -> None:
        """Starts it; `pipe` keeps stdout for talking, else it goes to the log.

        Raises:
            EngineError: it can't be started.
        """
        self.log = EngineLog(log_file)
        self._abandoned = False
        with self.log.opened("a rival starts") as log:
            away: IO[bytes] | int = log if log is not None else subprocess.DEVNULL
            try:
                # -P keeps the working directory out of its imports.
                self._process = subprocess.Popen(
                    (sys.executable, "-P", "-m", module, *arguments),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE if pipe else away,
                    stderr=away,
                    env=_environment(),
                    **_apart(),
                )
            except OSError as error:
                self.log.close()
                raise EngineError(f"No process can be started for a rival: {error.strerror or error}.") from None

    @property
    def alive(self) -> bool:
        return not self._abandoned and self._process.poll() is None

    @property
    def stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def last_words(self) -> str:
        """Why it ended, as far as its log tells, in brackets and with a space before; empty if it left nothing."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        words = _STAMP.sub("", self.log.last_words())
        return f" ({words})" if words else ""

    def abandon(self) -> None:
        """Makes it end, also in the middle of what it does, without waiting for it."""
        self._abandoned = True
        with contextlib.suppress(OSError):
            self.stdin.close()

    def close(self) -> None:
        """Ends it, and whatever runs on its leash."""
        self.abandon()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self.log.close()


class Running(Protocol):
    """A rival's process, ready to answer."""

    @property
    def alive(self) -> bool: ...

    def close(self) -> None: ...


R = TypeVar("R", bound=Running)


class Kept:
    """Rivals' processes, at most one for each mode, kept while memory allows: idle ones take no time, and a new one
    has to load its model and to read the prompt again."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str], Running] = {}

    def find(self, rival: str, mode: str, kind: type[R]) -> R | None:
        """The living process of that mode."""
        found = self._running.get((rival, mode))
        return found if isinstance(found, kind) and found.alive else None

    def keep(self, rival: str, mode: str, running: Running) -> None:
        self._running[rival, mode] = running

    def drop(self, rival: str, mode: str) -> None:
        """Ends the process of that mode, if there is one."""
        running = self._running.pop((rival, mode), None)
        if running is not None:
            running.close()

    def make_room(self, needed: int, what: str) -> None:
        """Ends processes, the oldest first, until `needed` bytes are free for `what`.

        Raises:
            EngineError: they aren't, with no other process left.
        """
        while (free := hardware.available_memory()) is not None and free < needed:
            if not self._running:
                raise EngineError(
                    f"{what} needs about {needed / 1e9:.1f} GB of memory beside our engine and {free / 1e9:.1f} GB are "
                    "free; try a smaller --ctx or a smaller model."
                )
            self.drop(*next(iter(self._running)))

    def close(self) -> None:
        """Ends them all."""
        for key in list(self._running):
            self.drop(*key)


def _environment() -> dict[str, str]:
    """Ours, without what would make a rival run in another way than its own users see it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_ARG_")}
    from specengine.backends import SPIN

    if kept.get("GOMP_SPINCOUNT") == SPIN:  # set by us, not by the user
        del kept["GOMP_SPINCOUNT"]
    return kept


def _apart() -> dict[str, Any]:
    """Ctrl+C in the terminal is for the bench, which ends its children itself."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
