"""One prompt in, one answer on stdout: `specchat -p` and pipes."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specchat import figures, foreground
from specchat.chat import Answer, Conversation, Settings, Turn, ask, messages
from specchat.folding import say
from specchat.foreground import INTERRUPTED, write
from specchat.host import Host
from specchat.incoming import Incoming
from specchat.store.chats import Kept
from specchat.store.keeping import Keeping
from specchat.store.recorder import Recorder
from specengine.protocol import Chat, Chunk, Done, Generate, Load, Loaded, Raw
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
    kept: Kept | None = None
    """The chat that the prompt is said in."""
    chats_file: Path | None = None
    """Where that chat is kept; None keeps nothing of this."""


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

    recorder = Recorder(question.chats_file, say) if question.kept and question.chats_file else None
    keeping = Keeping(recorder)

    async def work(host: Host, interrupted: asyncio.Event) -> int:
        return await _Run(question, output, host, interrupted, keeping).run()

    try:
        return foreground.run(work, command)
    finally:
        if recorder is not None:
            recorder.close()


class _Run:
    def __init__(
        self, question: Question, output: Output, host: Host, interrupted: asyncio.Event, keeping: Keeping
    ) -> None:
        self._question = question
        self._output = output
        self._host = host
        self._interrupted = interrupted
        self._text: list[str] = []
        self._keeping = keeping
        before = question.kept.conversation if question.kept else Conversation()
        self._conversation = ask(replace(before, system=question.system), question.text)
        self._settings = Settings(
            question.sampling, question.limits, question.speculation, question.gamma, question.lookup
        )

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
            say(figures.in_words(done, loaded, seed), figures.HANGING)
        return INTERRUPTED if self._interrupted.is_set() else 0

    async def _stream(self, loaded: Loaded) -> Done:
        done: Done | None = None
        incoming = Incoming(loaded, self._settings)
        turn = self._begin(incoming.by)
        try:
            async for message in foreground.answer(self._host, self._request(loaded), self._interrupted):
                incoming.take(message)
                if isinstance(message, Chunk):
                    self._text.append(message.text)
                    self._keeping.text(turn.id, message)
                    if not self._output.json:
                        write(message.text)
                else:
                    done = message
        finally:
            if (given := incoming.answer()).text:
                self._keeping.ended(turn.id, given)
        assert done is not None
        return done

    def _begin(self, by: Answer) -> Turn:
        """The turn that is to be answered, kept if it belongs to a chat."""
        turn = self._conversation.turns[-1]
        self._keeping.load = self._question.load
        if self._question.kept is not None:
            self._keeping.resume(self._question.kept.listed)
        self._keeping.asked(replace(turn, answer=by), self._conversation, self._settings)
        return turn

    def _request(self, loaded: Loaded) -> Generate:
        asked = self._question
        said = messages(self._conversation)
        # A base model has no template: it goes on with the text as it is.
        prompt = Chat(said) if loaded.template else Raw("\n\n".join(message.content for message in said))
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
