"""One prompt in, one answer on stdout: `specchat -p` and pipes."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from specchat import figures, foreground
from specchat.foreground import INTERRUPTED, write
from specchat.host import Host
from specengine.protocol import Chat, Chunk, Done, Generate, Load, Loaded, Message, Raw
from specengine.settings import Limits, Sampling, Speculation


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

    async def work(host: Host, interrupted: asyncio.Event) -> int:
        return await _Run(question, output, host, interrupted).run()

    return foreground.run(work, command)


class _Run:
    def __init__(self, question: Question, output: Output, host: Host, interrupted: asyncio.Event) -> None:
        self._question = question
        self._output = output
        self._host = host
        self._interrupted = interrupted
        self._text: list[str] = []

    async def run(self) -> int:
        loaded = await foreground.load(self._host, self._question.load)
        try:
            done = await self._stream(loaded)
        finally:
            self._end_line()
        seed = self._question.sampling.seed
        if self._output.json:
            stats = figures.as_json(done, loaded, seed)
            write(json.dumps({"text": "".join(self._text), "stats": stats}, ensure_ascii=False) + "\n")
        if self._output.stats:
            foreground.say(figures.in_words(done, loaded, seed))
        return INTERRUPTED if self._interrupted.is_set() else 0

    async def _stream(self, loaded: Loaded) -> Done:
        done: Done | None = None
        async for message in foreground.answer(self._host, self._request(loaded), self._interrupted):
            if isinstance(message, Chunk):
                self._text.append(message.text)
                if not self._output.json:
                    write(message.text)
            else:
                done = message
        assert done is not None
        return done

    def _request(self, loaded: Loaded) -> Generate:
        asked = self._question
        turns = [Message("system", asked.system)] if asked.system else []
        turns.append(Message("user", asked.text))
        # A base model has no template: it goes on with the text as it is.
        prompt = Chat(tuple(turns)) if loaded.template else Raw("\n\n".join(turn.content for turn in turns))
        return Generate(
            id=foreground.FIRST,
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
            write("\n")
