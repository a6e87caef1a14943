"""One prompt answered twice from one seed, with speculation and without: what is asked, and where the texts part."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

import msgspec

from specchat.chat import Answer, Conversation, Ending, Settings, ask, request
from specchat.sources import Runs
from specengine.errors import EngineError
from specengine.protocol import Chunk, Done, Generate, Loaded, MeasureNearTie, NearTie, Notice, Prefilling
from specengine.stats import Stats

Mode = Literal["plain", "drafted"]
MODES: Final[tuple[Mode, Mode]] = ("plain", "drafted")


class Engine(Protocol):
    """What is needed of `specchat.host.Host`."""

    @property
    def loaded(self) -> Loaded | None: ...

    def generate(self, request: Generate) -> AsyncGenerator[Prefilling | Chunk | Notice | Done]: ...

    async def measure_near_tie(self, asked: MeasureNearTie) -> NearTie: ...

    def stop(self, id: int) -> None: ...


class View(Protocol):
    """Who shows it."""

    def on_reading(self, mode: Mode, done: int, total: int) -> None: ...

    def on_text(self, mode: Mode, text: str, stats: Stats) -> None: ...

    def on_answered(self, mode: Mode, answer: Answer) -> None: ...


@dataclass(frozen=True, slots=True)
class Fork:
    """Where two texts part."""

    shared: int
    """Tokens that they begin with."""
    tokens: tuple[int, int] | None
    """How each goes on; None where one of them ends here."""


def order(number: int) -> tuple[Mode, Mode]:
    """The modes as they follow each other in this comparison: they take turns at going first, so that neither gains by
    its place."""
    return MODES if number % 2 == 0 else (MODES[1], MODES[0])


def requests(conversation: Conversation, prompt: str | None, settings: Settings, id: int) -> dict[Mode, Generate]:
    """The last prompt once more with the seed that its answer had, or a new prompt; with shared noise, so that the same
    text is expected of both.

    Raises:
        EngineError: there is no prompt yet.
    """
    if prompt is not None:
        asked = ask(conversation, prompt)
    elif conversation.turns:
        *earlier, last = conversation.turns
        asked = replace(conversation, turns=(*earlier, replace(last, answer=None)))
        settings = (last.answer.settings if last.answer else None) or settings
    else:
        raise EngineError("There is nothing to compare yet; ask something first, or write a prompt behind /compare.")
    settings = replace(settings, sampling=replace(settings.sampling, coupling="shared"))
    drafted = msgspec.structs.replace(request(asked, id, settings), aside=True)
    if drafted.speculation == "off" or drafted.gamma == 0:
        drafted = msgspec.structs.replace(drafted, speculation="auto", gamma=None)
    plain = msgspec.structs.replace(drafted, id=id + 1, speculation="off", gamma=None, lookup=False, draft=False)
    return {"plain": plain, "drafted": drafted}


async def answered(engine: Engine, mode: Mode, wanted: Generate, view: View) -> Answer:
    """One of the answers, shown while it comes.

    Raises:
        EngineError, EngineDied: the engine refused or died; what had come was shown.
    """
    text: list[str] = []
    runs = Runs()
    ending: Ending = "failed"
    tokens: tuple[int, ...] | None = None
    stats: Stats | None = None
    names = ("", "")
    async with aclosing(engine.generate(wanted)) as events:
        async for event in events:
            if engine.loaded:  # after a crash not before the first event
                names = (engine.loaded.name, engine.loaded.draft or "")
            match event:
                case Prefilling(_, done, total):
                    view.on_reading(mode, done, total)
                case Chunk():
                    text.append(event.text)
                    runs.add(event.tokens)
                    view.on_text(mode, event.text, event.stats)
                case Done():
                    ending, tokens, stats = event.reason, event.tokens, event.stats
    given = Answer("".join(text), ending, tokens, stats, *names, settings=_settings(wanted), runs=tuple(runs.runs))
    view.on_answered(mode, given)
    return given


def fork(plain: Answer, drafted: Answer) -> Fork | None:
    """Where the answers part; None if they don't, as far as both were made."""
    one, other = plain.tokens or (), drafted.tokens or ()
    both = min(len(one), len(other))
    shared = next((i for i in range(both) if one[i] != other[i]), both)
    if shared < both:
        return Fork(shared, (one[shared], other[shared]))
    whole = "stopped" not in (plain.ending, drafted.ending)
    return Fork(shared, None) if whole and len(one) != len(other) else None


def shared_text(plain: str, drafted: str) -> int:
    """How many characters both begin with."""
    both = min(len(plain), len(drafted))
    return next((i for i in range(both) if plain[i] != drafted[i]), both)


async def near_tie(engine: Engine, wanted: Generate, plain: Answer, parted: Fork) -> NearTie | None:
    """How close the choice was where the answers part; None where one of them just ends.

    Raises:
        EngineError, EngineDied: it can't be measured.
    """
    if parted.tokens is None or plain.tokens is None:
        return None
    return await engine.measure_near_tie(MeasureNearTie(wanted, plain.tokens[: parted.shared], parted.tokens))


def _settings(wanted: Generate) -> Settings:
    return Settings(wanted.sampling, wanted.limits, wanted.speculation, wanted.gamma, wanted.lookup, wanted.draft)
