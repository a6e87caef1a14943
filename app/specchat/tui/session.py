"""The talk between one conversation and the engine: one job at a time, the rest waits in a queue. No Textual here."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from specchat.chat import Answer, Conversation, Ending, Settings, answer, ask, request
from specchat.host import EngineDied
from specchat.sources import Runs
from specchat.tui.options import Engine
from specengine.errors import EngineError
from specengine.protocol import Adjust, Chunk, Done, Generate, Load, Loaded, Notice, Prefilling, Progress, Token
from specengine.settings import Speculation
from specengine.stats import Stats


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A prompt on its way to an answer; compared by identity."""

    prompt: str
    shown: str


class View(Protocol):
    """What the session tells whoever shows it. Calls come from the session's task, in order."""

    def on_loading(self, what: str, fraction: float) -> None: ...

    def on_loaded(self, loaded: Loaded) -> None: ...

    def on_notice(self, text: str) -> None: ...

    def on_error(self, text: str) -> None: ...

    async def on_started(self, asked: Asked) -> None: ...

    def on_reading(self, done: int, total: int) -> None: ...

    def on_tokens(self, tokens: Sequence[Token], stats: Stats) -> None: ...

    async def on_ended(self, asked: Asked, given: Answer) -> None: ...


class Session:
    """`run` works off the queue until it is cancelled; everything else returns at once."""

    def __init__(self, engine: Engine, settings: Settings, system: str, view: View) -> None:
        self.engine = engine
        self.settings = settings
        self.conversation = Conversation(system)
        self.answering: Asked | None = None
        self.loading = False
        self._view = view
        self._jobs: deque[Load | Asked] = deque()
        self._open = False
        """Whether there was a load yet; prompts wait for it."""
        self._more = asyncio.Event()
        self._id = 0

    @property
    def waiting(self) -> list[Asked]:
        """Prompts in the queue."""
        return [job for job in self._jobs if isinstance(job, Asked)]

    @property
    def busy(self) -> bool:
        return self.loading or self.answering is not None or bool(self._jobs)

    @property
    def waits(self) -> bool:
        """Whether a prompt that is sent now has to wait: for another one, or for a first model."""
        return self.busy or not self._open

    async def run(self) -> None:
        while True:
            while self._open and self._jobs:
                job = self._jobs.popleft()
                await (self._load(job) if isinstance(job, Load) else self._answer(job))
            self._more.clear()
            await self._more.wait()

    def load(self, load: Load) -> None:
        """Loads a model when its turn comes; the first load comes before prompts that were waiting for it."""
        if self._open:
            self._jobs.append(load)
        else:
            self._jobs.appendleft(load)
        self._open = True
        self._more.set()

    def send(self, prompt: str, shown: str) -> Asked:
        asked = Asked(prompt, shown)
        self._jobs.append(asked)
        self._more.set()
        return asked

    def stop(self) -> None:
        """Ends the running answer; what it wrote so far stays."""
        if self.answering is not None:
            self.engine.stop(self._id)

    def withdraw(self) -> Asked | None:
        """Takes the newest waiting prompt back out of the queue."""
        for job in reversed(self._jobs):
            if isinstance(job, Asked):
                self._jobs.remove(job)
                return job
        return None

    def new(self) -> None:
        """Starts an empty conversation with the same system prompt; a running answer is stopped and forgotten."""
        for asked in self.waiting:
            self._jobs.remove(asked)
        self.stop()
        self.answering = None
        self.conversation = Conversation(self.conversation.system)

    def new_ids(self, count: int) -> int:
        """The first of `count` ids for requests that are made beside the conversation."""
        self._id += count
        return self._id - count + 1

    def set_system(self, text: str) -> None:
        self.conversation = replace(self.conversation, system=text)

    def use_draft(self) -> None:
        """Takes a draft model into use from the next message on, whatever was wanted at the start."""
        self.settings = replace(self.settings, draft=True)

    def adjust(self, speculation: Speculation, gamma: int | None) -> None:
        """Takes effect in the next round of a running answer, and for all later ones."""
        self.settings = replace(self.settings, speculation=speculation, gamma=gamma)
        self.engine.adjust(Adjust(speculation, gamma))

    async def _load(self, load: Load) -> None:
        self.loading = True
        try:
            async with aclosing(self.engine.load(load)) as events:
                async for event in events:
                    match event:
                        case Progress(what, fraction):
                            self._view.on_loading(what, fraction)
                        case Notice(_, text):
                            self._view.on_notice(text)
                        case Loaded():
                            self._view.on_loaded(event)
        except (EngineError, EngineDied) as error:
            self._view.on_error(str(error))
        finally:
            self.loading = False

    async def _answer(self, asked: Asked) -> None:
        self._id += 1
        self.answering = asked
        self.conversation = ask(self.conversation, asked.prompt, asked.shown)
        wanted = request(self.conversation, self._id, self.settings)
        await self._view.on_started(asked)
        given = await self._received(asked, wanted)
        if self.answering is asked:  # else a new conversation began meanwhile
            self.answering = None
            self.conversation = answer(self.conversation, given)
            await self._view.on_ended(asked, given)

    async def _received(self, asked: Asked, wanted: Generate) -> Answer:
        """Passes the answer on as it comes, and returns it whole."""
        text: list[str] = []
        runs = Runs()
        stats: Stats | None = None
        ending: Ending = "failed"
        tokens: tuple[int, ...] | None = None
        model = self.engine.loaded.name if self.engine.loaded else ""
        try:
            async with aclosing(self.engine.generate(wanted)) as events:
                async for event in events:
                    if self.answering is not asked:
                        continue
                    match event:
                        case Prefilling(_, done, total):
                            self._view.on_reading(done, total)
                        case Chunk():
                            text.append(event.text)
                            runs.add(event.tokens)
                            stats = event.stats
                            self._view.on_tokens(event.tokens, event.stats)
                        case Notice(_, notice):
                            self._view.on_notice(notice)
                        case Done():
                            ending, tokens, stats = event.reason, event.tokens, event.stats
        except (EngineError, EngineDied) as error:
            if self.answering is asked:
                self._view.on_error(str(error))
        return Answer("".join(text), ending, tokens, stats, model, runs=tuple(runs.runs))
