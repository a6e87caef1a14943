"""One request in the foreground of a terminal or a pipe: an engine starts for it, and Ctrl+C keeps what there is."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from types import FrameType

from specchat import paths
from specchat.folding import say
from specchat.host import EngineDied, Host
from specengine.errors import EngineError
from specengine.protocol import Chunk, Done, Generate, Load, Loaded, Notice

INTERRUPTED = 130
"""Exit code after Ctrl+C."""

Work = Callable[[Host, asyncio.Event], Awaitable[int]]
"""Does the request with an engine and returns the exit code; the event is set once the user pressed Ctrl+C."""


def run(work: Work, command: Sequence[str] | None = None) -> int:
    """Does `work` with an engine of its own; returns the exit code.

    `command` starts the engine process; by default the real one.

    Raises:
        EngineError: one sentence; what was printed before stays.
    """
    try:
        return asyncio.run(_run(work, Host(paths.log_file(), command)))
    except EngineDied as death:
        raise EngineError(str(death)) from None
    except BrokenPipeError:
        _silence_stdout()
        return 0


async def load(host: Host, wanted: Load) -> Loaded:
    """Loads a model; what the user should know of it goes to stderr."""
    loaded: Loaded | None = None
    async for message in host.load(wanted):
        if isinstance(message, Notice):
            say(message.text)
        elif isinstance(message, Loaded):
            loaded = message
    assert loaded is not None
    for notice in (loaded.draft_refused, loaded.speculation_refused, *loaded.notices):
        if notice:
            say(notice)
    return loaded


async def answer(host: Host, request: Generate, interrupted: asyncio.Event) -> AsyncGenerator[Chunk | Done]:
    """What the engine answers; the last is Done. Notices go to stderr, and an interruption stops the engine."""
    async for message in host.generate(request):
        if interrupted.is_set():
            host.stop(request.id)
        if isinstance(message, Notice):
            say(message.text)
        elif isinstance(message, Chunk | Done):
            yield message
            if isinstance(message, Done):
                return
    raise EngineDied("The engine ended its answer without saying so.")


def write(text: str) -> None:
    """Text on stdout at once.

    Raises:
        BrokenPipeError: the reader went away.
    """
    sys.stdout.write(text)
    sys.stdout.flush()


def end_line_on_terminal(text: str) -> None:
    """Ends the line after `text` where a person looks on; a pipe gets the text as it is."""
    if sys.stdout.isatty() and not text.endswith("\n"):
        write("\n")


async def _run(work: Work, host: Host) -> int:
    try:
        with _interruption(host) as interrupted:
            return await work(host, interrupted)
    except asyncio.CancelledError:
        return INTERRUPTED
    finally:
        await host.close()


@contextlib.contextmanager
def _interruption(host: Host) -> Iterator[asyncio.Event]:
    """Ctrl+C stops the answer, so that what there is of it is kept; before an answer, or a second time, it ends all."""
    interrupted = asyncio.Event()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def interrupt() -> None:
        if interrupted.is_set() or host.loaded is None:
            task.cancel()
        interrupted.set()
        host.stop(FIRST)

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(interrupt)

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


FIRST = 1
"""Id of the one request."""


def _silence_stdout() -> None:
    """Lets Python's own flush at exit succeed after the reader of a pipe went away."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
