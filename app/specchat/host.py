"""The engine in its own process: started on first use and again after a crash."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from specchat.engine_log import EngineLog
from specchat.engine_process import BROKEN, EngineProcess, started
from specengine import frames
from specengine.errors import EngineError
from specengine.protocol import (
    Adjust,
    Chunk,
    Done,
    Failed,
    FromEngine,
    Generate,
    Load,
    Loaded,
    MeasureNearTie,
    MeasureWidthNoise,
    NearTie,
    Notice,
    Prefilling,
    Progress,
    Stop,
    ToEngine,
    WidthNoise,
)

# -P keeps the working directory, which may hold a numpy.py of the user's, out of the engine's imports.
ENGINE = (sys.executable, "-P", "-m", "specengine.serve")

_NO_DRAFT = (
    "The draft model {0} is not installed, so drafts come from prompt lookup alone; "
    "`specchat models pull {0}` fetches it."
)
_LAST = Loaded | Done | WidthNoise | NearTie | Failed
"""Messages that end a request."""
_GRACE_S = 2.0
"""How long a process whose pipe was closed may take to end before it is killed."""


class EngineDied(Exception):
    """The engine process ended by itself; str() is one sentence with its last words and what was done."""


class Host:
    """One engine process, started on first use and again after a crash. All methods belong to one asyncio loop.

    One request runs at a time; another waits for it. Whatever was loaded last is loaded again after a crash.
    """

    def __init__(self, log_file: Path, command: Sequence[str] | None = None) -> None:
        self._log = EngineLog(log_file)
        self._command = command or ENGINE
        self._process: EngineProcess | None = None
        self._turn = asyncio.Lock()
        self._running: ToEngine | None = None
        """A request whose last answer was not read yet."""
        self._wanted: Load | None = None
        """The last load that worked."""
        self._loaded: Loaded | None = None
        self._news = ""
        """How the process ended, where no request was there to be told."""
        self._closing = False

    @property
    def log_file(self) -> Path:
        """Where the last process writes what is not meant for the screen: each window has a file of its own."""
        return self._log.path

    @property
    def loaded(self) -> Loaded | None:
        """What is loaded now; None as soon as the process is known to have ended."""
        return self._loaded if self._alive else None

    @property
    def _alive(self) -> bool:
        return self._process is not None and self._process.alive

    async def load(self, load: Load) -> AsyncGenerator[Progress | Notice | Loaded]:
        """Loads a model, replacing the one that is loaded; the last message is Loaded. Closing the generator early
        abandons the load.

        Raises:
            EngineError: the model can't be loaded.
            EngineDied: the process ended while loading.
        """
        async with self._turn, contextlib.aclosing(self._load(load)) as messages:
            if load.draft_name and load.draft is None:
                yield Notice(None, _NO_DRAFT.format(load.draft_name))
            async for message in messages:
                yield message

    async def generate(self, request: Generate) -> AsyncGenerator[Prefilling | Chunk | Notice | Done]:
        """One answer; the last message is Done. Closing the generator early stops the answer.

        Raises:
            EngineError: the engine refused the request; the model stays loaded.
            EngineDied: the process ended; the next call starts it again with the same model.
        """
        async with self._turn:
            notice = await self._ready()
            if notice:
                yield Notice(request.id, notice)
            async with contextlib.aclosing(self._ask(request)) as messages:
                async for message in messages:
                    if isinstance(message, Prefilling | Chunk | Notice | Done):
                        yield message

    async def measure_width_noise(self) -> WidthNoise:
        """How far passes of different widths disagree on the loaded model.

        Raises:
            EngineError, EngineDied: as for `generate`.
        """
        async with self._turn:
            await self._ready()
            async with contextlib.aclosing(self._ask(MeasureWidthNoise())) as messages:
                noise = await anext(messages)
        assert isinstance(noise, WidthNoise)
        return noise

    async def measure_near_tie(self, asked: MeasureNearTie) -> NearTie:
        """How close the choice was where two answers parted.

        Raises:
            EngineError, EngineDied: as for `generate`.
        """
        async with self._turn:
            await self._ready()
            async with contextlib.aclosing(self._ask(asked)) as messages:
                tie = await anext(messages)
        assert isinstance(tie, NearTie)
        return tie

    def adjust(self, adjust: Adjust) -> None:
        """Changes the running answer's speculation from its next round on; nothing happens if none runs."""
        if isinstance(self._running, Generate):
            self._write(adjust)

    def stop(self, id: int) -> None:
        """Ends the running answer of this id, or the running load; Done (or EngineError) still follows."""
        if isinstance(self._running, Load) or (isinstance(self._running, Generate) and self._running.id == id):
            self._write(Stop(id))

    async def close(self) -> None:
        """Ends the process; a later call would start it again."""
        self._closing = True
        try:
            await self._bury(_GRACE_S)
        finally:
            self._log.close()
            self._closing = False

    async def _load(self, load: Load) -> AsyncGenerator[Progress | Notice | Loaded]:
        self._loaded = None
        async with contextlib.aclosing(self._ask(load)) as messages:
            async for message in messages:
                if isinstance(message, Loaded):
                    self._wanted, self._loaded = load, message
                if isinstance(message, Progress | Notice | Loaded):
                    yield message

    async def _ready(self) -> str:
        """Sees to it that the wanted model is loaded; says in a sentence what had to be done, if anything."""
        if self.loaded is not None:
            return ""
        if self._wanted is None:
            raise EngineError("No model is loaded; choose one first.")
        async with contextlib.aclosing(self._load(self._wanted)) as messages:
            async for _ in messages:
                pass
        name = self._loaded.name if self._loaded else self._wanted.name
        news, self._news = self._news, ""
        return f"{news} {name} was loaded again.".strip()

    async def _ask(self, request: Load | Generate | MeasureWidthNoise | MeasureNearTie) -> AsyncGenerator[FromEngine]:
        """Sends a request and yields its answers up to the last one."""
        try:
            frames.frame(request)
        except frames.BrokenFrame as error:
            raise EngineError(f"The request is too large for the engine. {error}") from None
        await self._settle()
        await self._start()
        self._running = request
        self._write(request)
        try:
            last = False
            while not last:
                message = await self._read()
                last = isinstance(message, _LAST)
                if isinstance(message, Failed):
                    raise EngineError(message.text)
                yield message
        finally:
            if self._running is request:
                self._write(Stop(request.id if isinstance(request, Generate) else 0))

    async def _settle(self) -> None:
        """Reads past the rest of a request whose reader went away."""
        while self._running is not None:
            try:
                await self._read()
            except EngineDied as death:
                self._news = str(death)

    async def _start(self) -> None:
        if self._process is not None:
            if self._alive:
                return
            self._news = await self._obituary("while it had nothing to do")
        self._process = await started(self._command, self._log)

    def _write(self, message: ToEngine) -> None:
        if self._process is not None:
            self._process.write(message)

    async def _read(self) -> FromEngine:
        """The next message of the running request.

        Raises:
            EngineDied: the process ended, or wrote something that is no frame.
        """
        process = self._process
        if process is None:
            raise EngineDied("The engine was closed.")
        try:
            message = await process.read()
        except BROKEN:
            if self._closing or self._process is not process:
                raise EngineDied("The engine was closed.") from None
            doing = "while loading" if isinstance(self._running, Load) else "in the middle of its work"
            raise EngineDied(await self._obituary(doing)) from None
        if isinstance(message, _LAST):
            self._running = None
        # A burst that is already here must not keep keys and paints waiting.
        await asyncio.sleep(0)
        return message

    async def _obituary(self, doing: str) -> str:
        """Clears a process away that has ended or talks nonsense; one sentence about how it ended."""
        ending = _ending(await self._bury(_GRACE_S))
        words = self._log.last_words()
        said = f"; its last words were “{words}”" if words else ""
        return f"The engine ended {doing} ({ending}){said}. It starts again when it is needed."

    async def _bury(self, grace_s: float) -> int | None:
        """Ends the process and lets go of all that belonged to it. Returns its exit status."""
        process, self._process = self._process, None
        self._running = self._loaded = None
        return None if process is None else await process.end(grace_s)


def _ending(status: int | None) -> str:
    if status is None:
        return "no exit status"
    if status >= 0:
        return f"exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"killed by {name}, often a sign of too little memory" if -status == 9 else f"killed by {name}"
