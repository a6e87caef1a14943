"""The talk between one conversation and the engine: one job at a time, the rest waits in a queue. No Textual here."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from specchat.branches import cut_before, siblings, switched
from specchat.chat import Answer, Conversation, Ending, Settings, Turn, added, answer, request
from specchat.going_on import joined, whole_characters
from specchat.host import EngineDied
from specchat.incoming import Incoming
from specchat.store.chats import Kept
from specchat.store.keeping import Keeping
from specchat.tui.jobs import Asked, Jobs
from specchat.tui.options import Engine
from specengine.errors import EngineError
from specengine.protocol import Adjust, Chunk, Done, Generate, Load, Loaded, Notice, Prefilling, Progress, Token
from specengine.settings import Speculation
from specengine.stats import Stats


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

    def __init__(
        self, engine: Engine, settings: Settings, system: str, view: View, keeping: Keeping | None = None
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.conversation = Conversation(system)
        self.keeping = keeping or Keeping()
        self.answering: Asked | None = None
        self.loading = False
        self._view = view
        self.jobs = Jobs()
        self._id = 0
        self._unanswered: tuple[int, ...] = ()
        """Turns of a resumed chat that no answer was begun for; what is sent next takes their place."""

    @property
    def waiting(self) -> list[Asked]:
        """Prompts in the queue."""
        return self.jobs.prompts

    @property
    def busy(self) -> bool:
        return self.loading or self.answering is not None or bool(self.jobs)

    @property
    def waits(self) -> bool:
        """Whether a prompt that is sent now has to wait: for another one, or for a first model."""
        return self.busy or not self.jobs.open

    async def run(self) -> None:
        while True:
            job = await self.jobs.next()
            await (self._load(job) if isinstance(job, Load) else self._answer(job))

    def load(self, load: Load) -> None:
        """Loads a model when its turn comes; the first load comes before prompts that were waiting for it."""
        self.jobs.load(load)

    def send(self, prompt: str, shown: str, beside: int | None = None) -> Asked:
        """Asks when its turn comes; in the place of the turn `beside` at once, which stops a running answer."""
        asked = Asked(prompt, shown, beside=beside)
        self.keeping.asked(self._turn(asked), self.conversation, self.settings)
        for id in self._unanswered:
            self.keeping.dropped(id)
        self._unanswered = ()
        self._enqueue(asked)
        return asked

    def retry(self, id: int | None = None) -> Asked | None:
        """Has a prompt answered again with another seed, the last one by default; the answer that there is stays in a
        branch of its own. None where there is no prompt."""
        turns = {turn.id: turn for turn in (*self.conversation.turns, *self.conversation.others)}
        last = self.conversation.turns[-1].id if self.conversation.turns else None
        turn = turns.get(last if id is None else id)  # type: ignore[arg-type]  # None is never a key
        if turn is None:
            return None
        made_with = [other.answer.settings for other in siblings(self.conversation, turn) if other.answer]
        seeds = [settings.sampling.seed for settings in made_with if settings]
        if self.answering is not None and self.answering.seed is not None:
            seeds.append(self.answering.seed)
        seed = (max(seeds, default=self.settings.sampling.seed) + 1) % 2**64
        asked = Asked(turn.prompt, turn.shown, beside=turn.id, seed=seed)
        self._enqueue(asked)
        return asked

    def go_on(self) -> Asked | None:
        """Has the last answer go on where it was cut; None where there is nothing to go on with."""
        turn = self.conversation.turns[-1] if self.conversation.turns else None
        if turn is None or turn.answer is None or self.answering is not None:
            return None
        asked = Asked(turn.prompt, turn.shown, turn=turn.id, goes_on=True)
        self._enqueue(asked)
        return asked

    def show_branch(self, id: int) -> None:
        """Shows the branch of this turn; not while an answer is written."""
        self.conversation = switched(self.conversation, id)
        self.keeping.shown(self.conversation.turns[-1].id)

    def stop(self) -> None:
        """Ends the running answer; what it wrote so far stays."""
        if self.answering is not None:
            self.engine.stop(self._id)

    def withdraw(self) -> Asked | None:
        """Takes the newest waiting prompt back out of the queue."""
        asked = self.jobs.withdraw()
        if asked is not None:
            self.keeping.dropped(asked.turn)
        return asked

    def new(self) -> None:
        """Starts an empty conversation with the same system prompt; a running answer is stopped, and what it wrote so
        far stays with the chat that it belongs to."""
        self._leave()
        self.keeping.new()
        self.conversation = Conversation(self.conversation.system)

    def new_ids(self, count: int) -> int:
        """The first of `count` ids for requests that are made beside the conversation."""
        self._id += count
        return self._id - count + 1

    def resume(self, kept: Kept) -> None:
        """Goes on with a chat of earlier, with its own settings."""
        self._leave()
        self.keeping.resume(kept.listed)
        self.conversation = kept.conversation
        self.settings = kept.settings or self.settings
        self._unanswered = tuple(turn.id for turn in kept.unanswered)

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
                            self.keeping.load = load
                            self._view.on_loaded(event)
        except (EngineError, EngineDied) as error:
            self._view.on_error(str(error))
        finally:
            self.loading = False

    def _enqueue(self, asked: Asked) -> None:
        if asked.beside is not None:
            self.stop()
        self.jobs.ask(asked)

    def _leave(self) -> None:
        """Stops and forgets whatever goes on in this chat; what waits stays kept."""
        self.jobs.clear()
        self.stop()
        self.answering = None
        self._unanswered = ()

    def _turn(self, asked: Asked) -> Turn:
        """The turn that a prompt is to become, below the one that will be before it as far as can be told."""
        turn = Turn(asked.prompt, asked.shown, id=asked.turn, asked_s=asked.asked_s)
        if asked.beside is not None:
            return added(cut_before(self.conversation, asked.beside), turn).turns[-1]
        if self.waiting:
            return replace(turn, parent=self.waiting[-1].turn)
        return added(self.conversation, turn).turns[-1]

    async def _answer(self, asked: Asked) -> None:
        before, settings = self.conversation, self.settings
        if asked.seed is not None:
            settings = replace(settings, sampling=replace(settings.sampling, seed=asked.seed))
        incoming = Incoming(self.engine.loaded, settings)
        self._id += 1
        self.answering = asked
        begun = self._begin(asked, incoming.by)
        wanted = request(self.conversation, self._id, settings)
        await self._view.on_started(asked)
        given = await self._received(asked, wanted, incoming, begun)
        if self.answering is asked:  # else another conversation began meanwhile
            self.answering = None
            now = answer(self.conversation, given)
            self.conversation = now if given.text else replace(before, system=now.system)
            if not given.text and asked.beside is not None and before.turns:
                self.keeping.shown(before.turns[-1].id)
            await self._view.on_ended(asked, given)

    def _begin(self, asked: Asked, by: Answer) -> Answer | None:
        """Puts the prompt into the conversation; returns what there is of the answer already."""
        if not asked.goes_on:
            turn = self._turn_now(asked)
            self.keeping.asked(replace(turn, answer=by), self.conversation, self.settings)
            if self.waiting:
                self.keeping.shown(self.waiting[-1].turn)
            return None
        turn = self.conversation.turns[-1]
        assert turn.id == asked.turn and turn.answer is not None
        begun = whole_characters(turn.answer)
        self.conversation = answer(self.conversation, begun)
        self.keeping.goes_on(self.conversation.turns[-1], self.conversation, self.settings)
        return begun

    def _turn_now(self, asked: Asked) -> Turn:
        base = self.conversation if asked.beside is None else cut_before(self.conversation, asked.beside)
        turn = Turn(asked.prompt, asked.shown, id=asked.turn, asked_s=asked.asked_s)
        self.conversation = added(base, turn)
        return self.conversation.turns[-1]

    def _keep_end(self, asked: Asked, given: Answer) -> None:
        """A prompt whose answer never began is kept to be asked again, unless it is there without that."""
        in_hand = given.ending == "stopped" and self.answering is asked
        if given.text:
            self.keeping.ended(asked.turn, given)
        elif in_hand or asked.seed is not None:
            self.keeping.dropped(asked.turn)

    async def _received(self, asked: Asked, wanted: Generate, incoming: Incoming, begun: Answer | None) -> Answer:
        """Passes the answer on as it comes, and returns it whole; one that nobody waits for any more is only kept."""
        ending: Ending | None = None
        try:
            async with aclosing(self.engine.generate(wanted)) as events:
                async for event in events:
                    if isinstance(event, Chunk | Done):
                        incoming.take(event, self.engine.loaded)
                    if isinstance(event, Chunk):
                        self.keeping.text(asked.turn, event)
                    if self.answering is asked:
                        self._show(event)
        except (EngineError, EngineDied) as error:
            if self.answering is asked:
                self._view.on_error(str(error))
        except asyncio.CancelledError:
            ending = "stopped" if incoming.answer().text else "failed"
            raise
        finally:
            given = incoming.answer(ending)
            if begun is not None:
                given = joined(begun, given) if given.text else replace(begun, ending=_ending(begun, given))
            self._keep_end(asked, given)
        return given

    def _show(self, event: Prefilling | Chunk | Notice | Done) -> None:
        match event:
            case Prefilling(_, done, total):
                self._view.on_reading(done, total)
            case Chunk():
                self._view.on_tokens(event.tokens, event.stats)
            case Notice(_, notice):
                self._view.on_notice(notice)


def _ending(begun: Answer, more: Answer) -> Ending:
    """How an answer ended that was to go on and got no longer."""
    return more.ending if more.ending in ("end", "stop", "context") else begun.ending
