"""What every source of a model file shares: the resumable partial file, progress, patience, and disk errors."""

import contextlib
import errno
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from specengine.errors import EngineError

Phase = Literal["waiting", "connecting", "downloading", "checking"]
"""Waiting for another process that pulls the same file; reaching a source; taking bytes in; checking the digest."""


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far a pull is, at most ten times a second and at every change of phase."""

    phase: Phase
    source: str
    """Host or index that the bytes come from; empty while waiting."""
    done: int = 0
    """Bytes held, those of earlier attempts included."""
    total: int | None = None
    rate: float | None = None
    """Bytes per second over the last seconds; None at the start and while nothing arrives."""
    stalled: bool = False
    """Nothing has arrived for some seconds."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a source, in seconds."""

    connect: float = 5.0
    """For one connection; the first answer must be there after twice that."""
    stall: float = 30.0
    """Without a byte, before the connection is given up and made again."""
    tries: int = 5
    """Attempts in a row that bring less than a megabyte."""
    pause: float = 1.0
    """Before the second attempt; doubled each time."""


class Unavailable(Exception):
    """This source can't give the file; the text says why, fit to follow "source: "."""


class PullCancelled(Exception):
    """The pull was cancelled; what arrived is kept and the next pull goes on from there."""


class Watch:
    """Reports progress and notices cancellation; sources call it whenever something or nothing happens."""

    _WINDOW, _QUIET, _EVERY = 5.0, 3.0, 0.1

    def __init__(self, progress: Callable[[PullProgress], None], cancelled: Callable[[], bool]) -> None:
        self._progress, self._cancelled = progress, cancelled
        self._phase: Phase = "waiting"
        self._source = ""
        self.done = 0
        self.total: int | None = None
        self._seen: deque[tuple[float, int]] = deque()
        self._reported = 0.0

    def begin(self, phase: Phase, source: str, done: int = 0, total: int | None = None) -> None:
        """A new phase starts, with `done` bytes at hand."""
        self._phase, self._source, self.done, self.total = phase, source, done, total
        self._seen = deque([(time.monotonic(), done)])
        self._report()

    def at(self, done: int) -> None:
        """Now `done` bytes are there; fewer than before are not reported."""
        if self.total is not None:
            done = min(done, self.total)
        if done > self.done:
            self.done = done
            self._seen.append((time.monotonic(), done))
        self.tick()

    def tick(self) -> None:
        """Time passed.

        Raises:
            PullCancelled: the user cancelled.
        """
        if self._cancelled():
            raise PullCancelled
        if time.monotonic() - self._reported >= self._EVERY:
            self._report()

    @property
    def quiet(self) -> float:
        """Seconds since a byte arrived."""
        return time.monotonic() - self._seen[-1][0]

    def stir(self) -> None:
        """Starts the count of quiet seconds anew: an attempt begins."""
        self._seen = deque([(time.monotonic(), self.done)])

    def wait(self, seconds: float) -> None:
        """Sleeps, noticing cancellation."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.tick()
            time.sleep(min(0.05, seconds))

    def _report(self) -> None:
        now = time.monotonic()
        self._reported = now
        while len(self._seen) > 2 and now - self._seen[0][0] > self._WINDOW:
            self._seen.popleft()
        (then, before), stalled = self._seen[0], self._phase == "downloading" and self.quiet > self._QUIET
        rate = (self.done - before) / (now - then) if now - then > 0.5 and not stalled else None
        self._progress(PullProgress(self._phase, self._source, self.done, self.total, rate or None, stalled))


class _Record(msgspec.Struct, frozen=True):
    identity: str
    pieces: tuple[int, ...] = ()


class Part:
    """The bytes of `final` that arrived so far, in `final`.part, with a record of which file they belong to.

    The bytes are always a prefix of the one file that `identity` stands for (its SHA-256, or a server's ETag), so any
    source of the same identity may go on from there.
    """

    def __init__(self, final: Path) -> None:
        self.path = final.with_name(final.name + ".part")
        self._record_path = final.with_name(final.name + ".part.json")
        try:
            self._record = msgspec.json.decode(self._record_path.read_bytes(), type=_Record)
        except (OSError, msgspec.MsgspecError):
            self._record = _Record("")

    @property
    def identity(self) -> str:
        """Which file the bytes belong to; empty if that isn't known."""
        return self._record.identity

    @property
    def pieces(self) -> tuple[int, ...]:
        """Sizes of the pieces (one of each wheel) that arrived whole."""
        return self._record.pieces if self.held() >= sum(self._record.pieces) else ()

    def held(self) -> int:
        """Bytes that a source may go on from."""
        try:
            return self.path.stat().st_size if self.identity else 0
        except FileNotFoundError:
            return 0

    def keep_only(self, identity: str) -> None:
        """Bytes of any other file are dropped; all are where the identity is unknown (empty)."""
        if not identity or identity != self.identity or not self.path.exists():
            self.drop()
            self.path.touch()
            self._write(_Record(identity))

    def add_piece(self, size: int) -> None:
        """The next piece arrived whole."""
        self._write(msgspec.structs.replace(self._record, pieces=(*self.pieces, size)))

    def drop(self) -> None:
        """Forgets everything."""
        self._record = _Record("")
        self.path.unlink(missing_ok=True)
        self._record_path.unlink(missing_ok=True)

    def finish(self, final: Path) -> None:
        """Gives the whole and checked file its final name."""
        self.path.replace(final)
        self._record_path.unlink(missing_ok=True)

    def _write(self, record: _Record) -> None:
        self._record = record
        self._record_path.write_bytes(msgspec.json.encode(record))


def need_space(folder: Path, needed: int, what: str) -> None:
    """Checks that `needed` more bytes go onto the disk of `folder`.

    Raises:
        EngineError: they don't.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise EngineError(_no_space(folder, what, needed, free))


@contextlib.contextmanager
def disk_errors(folder: Path, what: str, needed: Callable[[], int]) -> Iterator[None]:
    """Turns a disk that fills up or refuses to be written to into one sentence; `needed` says what is still missing."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            free = shutil.disk_usage(folder).free
            raise EngineError(_no_space(folder, what, needed(), free)) from None
        if error.errno == errno.EFBIG:
            raise EngineError(
                f"The disk of {folder} takes no file as large as {what}; choose another folder with SPECCHAT_MODELS."
            ) from None
        raise EngineError(f"{folder} can't be written to: {error.strerror or error}.") from None


def megabytes(count: int) -> str:
    """A number of bytes in words, decimal units as download pages use them."""
    if count >= 10**9:
        return f"{count / 10**9:.1f} GB"
    return f"{count / 10**6:.0f} MB" if count >= 10**7 else f"{count / 10**6:.1f} MB"


def _no_space(folder: Path, what: str, needed: int, free: int) -> str:
    return (
        f"{what} needs {megabytes(needed)} more, but only {megabytes(free)} are free in {folder}; "
        "free some space, or choose another folder with SPECCHAT_MODELS."
    )
