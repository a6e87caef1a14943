"""One run of the engine program, and the pipes to it."""

import asyncio
import contextlib
from collections.abc import Sequence

from specchat.engine_log import EngineLog
from specengine import frames
from specengine.errors import EngineError
from specengine.protocol import FromEngine, ToEngine

BROKEN = (asyncio.IncompleteReadError, ConnectionError, frames.BrokenFrame)
"""What reading raises where the process ended, or wrote something that is no frame."""


class EngineProcess:
    """A running engine; `started` makes one."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._body_length: int | None = None
        """Length of a frame whose header was read already: a cancelled read must not lose its place."""

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    def write(self, message: ToEngine) -> None:
        """Never blocks: what the pipe can't take yet waits in memory."""
        if self.alive:
            assert self._process.stdin is not None
            self._process.stdin.write(frames.frame(message))

    async def read(self) -> FromEngine:
        """The next message.

        Raises:
            BROKEN: there is none.
        """
        stdout = self._process.stdout
        assert stdout is not None
        if self._body_length is None:
            self._body_length = frames.body_length(await stdout.readexactly(frames.HEADER.size))
        body = await stdout.readexactly(self._body_length)
        self._body_length = None
        return frames.decode(body)

    async def end(self, grace_s: float) -> int:
        """Ends the process, by force if closing its pipe doesn't within `grace_s`. Returns its exit status."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.close()
            await asyncio.wait_for(process.wait(), grace_s)
        except TimeoutError:
            pass
        finally:
            # Also when this very wait is cancelled: no engine outlives its host.
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        # Read to the end: asyncio never closes a pipe that is paused because it is full.
        with contextlib.suppress(ConnectionError, RuntimeError):
            while await process.stdout.read(2**16):
                pass
        return await process.wait()


async def started(command: Sequence[str], log: EngineLog) -> EngineProcess:
    """Starts the engine; what it prints goes to the log.

    Raises:
        EngineError: it can't be started.
    """
    try:
        with log.opened() as stderr:
            process = await asyncio.create_subprocess_exec(
                *command,
                str(log.path),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr or asyncio.subprocess.DEVNULL,
            )
    except OSError as error:
        raise EngineError(f"The engine could not be started: {error}.") from None
    return EngineProcess(process)
