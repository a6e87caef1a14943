"""Compares the same prompt with speculation and without, from the chat."""

from typing import TYPE_CHECKING

from specchat import compare
from specchat.tui.commands import CommandError
from specchat.tui.screens.compare import Compare
from specengine.errors import EngineError

if TYPE_CHECKING:
    from specchat.tui.screens.chat import ChatScreen


class Comparing:
    """Acts for a chat screen."""

    def __init__(self, screen: "ChatScreen") -> None:
        self._screen = screen
        self._number = 0
        """Comparisons so far."""

    def start(self, prompt: str | None) -> None:
        """Shows both answers to `prompt`, or to the last one that there was.

        Raises:
            CommandError: there is none, or the engine has something else to do.
        """
        session = self._screen.session
        if session.busy or session.engine.loaded is None:
            raise CommandError("Nothing can be compared before a model is loaded and nothing waits; try again then.")
        try:
            wanted = compare.requests(session.conversation, prompt, session.settings, session.new_ids(2))
        except EngineError as error:
            raise CommandError(str(error)) from None
        asked = self._screen.models.wanted
        order, self._number = compare.order(self._number), self._number + 1
        exact = asked is not None and asked.exact
        self._screen.app.push_screen(Compare(session.engine, wanted, order, exact))
