"""A chat of earlier, and what it says about how to go on: its model and settings, as far as the user says nothing."""

from pathlib import Path
from typing import Final

from specchat.chat import Settings
from specchat.config import Config
from specchat.store.chats import Kept, Store
from specengine.errors import EngineError

LAST: Final = ""
"""In place of an ID: the chat used last."""


def opened(file: Path, which: str) -> Kept:
    """The chat whose ID begins so, or the last one.

    Raises:
        EngineError: there is none, or it can't be read.
    """
    if not file.exists():
        raise EngineError("There is no chat to go on with yet; `specchat` begins one.")
    with Store(file) as store:
        if which != LAST:
            return store.kept(store.find(which))
        last = store.last()
        if last is None:
            raise EngineError("There is no chat to go on with; `specchat` begins one.")
        return store.kept(last)


def settings_of(kept: Kept) -> Config:
    """What the chat was left with, as settings that stand below the command line's flags and above all others."""
    settings = kept.settings or Settings()
    sampling = settings.sampling
    known = {name: getattr(sampling, name) for name in Config.__struct_fields__ if hasattr(sampling, name)}
    return Config(
        **known,
        model=kept.model or None,
        draft=kept.draft or None,
        system=kept.conversation.system,
        spec=settings.speculation,
        gamma=settings.gamma,
        lookup=settings.lookup,
        max_tokens=settings.limits.max_tokens,
        stop=settings.limits.stop or None,
    )
