"""The log of engine processes: kept small, and read for the last words of one that died."""

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

from specchat import paths

_ROTATE_AT = 2**20
"""Bytes after which a new log is begun; the one before it is kept as engine.log.1."""
_TAIL = 2**16
_LONGEST = 300
_MOST = 100

_EVERYDAY = ("AMX is not ready to be used!",)
"""Lines of healthy starts."""

# From the most telling to the least: a native assertion, a Python exception, an interpreter's own death notice.
_TELLING = (
    re.compile(r"GGML_ASSERT|GGML_ABORT|terminate called|what\(\):"),
    re.compile(r"^\w*(\.\w+)*(Error|Exception|Interrupt)\b"),
    re.compile(r"^Fatal Python error"),
)


class EngineLog:
    """Where one host's engine processes write what is not meant for the screen: one process at a time, and nobody
    else. Where another window uses the file, this one takes the next: engine.log, engine-2.log and so on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        """The file of the last start."""
        self._first = path
        self._claim: FileLock | None = None
        """Kept until what a process left in the file was read."""
        self._start = 0

    @contextlib.contextmanager
    def opened(self, heading: str = "the engine starts") -> Iterator[IO[bytes] | None]:
        """The log, ready to be handed to a new process as its stderr; None where it can't be written."""
        self.close()
        try:
            log = self._opened(heading)
        except OSError:  # a read-only or a full disk
            self.close()
            yield None
            return
        with log:
            self._start = log.tell()
            yield log

    def close(self) -> None:
        """Lets others have the file, once its process has ended."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def _opened(self, heading: str) -> IO[bytes]:
        paths.ensure(self._first.parent)
        self.path, self._claim = _claimed(self._first)
        if self.path.exists() and self.path.stat().st_size > _ROTATE_AT:
            self.path.replace(self.path.with_name(self.path.name + ".1"))
        log = self.path.open("ab", buffering=0)
        try:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {heading}\n".encode())
        except OSError:
            log.close()
            raise
        return log

    def last_words(self) -> str:
        """The most telling line that the last process left; empty if it left none."""
        if self._claim is None:
            return ""
        try:
            with self.path.open("rb") as log:
                size = log.seek(0, 2)
                start = self._start if self._start <= size else 0
                log.seek(max(start, size - _TAIL))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line for line in map(_clean, text.splitlines()) if line and line not in _EVERYDAY]
        for telling in _TELLING:
            for line in reversed(lines):
                if telling.search(line):
                    return line
        return lines[-1] if lines else ""


def _claimed(first: Path) -> tuple[Path, FileLock]:
    """The first file that nobody else has.

    Raises:
        OSError: none can be had.
    """
    for number in range(1, _MOST):
        path = first if number == 1 else first.with_name(f"{first.stem}-{number}{first.suffix}")
        claim = FileLock(path.with_name(path.name + ".lock"), thread_local=False)
        with contextlib.suppress(Timeout):
            claim.acquire(timeout=0)
            return path, claim
    raise OSError("too many logs are in use")


def _clean(line: str) -> str:
    return "".join(character for character in line.strip() if character.isprintable())[:_LONGEST]
