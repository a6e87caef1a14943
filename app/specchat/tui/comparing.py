"""Compares the same prompt with speculation and without, from the chat."""

from typing import TYPE_CHECKING

from specchat import compare
from specchat.tui.commands import CommandError
from specchat.tui.screens.compare import Compare
from specengine.errors import EngineError
from specengine.protocol import Generate, Loaded

if TYPE_CHECKING:
    from specchat.tui.screens.talk import TalkScreen


class Comparing:
    """Acts for a chat screen."""

    def __init__(self, screen: "TalkScreen") -> None:
        self._screen = screen
        self._number = 0
        """Comparisons so far."""

    def start(self, prompt: str | None) -> None:
        """Shows both answers to `prompt`, or to the last one that there was.

        Raises:
            CommandError: there is none, the engine has something else to do, or nothing could ever be drafted.
        """
        session = self._screen.session
        if session.busy or session.engine.loaded is None:
            raise CommandError("Nothing can be compared before a model is loaded and nothing waits; try again then.")
        try:
            wanted = compare.requests(session.conversation, prompt, session.settings, session.new_ids(2))
        except EngineError as error:
            raise CommandError(str(error)) from None
        if reason := _never_drafts(wanted["drafted"], session.engine.loaded):
            raise CommandError(f"There is nothing to compare: {reason}")
        asked = self._screen.models.wanted
        order, self._number = compare.order(self._number), self._number + 1
        exact = asked is not None and asked.exact
        self._screen.app.push_screen(Compare(session.engine, wanted, order, exact))


def _never_drafts(wanted: Generate, loaded: Loaded) -> str:
    """Why speculation can't write anything of this answer; empty where it can."""
    if loaded.speculation_refused:
        return loaded.speculation_refused
    if wanted.lookup or (wanted.draft and loaded.draft):
        return ""
    return "drafts would come from nowhere, as lookup is off and there is no draft model."
