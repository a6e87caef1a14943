"""One prompt in, one answer on stdout: `specchat -p` and pipes."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

from specchat import figures, paths
from specchat.host import EngineDied, Host
from specengine.errors import EngineError
from specengine.protocol import Chat, Chunk, Done, Generate, Load, Loaded, Message, Notice, Raw
from specengine.settings import Limits, Sampling, Speculation

INTERRUPTED = 130
"""Exit code after Ctrl+C."""
_ID = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One prompt and how it is to be answered."""

    text: str
    system: str
    load: Load
    sampling: Sampling
    limits: Limits
    speculation: Speculation = "auto"
    gamma: int | None = None
    lookup: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What is printed beside the streamed answer."""

    json: bool = False
    """One JSON object instead of the text."""
    stats: bool = False
    """Figures on stderr."""


def answer(question: Question, output: Output, command: Sequence[str] | None = None) -> int:
    """Prints the answer as it comes; returns the exit code.

    `command` starts the engine process; by default the real one.

    Raises:
        EngineError: one sentence; what was printed before stays.
    """
    try:
        return asyncio.run(_answer(question, output, Host(paths.log_file(), command)))
    except EngineDied as death:
        raise EngineError(str(death)) from None
    except BrokenPipeError:
        _silence_stdout()
        return 0


async def _answer(question: Question, output: Output, host: Host) -> int:
    try:
        with _interruption(host) as interrupted:
            return await _Run(question, output, host, interrupted).run()
    except asyncio.CancelledError:
        return INTERRUPTED
    finally:
        await host.close()


class _Run:
    def __init__(self, question: Question, output: Output, host: Host, interrupted: asyncio.Event) -> None:
        self._question = question
        self._output = output
        self._host = host
        self._interrupted = interrupted
        self._text: list[str] = []

    async def run(self) -> int:
        loaded = await self._load()
        try:
            done = await self._stream(loaded)
        finally:
            self._end_line()
        seed = self._question.sampling.seed
        if self._output.json:
            stats = figures.as_json(done, loaded, seed)
            _write(json.dumps({"text": "".join(self._text), "stats": stats}, ensure_ascii=False) + "\n")
        if self._output.stats:
            _say(figures.in_words(done, loaded, seed))
        return INTERRUPTED if self._interrupted.is_set() else 0

    async def _load(self) -> Loaded:
        loaded: Loaded | None = None
        async for message in self._host.load(self._question.load):
            if isinstance(message, Notice):
                _say(message.text)
            elif isinstance(message, Loaded):
                loaded = message
        assert loaded is not None
        for notice in (loaded.draft_refused, loaded.speculation_refused, *loaded.notices):
            if notice:
                _say(notice)
        return loaded

    async def _stream(self, loaded: Loaded) -> Done:
        async for message in self._host.generate(self._request(loaded)):
            if self._interrupted.is_set():
                self._host.stop(_ID)
            if isinstance(message, Notice):
                _say(message.text)
            elif isinstance(message, Chunk):
                self._text.append(message.text)
                if not self._output.json:
                    _write(message.text)
            elif isinstance(message, Done):
                return message
        raise EngineDied("The engine ended its answer without saying so.")

    def _request(self, loaded: Loaded) -> Generate:
        asked = self._question
        turns = [Message("system", asked.system)] if asked.system else []
        turns.append(Message("user", asked.text))
        # A base model has no template: it goes on with the text as it is.
        prompt = Chat(tuple(turns)) if loaded.template else Raw("\n\n".join(turn.content for turn in turns))
        return Generate(
            id=_ID,
            prompt=prompt,
            sampling=asked.sampling,
            limits=asked.limits,
            speculation=asked.speculation,
            gamma=asked.gamma,
            lookup=asked.lookup,
        )

    def _end_line(self) -> None:
        """The last line of the answer ends like a line, also when the answer broke off."""
        if self._text and not self._output.json and not self._text[-1].endswith("\n"):
            _write("\n")


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
        host.stop(_ID)

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(interrupt)

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _write(text: str) -> None:
    """Text on stdout at once.

    Raises:
        BrokenPipeError: the reader went away.
    """
    sys.stdout.write(text)
    sys.stdout.flush()


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _silence_stdout() -> None:
    """Lets Python's own flush at exit succeed after the reader of a pipe went away."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
