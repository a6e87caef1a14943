"""JSON lines between the bench and a rival's process, as that process sees them: what it is asked, what it tells."""

import contextlib
import os
import threading
import traceback
from collections.abc import Callable
from typing import BinaryIO, NoReturn, Protocol, TypeVar

import msgspec

from specengine.serve import claim_standard_streams


class Ask(msgspec.Struct, frozen=True):
    """Every line in but the first, which says what to load. A temperature of 0 is greedy."""

    prompt: tuple[int, ...]
    max_tokens: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int
    cold: bool
    """Read the prompt from an empty KV cache before it is answered."""
    mode: str = ""
    """For processes that serve several."""


class Told(msgspec.Struct, frozen=True):
    """A line out; an `error` alone where something failed, nothing at all once the model is loaded."""

    error: str = ""
    tokens: tuple[int, ...] = ()
    seconds: float = 0.0
    first_token_s: float | None = None
    """From an empty KV cache, where that was asked for."""
    reading_s: float | None = None
    """Time to first token of the measured answer where the cache was refused and the prompt read again in it."""
    target_passes: int = 0
    drafted: int = 0
    accepted: int = 0


class Answering(Protocol):
    """A loaded engine."""

    def answer(self, ask: Ask) -> Told: ...


S = TypeVar("S", bound=msgspec.Struct)


def serve(start: type[S], load: Callable[[S], Answering]) -> NoReturn:
    """Serves until stdin ends, and ends with it at once.

    Args:
        start: type of the first line in.
    """
    lines_in, lines_out = claim_standard_streams()
    asked = _Lines(lines_in)
    try:
        engine = load(msgspec.json.decode(asked.next(), type=start))
    except Exception as error:
        with contextlib.suppress(OSError):
            _send(lines_out, _failed(error))
        os._exit(1)
    _send(lines_out, Told())
    while True:
        ask = msgspec.json.decode(asked.next(), type=Ask)
        try:
            told = engine.answer(ask)
        except Exception as error:  # other modes may do better
            told = _failed(error)
        _send(lines_out, told)


def _failed(error: Exception) -> Told:
    traceback.print_exc()
    return Told(error=f"{type(error).__name__}: {error}")


class _Lines:
    """Lines of stdin, read by a thread of its own, so that the end of stdin ends a running answer too."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._ready = threading.Semaphore(0)
        self._lines: list[bytes] = []
        threading.Thread(target=self._read_all, name="lines", daemon=True).start()

    def next(self) -> bytes:
        self._ready.acquire()
        return self._lines.pop(0)

    def _read_all(self) -> None:
        for line in self._stream:
            self._lines.append(line)
            self._ready.release()
        os._exit(0)


def _send(stream: BinaryIO, told: Told) -> None:
    data = memoryview(msgspec.json.encode(told) + b"\n")
    while data:
        data = data[stream.write(data) :]
