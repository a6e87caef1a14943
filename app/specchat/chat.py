"""A conversation as data: turns, answers, and how they become a request. Every step returns a new conversation."""

import secrets
import time
from dataclasses import dataclass, field, replace
from typing import Literal

from specchat.sources import Run
from specengine.protocol import Chat, Generate, Message, Reason
from specengine.settings import Limits, Sampling, Speculation
from specengine.stats import Stats

Ending = Reason | Literal["failed"]
"""How an answer ended: the engine's reason, or "failed" where the engine died or refused halfway."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How answers are made; the next request takes them as they then are."""

    sampling: Sampling = field(default_factory=Sampling)
    limits: Limits = field(default_factory=Limits)
    speculation: Speculation = "auto"
    gamma: int | None = None
    lookup: bool = True
    draft: bool = True
    n_ctx: int | None = None
    """Context size in tokens that the model is loaded with; None for the usual one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model wrote, whole or in part."""

    text: str
    ending: Ending
    tokens: tuple[int, ...] | None = None
    """The emitted ids; None where the engine did not live to tell them."""
    stats: Stats | None = None
    model: str = ""
    draft: str = ""
    """The draft model's name; empty where there was none."""
    settings: Settings | None = None
    """What it was made with; None where that was not kept."""
    ended_s: float = 0.0
    """When it ended, in seconds since 1970; 0 where nobody knows."""
    runs: tuple[Run, ...] = ()
    """Who wrote it, from its start to its end; empty where nobody kept count."""


def new_id() -> int:
    """A number that no other turn has, in this window or another."""
    return secrets.randbits(62)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user said, and the answer once there is one."""

    prompt: str
    shown: str
    """The prompt as it was typed, with chips in place of long pastes."""
    answer: Answer | None = None
    id: int = field(default_factory=new_id)
    parent: int | None = None
    """Id of the turn before it; None at the start of the chat."""
    asked_s: float = field(default_factory=time.time)
    """When it was sent, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Conversation:
    system: str = ""
    turns: tuple[Turn, ...] = ()
    """The branch that is shown and sent."""
    others: tuple[Turn, ...] = ()
    """The turns of all other branches."""


def ask(conversation: Conversation, prompt: str, shown: str | None = None) -> Conversation:
    """Adds a turn that waits for its answer."""
    return added(conversation, Turn(prompt, prompt if shown is None else shown))


def added(conversation: Conversation, turn: Turn) -> Conversation:
    """Puts a turn at the end of the branch that is shown."""
    parent = conversation.turns[-1].id if conversation.turns else None
    return replace(conversation, turns=(*conversation.turns, replace(turn, parent=parent)))


def answer(conversation: Conversation, given: Answer) -> Conversation:
    """Gives the last turn its answer.

    An answer without text takes the turn away: the model never saw its end, and a template that wants user and
    assistant in turns would refuse what follows.
    """
    *earlier, last = conversation.turns
    kept = (*earlier, replace(last, answer=given)) if given.text else tuple(earlier)
    return replace(conversation, turns=kept)


def last_answer(conversation: Conversation) -> Answer | None:
    return next((turn.answer for turn in reversed(conversation.turns) if turn.answer), None)


def messages(conversation: Conversation) -> tuple[Message, ...]:
    """The conversation as the engine takes it; answers carry the ids that were emitted for them."""
    found: list[Message] = [Message("system", conversation.system)] if conversation.system else []
    for turn in conversation.turns:
        found.append(Message("user", turn.prompt))
        if turn.answer is not None:
            found.append(Message("assistant", turn.answer.text, turn.answer.tokens))
    return tuple(found)


def request(conversation: Conversation, id: int, settings: Settings) -> Generate:
    """Asks for the answer to the last turn; where there is one already, for more of it."""
    return Generate(
        id=id,
        prompt=Chat(messages(conversation)),
        sampling=settings.sampling,
        limits=settings.limits,
        speculation=settings.speculation,
        gamma=settings.gamma,
        lookup=settings.lookup,
        draft=settings.draft,
    )
